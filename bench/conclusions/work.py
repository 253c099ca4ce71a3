"""Programs that compute, each in a different way. `side` is always a quarter of the main part's CPU time."""
import os
import gc
import hashlib
import io
import json
import logging
import re
import sqlite3
import sys
import time
import zlib

from truth import over, part, spin, tell


def side(seconds):
    with part("side"):
        spin(seconds)


def repeated(seconds, main):
    """Repeats `main()` until it has used `seconds` of CPU time, with `side` after each tenth of it."""
    used, marked = 0.0, 0.0
    while used < seconds:
        begun = time.thread_time()
        main()
        used += time.thread_time() - begun
        if used - marked > seconds / 10:
            side((used - marked) / 4)
            marked = used
    side((used - marked) / 4)
    tell()


def recursion(seconds):
    def fibonacci(n):
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    def recursive():
        with part("recursive"):
            fibonacci(18)

    repeated(seconds, recursive)


def deep(seconds):
    def down(n):
        if n:
            return down(n - 1)
        return sum(range(2000))

    def deep_calls():
        with part("deep_calls"):
            for _ in range(20):
                down(2500)

    sys.setrecursionlimit(10000)
    repeated(seconds, deep_calls)


def generators(seconds):
    def numbers(n):
        for i in range(n):
            yield i * i % 7

    def generated():
        with part("generated"):
            sum(x for x in numbers(20000) if x)

    repeated(seconds, generated)


def expressions(seconds):
    text = "aaaa bbbb 12:34:56 value=17 " * 200
    pattern = re.compile(r"(\w+)\s+(\w+)\s+(\d+):(\d+):(\d+)\s+value=(\d+)")

    def matched():
        with part("matched"):
            for _ in range(20):
                pattern.findall(text)

    repeated(seconds, matched)


def documents(seconds):
    document = [{"id": i, "name": "name %d" % i, "values": list(range(20))} for i in range(300)]

    def encoded():
        with part("encoded"):
            json.loads(json.dumps(document))

    repeated(seconds, encoded)


def tables(seconds):
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE t (a INTEGER, b TEXT)")
    database.executemany("INSERT INTO t VALUES (?, ?)", ((i, str(i % 100)) for i in range(20000)))

    def queried():
        with part("queried"):
            database.execute("SELECT b, sum(a), count(*) FROM t GROUP BY b ORDER BY 2").fetchall()

    repeated(seconds, queried)


def in_c(seconds):
    block = bytes(range(256)) * 2000

    def compressed():
        with part("compressed"):
            zlib.compress(block, 6)
            hashlib.sha256(block).digest()

    repeated(seconds, compressed)


def logs(seconds):
    log = logging.getLogger("bench")
    log.addHandler(logging.StreamHandler(io.StringIO()))
    log.setLevel(logging.INFO)

    def logged():
        with part("logged"):
            for i in range(200):
                log.info("request %d took %s", i, 0.5)

    repeated(seconds, logged)


def collections(seconds):
    """Most of the time of `littered` is spent in the cyclic garbage collector."""
    kept = [[i] for i in range(300000)]
    in_collector = [0.0, 0.0]

    def timed(phase, _):
        if phase == "start":
            in_collector[1] = time.thread_time()
        else:
            in_collector[0] += time.thread_time() - in_collector[1]

    gc.callbacks.append(timed)

    def littered():
        with part("littered"):
            for _ in range(3):
                gc.collect()

    used = 0.0
    while used < seconds:
        begun = time.thread_time()
        littered()
        used += time.thread_time() - begun
    side(used / 4)
    del kept
    tell(collector=in_collector[0])


def imports(seconds):
    """A typical program start: one third of the time is imports."""
    def import_much():
        with part("import_much"):
            end = time.thread_time() + seconds / 3
            while time.thread_time() < end:
                for name in ("email.message", "email.parser", "xml.dom.minidom", "unittest", "unittest.case", "http.client", "asyncio"):
                    __import__(name)
                for name in [n for n in sys.modules if n.split(".")[0] in ("email", "xml", "unittest", "http", "asyncio")]:
                    del sys.modules[name]

    import_much()
    side(seconds * 2 / 3)
    tell()


def arrays(seconds):
    """Like a machine-learning job: makes batches, then fits a model."""
    import numpy as np

    def make_batch():
        with part("make_batch"):
            return np.random.rand(300, 300)

    def fit_batch(batch):
        with part("fit_batch"):
            for _ in range(3):
                batch = batch @ batch
                batch /= batch.max()

    end = time.thread_time() + seconds
    while time.thread_time() < end:
        fit_batch(make_batch())
    tell()


def frames(seconds):
    import numpy as np
    import pandas as pd

    def apply_rows(frame):
        with part("apply_rows"):
            return frame.apply(lambda row: row["a"] * 2 + row["b"], axis=1)

    def group_rows(frame):
        with part("group_rows"):
            for _ in range(20):
                frame.groupby("b")["a"].sum()

    frame = pd.DataFrame({"a": np.random.rand(3000), "b": np.random.randint(0, 50, 3000)})
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        apply_rows(frame)
        group_rows(frame)
    tell()


def plain(seconds):
    """Pure Python: calls no extension module."""
    def count_words():
        with part("count_words"):
            words = {}
            for i in range(20000):
                key = "k%d" % (i % 100)
                words[key] = words.get(key, 0) + i * 3 % 7

    repeated(seconds, count_words)


if __name__ == "__main__":
    over({f.__name__: f for f in (recursion, deep, generators, expressions, documents, tables, in_c, logs, collections, imports, arrays, frames, plain)})
    # The interpreter's exit comes after the truth was printed: 0.2 s with pandas.
    os._exit(0)
