"""A generator that C runs in its own thread with no Python function below it, as programs in Rust do; for a few seconds."""
import collections
import os
import sys
import time

try:
    from _thread import start_new_thread
except ImportError:
    from thread import start_new_thread


def spin():
    x = 0
    for i in range(5000):
        x += i
    return x


def generate():
    while True:
        yield spin()


start_new_thread(collections.deque, (generate(), 0))
sys.stdout.write("ready %d\n" % os.getpid())
sys.stdout.flush()
time.sleep(float(sys.argv[1]))
