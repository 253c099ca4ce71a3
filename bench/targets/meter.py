"""Common code of all targets: reports when it is ready, runs its work for a while, reports what it did.

A target prints `ready PID` on a line of its own, works for the given seconds (or until SIGTERM), and ends with one
line of JSON:
    units      how much work was done (calls of `work`)
    wall, cpu  seconds of the measured span (monotonic clock; thread CPU clock)
    windows    [[monotonic time, units so far, thread CPU so far], ...], about a hundred a second, so that
               a benchmark can compare spans of one process with and without a profiler
Standard library only; runs on CPython 2.7 and 3.6 or later.
"""
import json
import os
import signal
import sys
import time

WINDOW = 0.01
clock = getattr(time, "monotonic", time.time)
thread_clock = getattr(time, "thread_time", getattr(time, "clock", time.time))


def ready():
    sys.stdout.write("ready %d\n" % os.getpid())
    sys.stdout.flush()


def report(numbers):
    sys.stdout.write(json.dumps(numbers) + "\n")
    sys.stdout.flush()


def measure(work, seconds, extra=None, done_by_others=lambda: 0):
    """Calls work() for `seconds`. work() should take 0.1 to 5 ms, so that the clock stays cheap.

    `done_by_others`: units done by other threads, which count in the windows.
    """
    ready()
    windows = []
    units = 0
    start = clock()
    cpu_start = thread_clock()
    end = [start + seconds]
    signal.signal(signal.SIGTERM, lambda *_: end.__setitem__(0, start))
    next_window = start + WINDOW
    now = start
    while now < end[0]:
        work()
        units += 1
        now = clock()
        if now >= next_window:
            windows.append([now, units + done_by_others(), thread_clock() - cpu_start])
            next_window = now + WINDOW
    numbers = {"pid": os.getpid(), "units": units, "wall": now - start, "cpu": thread_clock() - cpu_start,
               "windows": windows}
    if extra is not None:
        numbers.update(extra())
    report(numbers)


def seconds_argument(default=10.0):
    return float(sys.argv[1]) if len(sys.argv) > 1 else default
