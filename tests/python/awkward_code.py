# coding: utf-8
"""Code whose lines are hard to tell: sources as (name, text), for every Python from 2.7 on.

Each is compiled by the version under test; what that version does not understand is left out by it.
"""
import sys

SOURCES = []


def source(name, text):
    SOURCES.append((name, text))


source("plain", "def f(a):\n    b = a\n    return b\n")
source("one_line", "f = lambda x: x; g = [f(1), f(2)]; h = {1: 2}\n")
source("decorators", """
def d(x):
    def w(f):
        return f
    return w

@d(
    1
)
@d(2)
def f(
    a=1,
    b=2,
):
    return (
        a
        + b
    )
@d(3)
class C(object):
    @property
    @d(4)
    def p(self):
        return 1
""")
source("multi_line_calls", """
def f(*a, **k):
    return a
x = f(
    1,
    f(
        2,
        3),
    *[
        4,
        5],
    **{
        'a': 6
    }
)
y = (f(1)
     .__class__
     .__name__
     .upper(
     ))
z = [f(
    1
), f(2
     )][
    0
]
""")
source("lambdas", "a = [\n  lambda: 1,\n  lambda: (\n     2\n  ),\n  lambda x=(\n    3): x]\n")
source("comprehensions", """
a = [x
     for x in range(3)
     if x
     for y in
       range(x)
     if y]
b = {x:
       y
     for x, y in
     zip(a, a)}
c = {i for i in
     a}
g = (i
     for i
     in [j for j
         in a])
def f():
    return [
        (x, [y
             for y in range(x)])
        for x in range(3)
    ]
""")
source("backwards", """
def f(x):
    while (
        x
        and x
    ):
        for i in [
            x,
            x
        ]:
            try:
                x = i if (
                    i
                ) else x
            except ValueError as e:
                continue
            finally:
                x = (
                    1,
                    2,
                )[
                    0
                ]
        else:
            break
    return x
""")
source("try_with", """
def f(x):
    with open(
        x
    ) as a, open(x) as b:
        try:
            raise ValueError(
                x
            )
        except (
            ValueError,
            KeyError
        ) as e:
            pass
        else:
            return 1
        finally:
            del x
    return (yield)
""")
source("strings", 'def f():\n    """doc\n    doc\n\n    doc"""\n    a = """\n\n\n\n""" % (\n   )\n    return a\n')
source("generators", "def g():\n    x = yield 1\n    while x:\n        x = (yield\n             x)\n    for y in g(\n    ):\n        yield y\n")
source("asserts", "def f(a):\n    assert (\n        a\n    ), (\n        'x'\n        'y'\n    )\n    if not a: return 1\n    elif a: return 2\n    else: return 3\n")
source("class_body", "class A(\n    object\n):\n    x = (\n        1\n    )\n    class B(object):\n        y = 2\n        def m(self): return self\n")
source("gap_200_lines", "def f():\n    a = 1\n" + "\n" * 200 + "    b = 2\n    return (a,\n" + "\n" * 300 + "       b)\n")
source("back_300_lines", "def f(g):\n    return g(\n" + "\n" * 300 + "        g(1)\n" + "\n" * 300 + "        .x\n    )\n")
source("first_line_late", "\n" * 70000 + "def f():\n    return [\n       1,\n       f]\n")
source("long_expression", "x = (" + "+\n".join(str(i) for i in range(300)) + ")\n")
source("wide_line", "def f(a):\n    return [" + ", ".join("a + %d" % i for i in range(400)) + ",\n a]\n")
source("past_65535_lines", "def f(a):\n" + "".join("    a = a\n" for _ in range(66500)) + "    return a\n")
source("extended_arguments", "def f():\n" + "".join("    v%d = %d\n" % (i, i + 1000) for i in range(700)) + "    return v699\n")
source("f_strings", "def f(a):\n    return f'{a}' f'''{\n      a\n   }''' + (\n    f'{a!r:>{a}}')\n")
source("async_code", """
async def f(a):
    async with a as b:
        async for c in (
            b
        ):
            await (
                c
            )
    return [x async for x in
            b if await x]
async def g():
    yield 1
    await f(
        1)
""")
source("walrus_and_positional", "def f(a, /, b, *, c):\n    if (n := (\n        a\n    )) and n:\n        return n\n    while (m :=\n           b): b = m\n")
source("match", """
def f(x):
    match (
        x
    ):
        case 1 | 2:
            return 1
        case {
            'a': y,
            **rest
        } if (
            y
        ):
            return rest
        case [
            a,
            *b
        ]:
            return a
        case object(
            x=1
        ):
            pass
        case _:
            return 0
""")
source("except_star", "def f():\n    try:\n        f()\n    except* (\n        ValueError\n    ) as e:\n        raise\n    except* OSError: pass\n")
source("type_parameters", "type A[T] = list[\n    T\n]\ndef f[T: (int,\n     str)](x: T) -> T:\n    return x\nclass C[T](\n    list[T]):\n    pass\n")
source("dead_code", "def f(x):\n    while True:\n        if 0:\n            x = 1\n        if x:\n            break\n        continue\n    return x\n    x = 3\n")
source("nothing", "")
source("comment_only", "# nothing\n\n\n")


def compiled():
    """(name, code) of every source that this Python understands."""
    for name, text in SOURCES:
        try:
            code = compile(text, "<%s>" % name, "exec")
        except SyntaxError:
            continue
        yield name, code


def nested(code):
    """The code object and all that lie in its constants."""
    waiting = [code]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(c for c in one.co_consts if isinstance(c, type(code)))


if __name__ == "__main__":
    sys.stdout.write("%d\n" % len(list(compiled())))
