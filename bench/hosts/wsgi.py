"""A WSGI application as web sites have them: it parses, fills in a template, and waits for something like a database."""
import html
import json
import string
import time

PAGE = string.Template("<html><h1>$title</h1><ul>$rows</ul></html>")


def rows_of_database(count):
    time.sleep(0.004)
    return [{"name": "row <%d>" % i, "value": i * i} for i in range(count)]


def listing(environ):
    rows = rows_of_database(200)
    return PAGE.substitute(title=html.escape(environ["PATH_INFO"]), rows="".join("<li>%s: %d</li>" % (html.escape(row["name"]), row["value"]) for row in rows))


def api(environ):
    return json.dumps(json.loads(json.dumps(rows_of_database(400))), indent=1)


def application(environ, start_response):
    body = (api if environ["QUERY_STRING"] else listing)(environ).encode()
    start_response("200 OK", [("Content-Type", "text/html"), ("Content-Length", str(len(body)))])
    return [body]
