"""Greenlets that are switched away, one that is not started, one that has ended. Writes the frames of each, as the program sees them, to the
file named first: name of the outermost function: [function, line, file], outermost first."""
import json
import os
import sys
import time

import greenlet


def leaf(back):
    back.switch()


def generates(back):
    leaf(back)
    yield 1


def deep(n, back):
    if n:
        deep(n - 1, back)
    else:
        leaf(back)


def first(back):
    leaf(
        back)


def second(back):
    for _ in generates(back):
        pass


def third(back):
    sorted([2, 1], key=lambda _: deep(30, back))


def fourth(back):
    pass


def frames(greenlet):
    out, frame = [], greenlet.gr_frame
    while frame is not None:
        out.append([frame.f_code.co_name, frame.f_lineno, frame.f_code.co_filename])
        frame = frame.f_back
    return out[::-1]


main = greenlet.getcurrent()
keep = [greenlet.greenlet(function) for function in (first, second, third, fourth)]
for one in keep:
    one.switch(main)
unstarted = greenlet.greenlet(first)


class Own(greenlet.greenlet):
    pass


keep.append(Own(first))
keep[-1].switch(main)
with open(sys.argv[1], "w") as file:
    json.dump([frames(one) for one in keep if one.gr_frame], file)
print("ready %d" % os.getpid(), flush=True)
while True:
    time.sleep(100)
