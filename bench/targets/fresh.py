"""Fresh functions whose names identify the moment: every code object lives only for some microseconds.

    fresh.py SECONDS [exec|template] [THREADS]

`exec` compiles three nested functions each time, `template` makes them with code.replace() (Python 3.8+)
from one code object, so that only the name differs. All carry the same serial number (f_17_0 > f_17_1 > f_17_2): a stack that
mixes serials, skips an index, or shows a lower serial than a stack before it has a wrong name in it.
Finished functions are freed at once; the next ones reuse their memory and their frames' addresses.
THREADS more threads wake only occasionally: a sample does not copy data of those that kept sleeping.
"""
import sys
import threading
import time

import meter

seconds = meter.seconds_argument()
kind = sys.argv[2] if len(sys.argv) > 2 else "exec"
serial = [0]

SOURCE = """
def f_{0}_2(): return sum(range(300))
def f_{0}_1(): return f_{0}_2() + f_{0}_2()
def f_{0}_0(): return f_{0}_1() + f_{0}_1()
f_{0}_0()
"""


def by_exec():
    number = serial[0]
    serial[0] = number + 1
    exec(SOURCE.format(number), {})


def middle():
    return inner() + inner()  # noqa: F821


def outer():
    return middle() + middle()


def leaf():
    return sum(range(300))


def by_template():
    number = serial[0]
    serial[0] = number + 1
    function = type(by_template)
    space = {"sum": sum, "range": range}
    space["inner"] = function(leaf.__code__.replace(co_name="f_%d_2" % number), space)
    space["middle"] = function(middle.__code__.replace(co_name="f_%d_1" % number), space)
    function(outer.__code__.replace(co_name="f_%d_0" % number), space)()


def nap():
    while True:
        time.sleep(0.01)


for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 0):
    thread = threading.Thread(target=nap)
    thread.daemon = True
    thread.start()
meter.measure(by_exec if kind == "exec" else by_template, seconds, lambda: {"made": serial[0]})
