# coding: utf-8
"""Stands in functions with all kinds of variables; prints the variables of each as Phlox should show them (function, then
"a name value" or "v name value", hex); then waits."""
import binascii
import collections
import sys

PY2 = sys.version_info[0] == 2
MORE = "\xe2\x80\xa6" if PY2 else "\u2026"


def show(function, *variables):
    for kind, name, value in variables:
        if not isinstance(value, bytes):
            value = value.encode("utf-8")
        print("%s %s %s %s" % (function, kind, name, binascii.hexlify(value).decode()))


class Thing(object):
    pass


class Number(int):
    pass


def wait():
    print("ready")
    sys.stdout.flush()
    sys.stdin.read()


def numbers(zero, one=1, minus=-1, big=2 ** 62, small=-2 ** 63, huge=2 ** 200, real=2.5, whole=3.0, tiny=1e-7, large=1e16):
    truth = True
    lie = False
    nothing = None
    number = Number(7)
    inf = float("inf")
    third = 1 / 3.0
    later()
    unset = 1


def texts(short, long="x" * 300):
    empty = ""
    control = "a'b\n\x01"
    raw = b"\xff\x00a"
    if not PY2:
        wide = "\u540d\U0001f40d\u00e9"
        surrogate = "\udc80"
    wait()


def later():
    def inner(shared_argument):
        return shared, shared_argument
    shared = "in a cell"
    lists = [1, 2, 3]
    one = (1,)
    none = {}
    ordered = collections.OrderedDict(a=1)
    thing = Thing()
    function = wait
    cls = Thing
    many = list(range(1000))
    mixed = ("a", None, [1, 2], {"k": 1}, 2.5)
    table = {"key": [1], 2: "two"}
    members = {7}
    gone = set([7, 8])
    gone.discard(8)
    empty_set = set()
    frozen = frozenset(["x"])
    lengthy = ["y" * 99] * 10
    crowd = set(range(100))
    total = sum(x for x in range(3))
    [y for y in range(2)]
    texts("s")


show("numbers", ("a", "zero", "0"), ("a", "one", "1"), ("a", "minus", "-1"), ("a", "big", str(2 ** 62)),
     ("a", "small", str(-2 ** 63)), ("a", "huge", "<int beyond 64 bits>"), ("a", "real", "2.5"), ("a", "whole", "3.0"),
     ("a", "tiny", "1e-07"), ("a", "large", "1e+16"), ("v", "truth", "True"), ("v", "lie", "False"), ("v", "nothing", "None"),
     ("v", "number", "Number(7)"), ("v", "inf", "inf"), ("v", "third", repr(1 / 3.0)))
show("texts", ("a", "short", "'s'"), ("a", "long", "'" + "x" * 100 + "\u2026'" if not PY2 else "'" + "x" * 100 + "\xe2\x80\xa6'"),
     ("v", "empty", "''"), ("v", "control", "'a\\'b\\n\\x01'"),
     ("v", "raw", "'\\xff\\x00a'" if PY2 else "b'\\xff\\x00a'"),
     *([] if PY2 else [("v", "wide", "'\u540d\U0001f40d\u00e9'"), ("v", "surrogate", "'\\udc80'")]))
show("later", ("v", "lists", "[1, 2, 3]"), ("v", "one", "(1,)"), ("v", "none", "{}"),
     ("v", "ordered", "OrderedDict({'a': 1})" if PY2 else "collections.OrderedDict({'a': 1})"),
     ("v", "many", "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, " + MORE + " 990 more]"), ("v", "mixed", "('a', None, [2 items], {1 item}, 2.5)"),
     ("v", "table", "{2: 'two', 'key': [1 item]}" if PY2 and list({"key": 1, 2: 2})[0] == 2 else "{'key': [1 item], 2: 'two'}"),
     ("v", "members", "{7}"), ("v", "gone", "{7}"), ("v", "empty_set", "set()"), ("v", "frozen", "frozenset({'x'})"),
     ("v", "lengthy", "[" + ", ".join(["'" + "y" * 99 + "'"] * 3) + ", " + MORE + " 7 more]"),
     ("v", "crowd", "{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, " + MORE + " 90 more}"),
     ("v", "thing", "<Thing object>"), ("v", "function", "<function object>"), ("v", "cls", "<class 'Thing'>"), ("v", "total", "3"),
     ("v", "inner", "<function object>"), ("v", "shared", "'in a cell'"))
numbers(0)
