"""Web servers with their clients: handlers that compute and handlers that wait."""
import http.client
import http.server
import socketserver
import threading
import time
import wsgiref.simple_server

from truth import over, part, spin, tell


def ask(port, seconds, pause):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/")
        connection.getresponse().read()
        connection.close()
        time.sleep(pause)


def served(server, seconds, clients=1, pause=0.01):
    threading.Thread(target=server.serve_forever, name="server", daemon=True).start()
    threads = [threading.Thread(target=ask, args=(server.server_address[1], seconds, pause), name="client-%d" % i) for i in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    server.shutdown()
    tell()


def computing_page():
    with part("computing_page"):
        spin(0.01)


def waiting_page():
    with part("waiting_page"):
        time.sleep(0.05)


def handler(page):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            page()
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_):
            pass
    return Handler


def http_server(seconds):
    served(http.server.HTTPServer(("127.0.0.1", 0), handler(computing_page)), seconds)


def threading_server(seconds):
    served(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(waiting_page)), seconds, clients=4)


def idle_server(seconds):
    served(http.server.HTTPServer(("127.0.0.1", 0), handler(computing_page)), seconds, pause=0.5)


def wsgi(seconds):
    def application(_, start):
        computing_page()
        start("200 OK", [("Content-Type", "text/plain")])
        return [b"ok"]

    class Quiet(wsgiref.simple_server.WSGIRequestHandler):
        def log_message(self, *_):
            pass

    served(wsgiref.simple_server.make_server("127.0.0.1", 0, application, handler_class=Quiet), seconds)


def line_server(seconds):
    class Lines(socketserver.StreamRequestHandler):
        def handle(self):
            self.rfile.readline()
            computing_page()
            self.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok")

    served(socketserver.TCPServer(("127.0.0.1", 0), Lines), seconds)


if __name__ == "__main__":
    over({f.__name__: f for f in (http_server, threading_server, idle_server, wsgi, line_server)})
