"""A NumPy job: a third of the time it computes."""
import sys
import time

import numpy

VALUES = numpy.random.default_rng(1).random((300, 300))


def step(values):
    values = values @ values.T
    values /= numpy.linalg.norm(values)
    return numpy.sort(values, axis=1)


sys.stdout.write("ready\n")
sys.stdout.flush()
values = VALUES
while True:
    begun = time.monotonic()
    while time.monotonic() - begun < 1:
        values = step(values)
    time.sleep(2)
