"""Known shares: three functions take 10, 30 and 60 % of the time, measured inside by thread_time.

    shares.py SECONDS

`truth` in the report: CPU seconds spent in each (from call to return, by the thread's own clock).
"""
import time

import meter

truth = {"ten": 0.0, "thirty": 0.0, "sixty": 0.0}
clock = time.thread_time


def ten(n):
    x = 0
    for i in range(n):
        x += i
    return x


def thirty(n):
    x = 0
    for i in range(n):
        x += i
    return x


def sixty(n):
    x = 0
    for i in range(n):
        x += i
    return x


UNIT = 10000


def work():
    t0 = clock()
    ten(UNIT)
    t1 = clock()
    thirty(3 * UNIT)
    t2 = clock()
    sixty(6 * UNIT)
    t3 = clock()
    truth["ten"] += t1 - t0
    truth["thirty"] += t2 - t1
    truth["sixty"] += t3 - t2


meter.measure(work, meter.seconds_argument(), lambda: {"truth": truth})
