# coding: utf-8
"""Makes code objects with odd names and prints of each: address, then name, qualified name, file (hex of what Phlox should
say), first line, flags, bytes of code, and "offset:line" words; then waits."""
import binascii
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import awkward_code  # noqa: E402

PY2 = sys.version_info[0] == 2
if not PY2:
    unicode = str
KEEP = []


def utf8(text):
    """As Phlox writes it: UTF-8; lone surrogates and NUL spelt out; of bytes what is not UTF-8 spelt out."""
    if isinstance(text, bytes):  # 2.7
        try:
            text.decode("utf-8")
            raw = text
        except UnicodeDecodeError:
            raw = b"".join(b if b < b"\x80" else ("\\x%02x" % ord(b)) for b in text)
        return binascii.hexlify(raw.replace(b"\0", b"\\x00")).decode()
    out = []
    for c in text:
        n = ord(c)
        if n == 0:
            out.append(u"\\x00")
        elif 0xd800 <= n < 0xe000:
            out.append(u"\\u%04x" % n)
        else:
            out.append(c)
    return binascii.hexlify(u"".join(out).encode("utf-8")).decode()


def lines_of(code):
    import ctypes
    line_of = ctypes.pythonapi.PyCode_Addr2Line
    line_of.argtypes = [ctypes.py_object, ctypes.c_int]
    size = len(code.co_code)
    step = (1 if PY2 else 2) * max(1, size // 2000)
    return " ".join("%d:%d" % (o, line_of(code, o)) for o in [-1] + list(range(0, size, step)))


def show(code):
    KEEP.append(code)
    qualname = getattr(code, "co_qualname", code.co_name)
    print(" ".join(["%d" % id(code), utf8(code.co_name) or "-", utf8(qualname) or "-", utf8(code.co_filename) or "-",
                    "%d" % code.co_firstlineno, "%d" % code.co_flags, "%d" % len(code.co_code), lines_of(code)]))


def renamed(name, file):
    """A code object with any name and file that this Python allows."""
    code = compile("def f(a):\n    return (a,\n        a)\n", file, "exec")
    f = [c for c in code.co_consts if isinstance(c, type(code))][0]
    if hasattr(f, "replace"):
        return f.replace(co_name=name, **({"co_qualname": name + ".x"} if hasattr(f, "co_qualname") else {}))
    arguments = [f.co_argcount] + ([] if PY2 else [f.co_kwonlyargcount])
    return type(f)(*(arguments + [f.co_nlocals, f.co_stacksize, f.co_flags, f.co_code, f.co_consts, f.co_names, f.co_varnames,
                                  f.co_filename, name, f.co_firstlineno, f.co_lnotab]))


class Text(str):
    """A str whose characters lie outside of the object."""


for name, module in awkward_code.compiled():
    for one in awkward_code.nested(module):
        show(one)
show(renamed("x", ""))
show(renamed("n" * 5000, "/" + "long/" * 3000 + "file.py"))
show(renamed(Text("subclass"), Text("/a/subclass.py")))
if PY2:
    show(renamed("gr\xc3\xbc\xc3\x9fe", "/caf\xe9.py"))
else:
    show(renamed("gr\u00fc\u00dfe", "/stra\u00dfe.py"))
    show(renamed("\u540d\u524d", "/\u8def\u5f84.py"))
    show(renamed("\U0001d4d0\u540d", "/\U0001f40d.py"))
    show(renamed("lone\udcff", "/caf\udce9.py"))
    show(renamed(Text("\u540d"), Text("/\u00e9\udcff.py")))
    show(renamed("\u00e9" * 3000, "/\u540d" * 3000))
print("ready")
sys.stdout.flush()
sys.stdin.read()
