"""A thread that computes for half a millisecond and then lets others have its CPU, again and again, for `seconds`. Beside others on that CPU (`cpu`, by
default the last that it may use), it waits most of the time, always in give_way(), where it uses hardly any CPU time."""
import os
import sys
import threading
import time

cpu = int(float(sys.argv[2])) if len(sys.argv) > 2 else max(os.sched_getaffinity(0))


def compute():
    x = 0
    for i in range(10000):
        x += i
    return x


def give_way():
    os.sched_yield()


def main(end):
    os.sched_setaffinity(0, {cpu})
    while time.monotonic() < end:
        compute()
        give_way()


thread = threading.Thread(target=main, args=(time.monotonic() + float(sys.argv[1]),), name="works")
thread.start()
print("ready", os.getpid(), cpu, flush=True)
thread.join()
