"""Python in C in Python, eight times nested; the innermost function reports its callers and runs until it is killed.
A program, and a module whose say() and spin() others use. Python 3.8 to 3.15."""
import ctypes
import functools
import json
import os
import re
import sys
import zlib


def by_sorted():
    sorted([2, 1], key=key_of)


def key_of(one):
    by_reduce()
    return one


def by_reduce():
    functools.reduce(add_up, [1, 2])


def add_up(a, b):
    by_sub()
    return a + b


def by_sub():
    re.sub("b", replaced, "abc")


def replaced(match):
    by_ctypes()
    return "x"


def by_ctypes():
    callback(1)


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
def callback(number):
    by_attribute()
    return number


class Attribute(object):
    def __getattr__(self, name):
        by_import()
        return name


def by_attribute():
    Attribute().anything


def by_import():
    import nested_inside  # whose body calls imported()


def imported():
    next(generator())


def generator():
    last()
    yield 1


def last():
    say()
    while True:
        spin()


def say():
    """The callers of last(), root first: [function, file, line]."""
    frame, frames = sys._getframe(1), []
    while frame is not None:
        frames.append([frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    print(json.dumps(frames[::-1]))
    print("ready", os.getpid())
    sys.stdout.flush()


def spin():
    """Random stops hit Python, C, Python called by C, and libraries."""
    total = 0
    for i in range(300):
        total += i * i
    values = sorted(range(200), key=small)
    text = json.dumps(values).encode()
    zlib.crc32(zlib.compress(text * 4))
    return re.sub("1", larger, "0123456789" * 20)


def small(one):
    return -one % 7


def larger(match):
    return str(functools.reduce(plus, range(5)))


def plus(a, b):
    return a + b


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    by_sorted()
