"""argv: what. Makes a profiler hold as much memory as possible, until it is killed; prints `ready PID` first. CPython 3.11 and later.

  names    functions with new names of three million letters
  files    functions of new files with paths of three million letters
  lines    new functions with line tables of 12 MB
  many     new functions with ordinary names, a hundred thousand of them kept
  deep     stacks of a thousand functions, all of them new, with long names
  threads  threads with names of three million letters
"""
import itertools
import os
import sys
import threading
import time

LETTERS = 3000000
number = itertools.count()


def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def leaf():
    spin(0.003)


def made(**changes):
    return type(leaf)(leaf.__code__.replace(**changes), globals())


def names():
    name = "n" * LETTERS + str(next(number))
    made(co_name=name, co_qualname=name)()


def files():
    made(co_filename="/" + "f" * LETTERS + str(next(number)))()


def table():
    """Of a code unit for every line: line + 1, without columns (Objects/locations.md)."""
    return b"\xe8\x02" * 6000000


def lines(of=[]):
    of = of or of.append(table()) or of
    made(co_linetable=of[0], co_name="lines%d" % next(number))()


def many(kept=[]):
    if len(kept) < 100000:
        kept.extend(made(co_name="kept%d" % next(number)) for _ in range(1000))
    for _ in range(50):
        kept[next(number) % len(kept)]()


def down(more):
    if more == 0:
        return leaf()
    return type(down)(down.__code__.replace(co_name="d" * 20000 + str(next(number))), globals())(more - 1)


def deep():
    down(1000)


def threads():
    for _ in range(20):
        threading.Thread(target=time.sleep, args=(2,), name="t" * LETTERS + str(next(number)), daemon=True).start()
    spin(0.1)


sys.setrecursionlimit(10000)
greed = globals()[sys.argv[1]]
print("ready", os.getpid(), flush=True)
while True:
    greed()
