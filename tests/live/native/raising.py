"""Raises and handles exceptions all the time: the interpreter loop does this in its cold part."""
import sys

import nested


class Odd(Exception):
    pass


def spin():
    for number in range(300):
        try:
            half(number)
        except Odd:
            pass


def half(number):
    try:
        return {}[number]
    except KeyError:
        raise Odd(number)


sys.dont_write_bytecode = True
nested.by_import = nested.imported
nested.spin = spin
nested.by_sorted()
