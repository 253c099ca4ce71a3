"""A program with native stacks: Python in C in Python, its own extension, a thread without Python, a blocked
thread. argv: the folder of the built extension ("" for none), then what to do."""
import ctypes
import functools
import os
import re
import sys
import threading
import time

folder, what = sys.argv[1:3]
if folder and what not in ("cython", "late"):
    sys.path.insert(0, folder)
    import extension


def busy(turns=400):
    return sum(i * i for i in range(turns))


def by_sorted():
    sorted([3, 1, 2], key=key_of)


def key_of(one):
    by_reduce()
    return one


def by_reduce():
    functools.reduce(add_up, [1, 2, 3])


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
        by_generator()
        return name


def by_attribute():
    Attribute().anything


def by_generator():
    next(generator())


def generator():
    busy()
    yield 1


def nested():
    while True:
        by_sorted()


def naps():
    """Runs and sleeps in turn, a tenth of a millisecond each."""
    while True:
        busy(2000)
        time.sleep(0.0001)


def asleep():
    extension.sleep_by_frame_pointer()


def trampolines():
    """CPython buffers what it writes about its trampolines: the calls after `nested` flush it."""
    by_sorted()
    for i in range(300):
        exec("def one(): pass\none()", {})
    nested()


def in_extension():
    while True:
        extension.spin(200000)


def without_gil():
    while True:
        extension.spin_without_gil(200000)


def called_from_c():
    extension.call(in_extension)


def for_a_while():
    busy(50000)


def late():
    """An extension that is loaded during the search for extensions, and whose functions are never the innermost frame."""
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        busy()
    sys.path.insert(0, folder)
    import extension
    while True:
        extension.call(for_a_while)


def wait():
    os.read(os.pipe()[0], 1)


def blocked():
    while True:
        busy()


def pool():
    while True:
        busy()


def visited():
    busy(5000)


def visitor():
    while True:
        time.sleep(1)


def cython():
    sys.path.insert(0, folder)
    import fast
    fast.from_python(called_by_cython)


def called_by_cython():
    sum(range(2000))


def numpy_sort():
    while True:
        numpy.sort(values)


# Slow preparations come before `ready`.
if what == "blocked":
    waiter = threading.Thread(target=wait, name="waiter")
    waiter.daemon = True
    waiter.start()
if what == "pool":
    extension.start_pool()
if what == "visitor":
    extension.start_visitor(visited)
if what == "numpy_sort":
    import numpy
    values = numpy.random.default_rng(1).random(300000)
print("ready", os.getpid())
sys.stdout.flush()
globals()[what]()
