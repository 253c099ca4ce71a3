"""A web worker that is slower than it should be: docs/stories.md finds out why.

    python3 web_worker.py [--fixed] [SECONDS]

It serves a small shop on a port of its own and asks itself for pages, as a load test would.
"""
import http.client
import http.server
import json
import string
import sys
import threading
import time

PRODUCTS = [{"number": number, "name": f"article {number}", "price": 100 + number % 900} for number in range(20_000)]
BY_NUMBER = {product["number"]: product for product in PRODUCTS}
PAGE = string.Template("<html><title>$name</title><h1>$name</h1><p>$price</p><pre>$basket</pre></html>")
FIXED = "--fixed" in sys.argv


def find_product(number):
    if FIXED:
        return BY_NUMBER[number]
    for product in PRODUCTS:
        if product["number"] == number:
            return product
    raise KeyError(number)


def render_basket(numbers):
    lines = [find_product(number) for number in numbers]
    return json.dumps({"lines": lines, "total": sum(line["price"] for line in lines)}, indent=1)


class Shop(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        number = int(self.path.rpartition("/")[2])
        product = find_product(number)
        basket = render_basket([(number * step) % len(PRODUCTS) for step in (3, 7, 11, 13)])
        body = PAGE.substitute(product, basket=basket).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


def ask_for_pages(port, until, counts):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    number = 0
    while time.monotonic() < until:
        connection.request("GET", f"/product/{number * 37 % len(PRODUCTS)}")
        connection.getresponse().read()
        number += 1
    counts.append(number)


def main():
    seconds = float(next((word for word in sys.argv[1:] if not word.startswith("-")), 3))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="server", daemon=True).start()
    counts = []
    client = threading.Thread(target=ask_for_pages, args=(server.server_port, time.monotonic() + seconds, counts), name="client")
    client.start()
    client.join()
    print(f"{counts[0] / seconds:.0f} pages a second")


if __name__ == "__main__":
    main()
