"""A worker of a queue: a thread gets jobs, another one does them; several kinds, with pauses."""
import csv
import io
import json
import queue
import random
import re
import sys
import threading
import time
import zlib

JOBS = queue.Queue()


def thumbnail():
    return zlib.compress(bytes(i * 7 & 255 for i in range(60_000)), 9)


def report():
    out = io.StringIO()
    csv.writer(out).writerows([i, i * i, "row %d" % i] for i in range(3_000))
    return sum(len(row) for row in csv.reader(io.StringIO(out.getvalue())))


def search():
    return re.findall(r"(\w+)@(\w+)\.com", "somebody@example.com, nobody at all; " * 2_000)


def send_mail():
    time.sleep(0.05)
    return json.dumps({"to": ["somebody"] * 500})


def produce():
    while True:
        time.sleep(random.expovariate(4))
        JOBS.put(random.choice([thumbnail, report, search, send_mail]))


threading.Thread(target=produce, name="consumer", daemon=True).start()
sys.stdout.write("ready\n")
sys.stdout.flush()
while True:
    JOBS.get()()
