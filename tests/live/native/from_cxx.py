"""C++ calls Python: a comparison within std::stable_sort, by a std::function, out of a virtual function. argv: the built library."""
import ctypes
import sys

from nested import last


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
def compared(number):
    last()
    return number


sys.dont_write_bytecode = True
ctypes.CDLL(sys.argv[1]).from_cxx(compared)
