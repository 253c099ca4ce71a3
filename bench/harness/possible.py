"""Whether stacks of bench/targets could have existed, from their names alone. Names are root first."""
import re

FAMILY = re.compile(r"([ab])(\d+)([a-z]*)$")
SERIAL = re.compile(r"f_(\d+)_(\d)$")


# The root of a whole stack: of the main thread, and of others (threading.py).
ROOTS = ("<module>", "_bootstrap")


def families(names):
    """hard.py, hard_threads.py and leaf.py: below the driving frames one family, indices 0, 1, 2, ..., nested letters."""
    if not names or names[0] not in ROOTS:
        return False
    family, index, letters = None, -1, ""
    for name in names:
        found = FAMILY.match(name)
        if not found:
            if family:
                return False
            continue
        if family and found.group(1) != family:
            return False
        if int(found.group(2)) != index + 1 or not found.group(3).startswith(letters):
            return False
        family, index, letters = found.group(1), index + 1, found.group(3)
    return True


def serial(names):
    """fresh.py: the common serial number of a stack's fresh names; None: no fresh name; -1: they disagree."""
    result, index = None, -1
    for name in names:
        found = SERIAL.match(name)
        if not found:
            continue
        if (result is not None and int(found.group(1)) != result) or int(found.group(2)) != index + 1:
            return -1
        result, index = int(found.group(1)), index + 1
    return result
