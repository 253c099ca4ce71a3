"""Prints, for much code, its line table and the line of each instruction as the interpreter itself computes it.

A code object is one line: first line, length of the code, line table in hex, then "offset:line" words.
"""
import binascii
import ctypes
import glob
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import awkward_code  # noqa: E402

line_of = ctypes.pythonapi.PyCode_Addr2Line
line_of.argtypes = [ctypes.py_object, ctypes.c_int]
line_of.restype = ctypes.c_int


def standard_library(count):
    import tokenize
    here = os.path.dirname(tokenize.__file__)
    for path in sorted(glob.glob(os.path.join(here, "*.py")))[:count]:
        with open(path, "rb") as f:
            try:
                yield compile(f.read(), path, "exec")
            except SyntaxError:
                pass


def print_code(code):
    table = code.co_linetable if hasattr(code, "co_linetable") else code.co_lnotab
    size = len(code.co_code)
    step = 1 if sys.version_info[0] == 2 else 2
    if size > 20000:  # the interpreter's own search is linear
        step *= size // 4000
    offsets = [-2] + list(range(0, size, step))
    words = " ".join("%d:%d" % (o, line_of(code, o)) for o in offsets)
    sys.stdout.write("%d %d %s %s\n" % (code.co_firstlineno, size, binascii.hexlify(bytes(table)).decode() or "-", words))


for _, module in awkward_code.compiled():
    for one in awkward_code.nested(module):
        print_code(one)
for module in standard_library(int(sys.argv[1])):
    for one in awkward_code.nested(module):
        print_code(one)
