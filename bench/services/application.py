"""A WSGI application: each request computes for some milliseconds, partly in Python's own frames."""


def multiply(count):
    return sum(i * i for i in range(count))


def application(environ, start_response):
    body = str(multiply(20000)).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
