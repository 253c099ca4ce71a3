"""Alternates work and short pauses: are samples biased towards the target's own system calls?

    pauses.py SECONDS

One round is head (about 100 us of work), pause (a sleep), tail (work), write (a short system call, many
times). `truth`: wall seconds in each, by the program's own clock. A sampler that is scheduled in only when the target blocks or
returns from the kernel sees `pause` and its successor too often.
"""
import os
import time

import meter

truth = {"head": 0.0, "pause": 0.0, "tail": 0.0, "write": 0.0}
clock = time.perf_counter
null = os.open(os.devnull, os.O_WRONLY)


def head():
    x = 0
    for i in range(4000):
        x += i
    return x


def tail():
    x = 0
    for i in range(4000):
        x += i
    return x


def pause():
    time.sleep(0.0001)


def write():
    for _ in range(200):
        os.write(null, b"x")


def work():
    t0 = clock()
    head()
    t1 = clock()
    pause()
    t2 = clock()
    tail()
    t3 = clock()
    write()
    t4 = clock()
    truth["head"] += t1 - t0
    truth["pause"] += t2 - t1
    truth["tail"] += t3 - t2
    truth["write"] += t4 - t3


meter.measure(work, meter.seconds_argument(), lambda: {"truth": truth})
