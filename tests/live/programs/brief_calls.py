"""Threads that compute for some microseconds and then make a system call that takes less than one, again and again: `threads` of them, for `seconds`.
Prints the share of its time in the function with the call, measured on one call alone."""
import os
import sys
import threading
import time


def compute():
    x = 0
    for i in range(60):
        x += i
    return x


def call():
    os.getppid()


def main(end):
    while time.monotonic() < end:
        for _ in range(1000):
            compute()
            call()


def taken_by(function):
    begin = time.perf_counter()
    for _ in range(20000):
        function()
    return time.perf_counter() - begin


in_call, computing = taken_by(call), taken_by(compute)
threads = [threading.Thread(target=main, args=(time.monotonic() + float(sys.argv[1]),)) for _ in range(int(sys.argv[2]))]
for thread in threads:
    thread.start()
print("ready", os.getpid(), in_call / (in_call + computing), flush=True)
for thread in threads:
    thread.join()
