"""Leaves its CPU as often as it can (250,000 times a second, with a WORK of 550 some 90,000): passes a byte
to a partner on the same CPU, and waits for its return.

    switches.py SECONDS [WORK]

WORK: additions before each pass (default 0). A unit is a hundred passes, in each of which the first process
has left its CPU once.
"""
import os
import signal
import sys

import meter

seconds = meter.seconds_argument()
additions = range(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
there, back = os.pipe(), os.pipe()
partner = os.fork()
if partner == 0:
    read, write = os.read, os.write
    while read(there[0], 1):
        write(back[1], b"x")
    os._exit(0)


def work():
    read, write = os.read, os.write
    for _ in range(100):
        for _ in additions:
            pass
        write(there[1], b"x")
        read(back[0], 1)


try:
    meter.measure(work, seconds)
finally:
    os.kill(partner, signal.SIGKILL)
    os.waitpid(partner, 0)
