"""Uses as much CPU time in the C code of a library as in the interpreter, one function each, in turn, until it is killed."""
import os
import sys
import time
import zlib

DATA = os.urandom(1 << 16)
TURN = 0.05


def squeeze():
    return zlib.compress(DATA, 9)


def count():
    n = 0
    for i in range(10000):
        n += i & 7
    return n


print("ready %d" % os.getpid())
sys.stdout.flush()
while True:
    for work in (squeeze, count):
        until = time.process_time() + TURN
        while time.process_time() < until:
            work()
