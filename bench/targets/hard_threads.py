"""The hard case in several threads that constantly pass on the GIL: a sample of one must not contain another's frames.

    hard_threads.py SECONDS [DEPTH] [THREADS]

Every thread alternates between a0 > a1 > ... > aN and b0 > b1 > ... > bN; occasionally it releases the GIL by itself
(compressing, a short sleep), and the switch interval is short, so that the GIL changes hands at any moment. Possible stacks are
those of hard.py, for every thread.
"""
import sys
import threading
import time
import zlib

import meter
import two_families

seconds = meter.seconds_argument()
depth = int(sys.argv[2]) if len(sys.argv) > 2 else 20
count = int(sys.argv[3]) if len(sys.argv) > 3 else 3
two_families.define(depth, globals())
data = b"phlox" * 4000
if hasattr(sys, "setswitchinterval"):
    sys.setswitchinterval(2e-4)


def rounds(number):
    for i in range(400):
        a0()  # noqa: F821
        b0()  # noqa: F821
    if number % 3 == 0:
        zlib.compress(data)
    elif number % 3 == 1:
        time.sleep(0.0002)


all_started = threading.Event()  # without a GIL, running threads would delay the start of a crowd by half a minute


def run(number):
    all_started.wait()
    while True:
        rounds(number)


for number in range(1, count):
    thread = threading.Thread(target=run, args=(number,))
    thread.daemon = True
    thread.start()
all_started.set()
meter.measure(lambda: rounds(0), seconds, lambda: {"depth": depth, "threads": count})
