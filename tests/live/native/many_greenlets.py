"""Greenlets that begin at different depths of the C stack and switch to the next one from anywhere: below each are remains of others."""
import os
import sys
import time

import greenlet

parent = greenlet.getcurrent()
end = time.monotonic() + float(sys.argv[1])


def work(depth):
    if depth > 0:
        return sorted([1], key=lambda one: work(depth - 1) or one)
    spin()


def spin():
    until = time.monotonic() + 0.002
    while time.monotonic() < until:
        pass
    parent.switch()


def run(depth):
    while True:
        work(depth)


def at_depth(depth, call):
    return sorted([1], key=lambda one: at_depth(depth - 1, call)) if depth > 0 else call()


children = [greenlet.greenlet(run) for _ in range(12)]
for depth, child in enumerate(children):
    at_depth(depth % 5, lambda: child.switch(depth % 3))
print("ready", os.getpid(), flush=True)
turn = 0
while time.monotonic() < end:
    turn += 1
    at_depth(turn % 7, children[turn * 5 % len(children)].switch)
