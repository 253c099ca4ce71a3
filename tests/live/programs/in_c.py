"""Uses CPU time in the C code of a library and in the interpreter itself by turns, one function each, until it is ended."""
import os
import sys
import zlib

DATA = os.urandom(1 << 20)


def squeeze():
    return zlib.compress(DATA, 9)


def count():
    n = 0
    for i in range(1000000):
        n += i & 7
    return n


print("ready %d" % os.getpid())
sys.stdout.flush()
while True:
    squeeze()
    count()
