"""Runs one library at a time, as a test of native unwinding. Prints `ready` and works until it is killed.

    libraries.py NAME      NAMES prints those that can be imported

Standard library unless the name says otherwise: `make bench-unwinding` installs the packages.
"""
import os
import sys
import threading

DATA = os.urandom(20000) + b"the same words again and again " * 3000


def zlib():
    import zlib
    return lambda: zlib.decompress(zlib.compress(DATA, 6))


def bz2():
    import bz2
    return lambda: bz2.decompress(bz2.compress(DATA))


def lzma():
    import lzma
    return lambda: lzma.decompress(lzma.compress(DATA, preset=1))


def sqlite3():
    import sqlite3
    base = sqlite3.connect(":memory:")
    base.create_function("twice", 1, lambda number: number * 2)
    base.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
    base.executemany("INSERT INTO t VALUES (?, ?)", [(i, str(i * 7919 % 1000)) for i in range(2000)])
    return lambda: base.execute("SELECT b, count(*), sum(twice(a)) FROM t WHERE b LIKE '%1%' GROUP BY b ORDER BY 3").fetchall()


def openssl():
    import hashlib
    import ssl
    context = ssl.create_default_context()

    def work():
        hashlib.sha3_256(DATA).digest()
        hashlib.pbkdf2_hmac("sha256", b"word", b"salt", 200)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            context.wrap_bio(incoming, outgoing, server_hostname="example.org").do_handshake()
        except ssl.SSLWantReadError:
            pass
    return work


def json():
    import json
    rows = [{"name": "n%d" % i, "values": list(range(20)), "deeper": {"a": [1.5, None, True]}} for i in range(100)]
    text = json.dumps(rows)
    return lambda: json.dumps(json.loads(text, object_hook=lambda one: one), sort_keys=True)


def decimal():
    import decimal
    decimal.getcontext().prec = 400
    return lambda: (decimal.Decimal(2).sqrt() * decimal.Decimal(3).ln()).exp()


def expat():
    import xml.parsers.expat
    text = "<all>" + "<row name='x'>word &amp; word</row>" * 500 + "</all>"

    def work():
        parser = xml.parsers.expat.ParserCreate()
        parser.StartElementHandler = lambda name, attributes: len(name)
        parser.Parse(text, True)
    return work


def sre():
    import re
    text = "key: value, other: 12; " * 200
    return lambda: re.sub(r"(\w+): (?:(\d+)|(\w+))", lambda found: found.group(1), text)


def libc():
    import ctypes
    libc = ctypes.CDLL(None)
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))(lambda a, b: a[0] - b[0])
    numbers = [i * 7919 % 1000 for i in range(300)]

    def work():
        array = (ctypes.c_int * len(numbers))(*numbers)
        libc.qsort(array, len(numbers), 4, compare)
        text = ctypes.create_string_buffer(2000)
        for i in range(100):
            libc.snprintf(text, ctypes.c_size_t(2000), b"%s %d %lx", b"word" * 100, i, ctypes.c_long(i))
            libc.strtol(b"123456789", None, 10)
            os.stat("/")
    return work


def interpreter():
    class Attribute(object):
        def __getattr__(self, name):
            return [name] * 3

    def numbers(count):
        for i in range(count):
            yield i * i

    def work():
        made = {str(i): [i] for i in numbers(300)}
        made["cycle"] = made
        found = sorted(made, key=lambda key: len(Attribute().anything) + len(key))
        "".join(found).upper().encode().hex()
        return 3 ** 3000 % 1000007
    return work


def libstdcxx():
    """A file compiled by the benchmark or the test."""
    import ctypes
    library = ctypes.CDLL(os.environ["PHLOX_CXX_LIBRARY"])
    call_back = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda number: number + 1)
    return lambda: library.work(call_back)


def numpy():
    import numpy
    values = numpy.random.default_rng(1).random(30000)
    matrix = values[:10000].reshape(100, 100)

    def work():
        numpy.sort(values)
        numpy.fft.fft(values)
        numpy.linalg.svd(matrix)
        matrix @ matrix
        numpy.einsum("ij,jk->i", matrix, matrix)
        numpy.vectorize(lambda one: one + 1)(values[:200])
        numpy.array([str(one) for one in values[:50]])
    return work


def scipy():
    import numpy
    import scipy.integrate
    import scipy.optimize
    import scipy.sparse.linalg
    import scipy.spatial
    import scipy.special
    points = numpy.random.default_rng(1).random((400, 3))
    sparse = scipy.sparse.random(300, 300, density=0.05, random_state=1) + scipy.sparse.identity(300)

    def work():
        scipy.spatial.cKDTree(points).query(points, k=5)
        scipy.integrate.quad(lambda x: x * x, 0, 1)
        scipy.optimize.minimize(lambda x: (x * x).sum(), [1.0, 2.0, 3.0])
        scipy.sparse.linalg.spsolve(sparse.tocsc(), numpy.ones(300))
        scipy.special.jv(1.5, points)
    return work


def sklearn():
    import numpy
    from sklearn.cluster import KMeans
    from sklearn.ensemble import RandomForestRegressor
    rows = numpy.random.default_rng(1).random((400, 8))

    def work():
        RandomForestRegressor(4, n_jobs=1).fit(rows, rows[:, 0]).predict(rows)
        KMeans(3, n_init=1).fit(rows)
    return work


def polars():
    import polars
    frame = polars.DataFrame({"a": [i % 97 for i in range(20000)], "b": [str(i % 13) for i in range(20000)]})

    def work():
        frame.group_by("a").agg(polars.col("b").n_unique(), polars.len()).sort("a")
        frame.lazy().filter(polars.col("b").str.contains("1")).join(frame.lazy().head(100), on="a").collect()
        frame.head(200)["a"].map_elements(lambda one: one + 1, return_dtype=polars.Int64)
    return work


def orjson():
    import orjson
    rows = [{"name": "n%d" % i, "other": {1, 2}, "number": i / 7} for i in range(300)]
    return lambda: orjson.loads(orjson.dumps(rows, default=list, option=orjson.OPT_SORT_KEYS))


def pydantic_core():
    from pydantic_core import SchemaValidator, core_schema as schema
    check = schema.no_info_after_validator_function(lambda one: one + 1, schema.int_schema())
    validator = SchemaValidator(schema.list_schema(schema.typed_dict_schema({"a": schema.typed_dict_field(check)})))
    rows = [{"a": str(i)} for i in range(300)]
    return lambda: validator.validate_python(rows)


def lxml():
    import lxml.etree
    text = "<all>" + "<row name='x'><part>word</part></row>" * 300 + "</all>"
    return lambda: lxml.etree.fromstring(text).xpath("count(//row[@name='x']/part)")


WORK = {one.__name__: one for one in (zlib, bz2, lzma, sqlite3, openssl, json, decimal, expat, sre, libc, interpreter, libstdcxx, numpy, scipy,
                                      sklearn, polars, orjson, pydantic_core, lxml)}


def until_the_end():
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1] == "NAMES":
        for name, make in WORK.items():
            try:
                make()
            except (ImportError, KeyError):
                continue
            print(name)
        sys.exit()
    turn = WORK[sys.argv[1]]()
    turn()  # loads everything
    watcher = threading.Thread(target=until_the_end)
    watcher.daemon = True
    watcher.start()
    print("ready")
    sys.stdout.flush()
    while True:
        turn()
