"""A function that is bound lazily, and whose resolver never returns: the dynamic linker's trampoline is in between. argv: the library."""
import ctypes
import os
import sys

from nested import say


def last():
    say()
    library.from_resolver()


library = ctypes.CDLL(sys.argv[1], mode=os.RTLD_LAZY)
sorted([1], key=lambda one: last())
