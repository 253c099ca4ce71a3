#!/usr/bin/env python3
"""A night's work of a small shop: something real to profile, with nothing but the standard library.

It makes up the day's orders, reads them back, checks and sums them up, files them in a database, packs an archive,
and counts the words of Python's own library. What a profile of it should show:

  main thread   reading (csv, json, regular expressions), adding up with decimal, a database, a report
  packer        compressing, which runs in C and lets other threads run
  words         tokenizing Python sources: pure Python, competes with the main thread for the GIL
  postman       nearly always waiting: for the queue, and for an answer that takes its time

    python3 examples/orders.py [SECONDS]      about 6 seconds when nothing is said
"""
import collections
import csv
import decimal
import io
import json
import pathlib
import queue
import random
import re
import sqlite3
import sys
import threading
import time
import tokenize
import zlib

ITEMS = ["kettle", "teapot", "cup", "saucer", "spoon", "strainer", "caddy", "tray", "cosy", "trivet"]
LINE = re.compile(r"(?P<count>\d+)\s*x\s*(?P<item>[a-z]+)\s*@\s*(?P<price>\d+\.\d\d)")


def make_up_orders(dice, count):
    """The day's orders as the text that the shop's till would write."""
    out = io.StringIO()
    writer = csv.writer(out)
    for number in range(count):
        lines = "; ".join(
            f"{dice.randint(1, 6)} x {dice.choice(ITEMS)} @ {dice.randint(1, 90)}.{dice.randint(0, 99):02}"
            for _ in range(dice.randint(1, 5)))
        extra = json.dumps({"gift": dice.random() < 0.2, "note": "quickly " * dice.randint(0, 4), "table": number % 17})
        writer.writerow([number, f"customer-{dice.randint(1, 400)}", lines, extra])
    return out.getvalue()


def read_order(row):
    number, customer, lines, extra = row
    goods = [(int(m["count"]), m["item"], m["price"]) for m in LINE.finditer(lines)]
    return {"number": int(number), "customer": customer, "goods": goods, "extra": json.loads(extra)}


def read_orders(text):
    return [read_order(row) for row in csv.reader(io.StringIO(text))]


def price_of(order):
    total = decimal.Decimal(0)
    for count, _, price in order["goods"]:
        total += count * decimal.Decimal(price)
    if order["extra"]["gift"]:
        total *= decimal.Decimal("1.03")
    return total.quantize(decimal.Decimal("0.01"))


def sum_up(orders):
    by_customer = collections.defaultdict(decimal.Decimal)
    for order in orders:
        by_customer[order["customer"]] += price_of(order)
    return sorted(by_customer.items(), key=lambda pair: (-pair[1], pair[0]))


def file_away(shelf, orders):
    with shelf:
        shelf.executemany(
            "INSERT INTO line VALUES (?, ?, ?, ?)",
            ((order["number"], item, count, price) for order in orders for count, item, price in order["goods"]))


def ask_the_shelf(shelf):
    return shelf.execute(
        "SELECT item, sum(count), round(sum(count * price), 2) FROM line GROUP BY item ORDER BY 3 DESC").fetchall()


class Report:
    def __init__(self):
        self.days = []

    def add(self, customers, items):
        self.days.append({"best": customers[:3], "items": items})

    def text(self):
        return json.dumps(self.days, default=str, indent=1)


def pack(parcels, packed):
    """The packer: takes texts, compresses them; the time is zlib's, not Python's."""
    for text in iter(parcels.get, None):
        packed.append(len(zlib.compress(text.encode(), 9)))


def count_words(until, words):
    """Counts the names in Python's own library, file after file."""
    for path in sorted(pathlib.Path(json.__file__).parent.parent.glob("*.py")):
        try:
            with tokenize.open(path) as source:
                for token in tokenize.generate_tokens(source.readline):
                    if token.type == tokenize.NAME:
                        words[token.string] += 1
                    if time.monotonic() > until:
                        return
        except (SyntaxError, UnicodeDecodeError, OSError, tokenize.TokenError):
            pass


def ask_the_post_office(letter):
    time.sleep(0.05)  # stands for an answer over a network
    return len(letter)


def deliver(letters, delivered):
    """The postman: waits for letters, and for the post office."""
    for letter in iter(letters.get, None):
        delivered.append(ask_the_post_office(letter))


def main(seconds):
    dice = random.Random(1661)
    until = time.monotonic() + seconds
    parcels, letters = queue.Queue(maxsize=2), queue.Queue()
    packed, delivered, words = [], [], collections.Counter()
    threads = [
        threading.Thread(target=pack, args=(parcels, packed), name="packer"),
        threading.Thread(target=count_words, args=(until, words), name="words"),
        threading.Thread(target=deliver, args=(letters, delivered), name="postman"),
    ]
    for thread in threads:
        thread.start()
    shelf = sqlite3.connect(":memory:")
    shelf.execute("CREATE TABLE line (number INTEGER, item TEXT, count INTEGER, price REAL)")
    report = Report()
    orders_read = 0
    while time.monotonic() < until:
        text = make_up_orders(dice, 1500)
        orders = read_orders(text)
        orders_read += len(orders)
        customers = sum_up(orders)
        file_away(shelf, orders)
        report.add(customers, ask_the_shelf(shelf))
        parcels.put(text * 6)
        letters.put(report.text())
    parcels.put(None)
    letters.put(None)
    for thread in threads:
        thread.join()
    print(f"{orders_read} orders read, {sum(packed)} bytes packed, {len(delivered)} letters delivered, "
          f"{sum(words.values())} words counted")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 6.0)
