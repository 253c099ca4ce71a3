"""A greenlet as deep as nested.py, on the stack of its parent: just started (argument `started`), or resumed after its parent had gone
deeper and overwritten its part of the stack (`resumed`)."""
import sys

import greenlet
import nested

parent = greenlet.getcurrent()


def run():
    if sys.argv[1] == "resumed":
        sorted([1], key=away)
    nested.by_sorted()


def away(one):
    parent.switch()
    return one


def deeper(turns):
    if turns > 0:
        sorted([1], key=lambda one: deeper(turns - 1))
    else:
        child.switch()


sys.dont_write_bytecode = True
nested.by_import = nested.imported
child = greenlet.greenlet(run)
child.switch()
deeper(5)
