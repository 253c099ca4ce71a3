# coding: utf-8
"""Code whose lines are hard to determine, and which reports itself where it is.

    lines.py FILE     writes to FILE every stack that spot() was called with, by sys._getframe(), as JSON; prints
                      `ready PID`; repeats until it is killed

A stack is [[function, file, first line, line], ...], the caller of spot() first. Python 2.7 to 3.15.
"""
import functools
import json
import os
import re
import sys
import time

clock = getattr(time, "perf_counter", time.time)
SEEN = set()
PIECES = []


def spot(*values):
    stack = []
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        stack.append((code.co_name, code.co_filename, code.co_firstlineno, frame.f_lineno))
        frame = frame.f_back
    SEEN.add(tuple(stack))
    end = clock() + 0.001
    while clock() < end:
        pass
    return values[0] if values else 1


def piece(name, text):
    try:
        code = compile(text, name, "exec")
    except SyntaxError:  # of a later version
        return
    names = {"spot": spot, "__name__": name, "functools": functools, "re": re}
    exec(code, names)
    PIECES.append(names["run"])


piece("multi-line calls.py", """
def f(*values, **named):
    return values
def run():
    f(
        1,
        spot(),
        f(2,
          spot(
              3), *[
              spot()]),
        key=
            spot(),
    )
    (f(spot())
     .__class__
     .__name__
     .replace("t",
              str(spot()))
     .upper())
    return [
        spot(), 1,
        2][
        spot() - 1
    ]
""")
piece("decorators.py", """
def d(value):
    spot()
    def wrap(f):
        spot()
        return f
    return wrap
def run():
    @d(
        1
    )
    @d(spot(2))
    def f(
        a=spot(),
        b=2,
    ):
        return (
            a
            + spot()
        )
    @d(3)
    class C(object):
        spot()
        @property
        @d(4)
        def p(self):
            return spot()
    return f(), C().p
""")
piece("lambdas.py", """
def run():
    a = [
        lambda: spot(),
        lambda: (
            spot()
        ), lambda x=(
            spot()): x + spot()]
    for f in a:
        f(
        )
""")
piece("comprehensions.py", """
def run():
    a = [x
         for x in range(
             spot())
         if spot()
         for y in
             range(spot())
         if not
            spot() - 1 or y]
    b = {x:
           spot()
         for x in
         [1, 2]
         if spot()}
    c = list(spot()
             for _ in
             [1])
    d = {spot() for _ in [1]
         if [
             spot() for z in [1]
         ]}
    return a, b, c, d
""")
piece("generators.py", """
def inner():
    yield (
        spot())
    yield spot()
def outer():
    for x in inner():
        yield (x +
               spot())
    yield spot()
def run():
    for x in (
        outer()
    ):
        spot()
    return sum(
        x for x
        in outer())
""")
piece("delegation.py", """
def inner():
    yield spot()
    return spot()
def outer():
    x = yield from (
        inner()
    )
    yield x + spot()
def run():
    return list(
        outer())
""")
piece("coroutines.py", """
class Wait:
    def __await__(self):
        yield spot()
        return spot()
class With:
    async def __aenter__(self):
        spot()
    async def __aexit__(self, *_):
        await Wait()
async def inner():
    async with With():
        spot()
        await (
            Wait()
        )
    return spot()
async def outer():
    return (
        await inner(),
        spot(),
    )
def run():
    c = outer()
    try:
        while True:
            c.send(
                None)
    except StopIteration:
        spot()
""")
piece("match.py", """
def kind(x):
    match x:
        case [1, spot_] if spot():
            return spot()
        case {"a":
              b}:
            return (
                spot())
        case str() | int(
        ):
            spot()
        case _:
            return spot()
def run():
    for x in ([1, 2], {"a": 1}, "s", 2.0):
        kind(
            x)
""")
piece("exceptions.py", """
class Manager(object):
    def __enter__(self):
        spot()
    def __exit__(self, *_):
        return spot()
def run():
    for i in range(2):
        try:
            if i:
                raise ValueError(
                    spot())
            spot()
        except (KeyError,
                ValueError):
            spot()
        else:
            spot()
        finally:
            spot()
    with Manager(
    ), Manager():
        spot()
        raise KeyError(
            spot()
        )
""")
piece("backwards.py", """
def run():
    n = 0
    while (n <
           spot() + 1
           and spot()):
        n += (
            spot()

            if n else
            spot())


        spot()
    else:
        spot()
    x = (spot() +

         spot()
         ); y = spot(
    )
    return x + y
""")
piece("arithmetic.py", """
class N(object):
    def __add__(self, other):
        return spot()
    def __getitem__(self, key):
        return spot()
    def __lt__(self, other):
        return spot()
    def __getattr__(self, name):
        return spot()
def run():
    n = N()
    return (n
            + 1,
            n[
                1
            ], 1 if
            n < 2
            else 3, n
            .anything)
""")
piece("asynchronous comprehensions.py", """
async def ticks():
    for x in [
        spot(),
        2]:
        yield (
            x +
            spot())
async def inner():
    a = [x
         async for x in
             ticks()
         if
             spot()]
    b = {x: spot()
         async for x in ticks()}
    c = (x +
         spot() async for x
         in ticks())
    return [y async for y in c], a, b
def run():
    c = inner()
    try:
        c.send(None)
    except StopIteration:
        spot()
""")
piece("groups of exceptions.py", """
def run():
    try:
        raise ExceptionGroup("g", [
            KeyError(spot()),
            ValueError()])
    except* KeyError:
        spot()
    except* (
        ValueError,
        TypeError,
    ):
        spot(
        )
    finally:
        spot()
""")
piece("texts.py", """
def run():
    x = 1
    return f'{spot()}' f'''{
        x}
        {spot(
            x)}
    ''' + (
        f'{x!r:>{spot()}}')
""")
piece("type parameters.py", """
def run():
    def f[T: (
        int,
        spot())](x: T = spot()):
        return spot()
    type A[U] = (
        spot())
    class C[V](
        dict if spot() else
            int):
        x = spot()
    return f(1), A.__value__, f.__type_params__[0].__constraints__
""")
piece("called from C.py", """
class K(object):
    def __init__(self, x):
        self.x = spot(
            x)
    def __hash__(self):
        return spot()
    def __eq__(self, other):
        return bool(
            spot())
    def __del__(self):
        spot()
def run():
    k = K(1)
    sorted([3, 1],
           key=lambda x:
               spot(x))
    functools.reduce(
        lambda a, b: (
            spot()),
        [1, 2, 3])
    re.sub("a|b",
           lambda found:
           str(spot()),
           "ab")
    d = {k: 1,
         K(2): 2}
    del d, \\
        k
    return list(map(
        spot,
        [1]))
""")
piece("evaluated.py", """
def run():
    x = eval("spot(\\n\\n)\\n",
             {"spot":
              spot})
    exec("def inner():\\n\\n  return spot()\\n"
         "inner()\\n", {"spot":
                       spot})
    return eval("[spot() for _ in (1,\\n2)]", {"spot": spot})
""")
piece("chains.py", """
def run():
    assert (
        spot()), (
        spot())
    x = (0 < spot()
         <= spot(
         ) !=
         spot() + 5)
    if (x and
            not spot(0)): x = (spot() if
                               spot() else 3)
    return [*[spot()],
            *(
                spot(),
            )]
""")
piece("walrus.py", """
def f(a, /, b, *, c=1):
    while (n := spot(
            a)) and (
            b :=
            spot()) and c:
        a = 0
        c = spot(0)
    return n
def run():
    return f(
        1,
        2,
    )
""")
piece("ways out.py", """
def early(x):
    for _ in range(2):
        try:
            if x:
                return (
                    spot())
            continue
        finally:
            spot()
    else:
        spot()
    while True:
        try:
            break
        finally:
            spot()
def gone():
    try:
        yield 1
        yield 2
    except ValueError:
        spot()
        yield 3
    finally:
        spot()
def run():
    early(1)
    early(0)
    g = gone()
    next(g)
    g.throw(
        ValueError())
    g.close()
""")
piece("\n", "def run():\n    return spot()\n")
piece("", "def run():\n    return (\n        spot())\n")
piece("long/" * 1000 + ".py", "def run():\n    return spot()\n")
piece("\u043f\u0440\u043e\u0431\u0430.py", u"def \u043f\u0440\u043e\u0431\u0430():\n    return spot()\nrun = \u043f\u0440\u043e\u0431\u0430\n")
piece("long name.py", "def %s():\n    return spot()\nrun = %s\n" % (("n" * 3000,) * 2))
piece("far.py", "\n" * 70000 + "def run():\n    spot()\n" + "\n" * 300 + "    spot()\n    for x in [1, 2]:\n" + "\n" * 40000 + "        spot()\n")
piece("a name with blanks, ; and \xe9.py" if sys.version_info[0] > 2 else "a name with blanks and ;.py", "def run():\n    return spot(\n    )\n")
piece("<string>", "class C(object):\n    def run(self): return spot()\nrun = C().run\n")
piece("many arguments.py", "def run():\n    return max(\n" + "".join("        %d,\n" % i for i in range(300)) + "        spot(),\n    )\n")


def every_piece():
    for run in PIECES:
        run()


said = False
while True:
    every_piece()
    if not said:
        with open(sys.argv[1], "w") as out:
            json.dump(sorted(SEEN), out)
        sys.stdout.write("ready %d\n" % os.getpid())
        sys.stdout.flush()
        said = True
