"""The hard case: two families of functions, never mixed, whose whole stack is replaced every few microseconds.

    hard.py SECONDS [DEPTH]     a0 > a1 > ... > aN and b0 > b1 > ... > bN in fast alternation

A possible stack has the frames that drive it (any name that is not a family's), then only one family, with
indices 0, 1, 2, ... without a gap. Any other stack never existed. All functions are alike and so are the
frames: torn copies tile perfectly, which makes this case hard.
By symmetry a and b, and all indices but the last of a family, take equal shares: work() has so large a frame that the chunk of
data stack around it (3.11+: Python/pystate.c, push_chunk) has room for a whole family. Otherwise one function would pay for
an mmap at every call, and a stopped reference sees such a function too often, since a stop waits until its system call ends.
"""
import sys

import meter
import two_families

seconds = meter.seconds_argument()
depth = int(sys.argv[2]) if len(sys.argv) > 2 else 50
two_families.define(depth, globals())
rounds = max(1, (2000 if depth <= 100 else 40000) // depth)
calls = [0]


exec("""
def work():
    for _ in range(rounds):
        a0()
        b0()
    calls[0] += rounds
    if False:
        %s = 0
""" % " = ".join("v%d" % i for i in range(9000 if depth > 100 else 1)))


meter.measure(work, seconds, lambda: {"calls": {"each function": calls[0]}, "depth": depth})
