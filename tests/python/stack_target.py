# coding: utf-8
"""Threads that wait in awkward places. Each prints where it is, as the interpreter itself reports it
(sys._getframe: identity, then per frame name, qualified name, file, line, first line, leaf first); then all wait.

Every case runs a hundred times before it stops, so that its instructions are specialised and its calls inlined.
"""
import binascii
import sys
import threading

PY2 = sys.version_info[0] == 2
CASES = []
gate = threading.Lock()
gate.acquire()
started = threading.Semaphore(0)
rounds = threading.local()
lines = []


def hexed(text):
    if not isinstance(text, bytes):
        text = "".join("\\u%04x" % ord(c) if 0xd800 <= ord(c) < 0xe000 else c for c in text).encode("utf-8")
    return binascii.hexlify(text).decode() or "-"


def stop(value=None):
    if rounds.left:
        rounds.left -= 1
        return value
    frame = sys._getframe(1)
    words = ["%d" % threading.current_thread().ident]
    while frame is not None:
        code = frame.f_code
        words.append(":".join([hexed(code.co_name), hexed(getattr(code, "co_qualname", code.co_name)), hexed(code.co_filename),
                               "%d" % (frame.f_lineno or 0), "%d" % code.co_firstlineno]))
        frame = frame.f_back
    lines.append(" ".join(words))
    started.release()
    gate.acquire()


def case(text, name=None, file=None):
    CASES.append((name or "case %d" % len(CASES), text, file))


