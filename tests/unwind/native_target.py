"""Python in C in Python, several libraries deep, for ever: what the unwinder is held against. Python 2.7 to 3.15."""
import ctypes
import functools
import hashlib
import json
import re
import sys
import threading
import time
import zlib


class Attribute(object):
    def __getattr__(self, name):
        return functools.reduce(lambda a, b: deeper(a + b), [1, 2, 3])

    def __add__(self, other):
        return re.sub("b", lambda m: str(leaf()), "abc")


def leaf():
    data = json.dumps({"key": list(range(40))}).encode() * 20
    zlib.compress(data)
    hashlib.sha256(data).hexdigest()
    time.time()
    return len(sorted(data, key=lambda byte: -byte if isinstance(byte, int) else byte))


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
def called_back(number):
    return len(Attribute() + number)


def generator():
    yield called_back(1)
    yield leaf()


def deeper(number):
    if number == 3:
        list(map(lambda one: next(iter(generator())), [1]))
    return number


def turn():
    sorted([2, 1], key=lambda one: Attribute().anything)


def until_the_end():
    sys.stdin.read()
    done.set()


done = threading.Event()
watcher = threading.Thread(target=until_the_end)
watcher.daemon = True
watcher.start()
print("ready")
sys.stdout.flush()
while not done.is_set():
    turn()
