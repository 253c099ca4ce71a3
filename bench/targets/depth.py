"""One deep stack that never changes: d0 > d1 > ... > dN, whose leaf spins.

    depth.py SECONDS [DEPTH]
"""
import sys

import meter

seconds = meter.seconds_argument()
depth = int(sys.argv[2]) if len(sys.argv) > 2 else 50
sys.setrecursionlimit(depth + 1000)
lines = ["def d%d(): return d%d()" % (index, index + 1) for index in range(depth - 1)]
lines.append("def d%d(): return measure(work, seconds, extra)" % (depth - 1))
measure = meter.measure


def work():
    x = 0
    for i in range(4000):
        x += i
    return x


def extra():
    return {"depth": depth}


exec(compile("\n".join(lines), "deep.py", "exec"))
d0()  # noqa: F821