case("def run():\n    stop()\n")
case("def run():\n    return a(\n        1)\ndef a(x):\n    b = x\n\n    return stop(\n      b)\n")
case("""
def deco(*a):
    return lambda f: f
def run():
    @deco(
        1,
        stop(),
        2)
    @deco()
    def f():
        pass
    return f
""")
case("""
def f(*a, **k):
    return a
def run():
    return f(
        1,
        f(2,
          3),
        *[4,
          stop(),
          5],
        **{'a':
           6}
    )
""")
case("""
def f(*a): return stop()
def run():
    return f(
        1,
        2,

        3,
    )
""")
case("""
class A(object):
    def a(self): return self
    def b(self): stop(); return self
def run():
    return (A()
            .a()
            .b()
            .a())
""")
case("run = lambda: (\n    lambda x: stop(\n        x\n    )\n)(1)\n")
case("def run():\n    return [\n        stop(x)\n        for x in\n        range(\n            1)\n        if x\n        < 2]\n")
case("def run():\n    return {x:\n        [y for y in [1]\n         if stop(y)]\n      for x in [1]}\n")
case("def run():\n    return sum(\n        stop(1)\n        for x in [1])\n")
case("def run():\n    return set(\n        y for x in [1] for y in\n        [z for z in [2] if stop(1)\n          or z])\n")
case("""
def g(n):
    if n:
        for x in g(n - 1):
            yield x
    else:
        yield stop(
            1)
def run():
    for x in g(5): pass
""")
case("def run():\n    class A(object):\n        class B(object):\n            x = (1,\n                 stop(1),\n                 3)\n    return A\n")
case("""
def run():
    for i in [1,
              2]:
        while (
            i
        ):
            try:
                i = 0 if stop(
                    1
                ) else 0
            finally:
                i = 0
""")
case("def run():\n    a = 1\n" + "\n" * 400 + "    b = (a,\n" + "\n" * 400 + "      stop(1))\n    return b\n")
case("def run():\n    return f(\n" + "\n" * 300 + "        1)[\n" + "\n" * 200 + "       0]\ndef f(x):\n    stop()\n    return [x]\n")
case("def run(a=1):\n    if 0:\n" + "        a = a\n" * 66000 + "    return stop(\n        a)\n", "past 65,535 lines")
case("\n" * 70000 + "def run():\n    return stop(\n        1)\n", "first line past 65,535")
case("def run():\n" + "".join("    v%d = %d\n" % (i, i + 1000) for i in range(600)) + "    return stop(v599)\n")
case("""
def run():
    try:
        raise ValueError(
            1)
    except (
        ValueError
    ) as e:
        try:
            pass
        finally:
            stop()
""")
case("""
class C(object):
    def __enter__(self):
        return self
    def __exit__(self, *a):
        stop()
def run():
    with C(
    ) as a, C(
    ) as b:
        x = (a,
             b)
""")
case("""
class P(object):
    def __init__(self, x):
        self.x = x
        stop()
    @property
    def p(self):
        return P(
            1)
    def __getattr__(self, name):
        return self.p
def run():
    return P.__new__(P).missing
""")
case("""
import functools, re
def key(x): return stop(
    x) or 0
def run():
    return sorted(map(
        lambda x: functools.reduce(
            lambda a, b:
              re.sub('x', lambda m: (key(a), '')[1], 'x'),
            [x, x]),
        [1, 2]), key=key)
""")
case("def run(n=200):\n    if n:\n        return run(\n            n - 1)\n    return stop()\n")
case("def run():\n    exec(compile('def f():\\n  return stop(\\n1)\\nf()', '<string>', 'exec'), globals())\n")
case("def run():\n    return eval('(\\n1,\\nstop(1))', globals())\n")
case("def run():\n    s = '''\n\n\n''' % () if stop() else 1\n    return s\n")
case("def run():\n    assert not stop(), (\n        1,\n        2)\n    assert stop(\n        1), 2\n")
case("import contextlib\n@contextlib.contextmanager\ndef c():\n    stop()\n    yield\ndef run():\n    with c():\n        pass\n")
case("class D(object):\n    def __del__(self):\n        stop()\ndef run():\n    d = D()\n    del d\n")
case("def run():\n    stop()\n", file="/odd dir/with:colon;semi\n.py")
if not PY2:
    case("def gr\u00fc\u00dfe():\n    return \u540d\u524d()\ndef \u540d\u524d():\n    stop()\nrun = gr\u00fc\u00dfe\n", file="/\u8def\u5f84/\u00e9.py")
    case("def run():\n    stop()\n", file="/not-utf8-\udce9.py")
    case("def g():\n    return (yield from h(\n    ))\ndef h():\n    yield (\n       stop())\ndef run():\n    for x in g(): pass\n")
    case("class M(type):\n    def __call__(cls, *a):\n        return super().__call__(\n            *a)\nclass A(metaclass=M):\n    def __init__(self):\n        stop()\n        super().__init__()\ndef run():\n    A()\n")
    case("""
async def a():
    return await b(
        1)
async def b(x):
    async with C() as c:
        return [y async for y in g(
            c)]
class C:
    async def __aenter__(self): return self
    async def __aexit__(self, *a): pass
async def g(c):
    yield 1
    yield stop(
        2)
def run():
    try:
        a().send(None)
    except StopIteration:
        pass
""")
    case("def run():\n    x = f'''{\n      1\n    }{stop(\n    2)}'''\n    return x\n")
    case("def run(a=1, /, *, b=2):\n    if (n := (\n        stop(1)\n    )) or n:\n        pass\n")
    case("""
def run():
    match (
        1,
        2
    ):
        case [3, 4]:
            pass
        case [
            1,
            x
        ] if stop(
            x
        ):
            pass
        case _:
            pass
""")
    case("def run():\n    try:\n        raise ExceptionGroup('x', [ValueError(1)])\n    except* (\n        ValueError\n    ) as e:\n        stop()\n")
    case("def run():\n    def f[T: (int,\n       str)](x: T, y=stop()) -> T:\n        return x\n    return f(1)\n")
    case("def run():\n    type A[T] = list[\n        stop() or T]\n    return A.__value__\n")


def perform(name, run):
    # A few cases stop twice a round.
    rounds.left = 199 if name != "past 65,535 lines" else 3
    while True:
        run()


expected = 0
for name, text, file in CASES:
    try:
        code = compile(text, file or "<%s>" % name, "exec")
    except SyntaxError:
        continue
    space = {"stop": stop, "__name__": "case"}
    exec(code, space)
    thread = threading.Thread(target=perform, args=(name, space["run"]), name=name)
    thread.daemon = True
    thread.start()
    started.acquire()
    expected += 1
for line in lines:
    print(line)
print("ready")
sys.stdout.flush()
sys.stdin.read()
