"""Measures the CPU and wall time of a program's named parts, and prints them as its last line.

    with part("burn"): ...      inside the function of that name
    tell(waits=12)              prints the line TRUTH {...}; the harness reads it
"""
import contextlib
import json
import os
import sys
import threading
import time

lock = threading.Lock()
parts = {}


@contextlib.contextmanager
def part(name):
    wall, cpu = time.perf_counter(), time.thread_time()
    try:
        yield
    finally:
        wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
        with lock:
            seen = parts.setdefault(name, {"wall": 0.0, "cpu": 0.0, "count": 0})
            seen["wall"] += wall
            seen["cpu"] += cpu
            seen["count"] += 1


def tell(**more):
    # One write: a server's other threads may print at the same moment.
    sys.stdout.write("TRUTH " + json.dumps(dict({"parts": parts, "pid": os.getpid(), "cpu": time.process_time()}, **more)) + "\n")
    sys.stdout.flush()


def spin(seconds):
    """Computes for `seconds` of this thread's CPU time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(200))


def over(programs):
    """Runs the program named on the command line: script.py NAME SECONDS"""
    programs[sys.argv[1]](float(sys.argv[2]))
