"""The hard case of short calls: leaves of tens of nanoseconds, generators and exceptions, in two families.

    leaf.py SECONDS

Names identify a frame: family, index, then the path to it as letters; a child's letters begin with its
parent's (a1 > a2g > a3gl). A stack that mixes families, skips an index or whose letters do not nest
never existed. By symmetry a and b take equal shares; each function's calls are counted.
"""
import meter

calls = {"rounds": 0}

FAMILY = """
def F3gl(x): return x
def F3gm(x): return x

def F2g():
    yield F3gl(1)
    yield F3gm(2)

def F4ee(x): raise KeyError(x)

def F3e(x):
    return F4ee(x)

def F2e(x):
    try:
        return F3e(x)
    except KeyError:
        return F3eh(x)

def F3eh(x): return x

def F3yi():
    yield 1
    yield 2

def F2y():
    yield from F3yi()

def F2s(x): return x

def F1():
    F2s(1)
    F2s(2)
    for _ in F2g():
        pass
    F2e(3)
    for _ in F2y():
        pass
    F2s(4)

def F0(): F1()
"""
for family in "ab":
    exec(compile(FAMILY.replace("F", family), "family_%s.py" % family, "exec"))


def work():
    for _ in range(100):
        a0()  # noqa: F821
        b0()  # noqa: F821
    calls["rounds"] += 100


meter.measure(work, meter.seconds_argument(), lambda: {"calls": calls})
