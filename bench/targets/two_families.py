"""The functions of the hard cases: a0 > a1 > ... > aN and b0 > b1 > ... > bN, each calling only the next one.
Runs on CPython 2.7 and 3.6 or later.
"""
import sys


def define(depth, into):
    """Defines them in a module's globals; a0() and b0() are the first."""
    lines = []
    for family in "ab":
        for index in range(depth - 1):
            lines.append("def %s%d(): return %s%d()" % (family, index, family, index + 1))
        lines.append("def %s%d(): return 1" % (family, depth - 1))
    exec(compile("\n".join(lines), "families.py", "exec"), into)
    sys.setrecursionlimit(max(sys.getrecursionlimit(), depth + 1000))
