"""Keeps its event loop from polling in several known ways, each in its own function and line. Writes each to the file in the first
argument: function, line, seconds requested, begin and end (CLOCK_MONOTONIC), and a time span around it at whose ends the loop
polled. Second argument: asyncio or uvloop."""
import asyncio
import json
import os
import sys
import threading
import time

ROUNDS = 4
LOG = []


def naps(seconds):
    line = sys._getframe().f_lineno + 1
    time.sleep(seconds)
    return line


def reads(seconds):
    ends = os.pipe()
    threading.Timer(seconds, os.write, (ends[1], b"x")).start()
    line = sys._getframe().f_lineno + 1
    os.read(ends[0], 1)
    for end in ends:
        os.close(end)
    return line


def burns(seconds):
    begin = time.thread_time()
    line = sys._getframe().f_lineno + 1
    while time.thread_time() - begin < seconds: pass
    return line


async def turns():
    """Many short ones, so that the loop is sampled in its own code."""
    until = time.monotonic() + 0.4
    while time.monotonic() < until:
        await asyncio.sleep(0)


async def main():
    print("ready %d" % os.getpid(), flush=True)
    await asyncio.sleep(2)  # the recording begins
    for i in range(ROUNDS):
        for function, seconds in ((naps, 0.15), (reads, 0.15), (burns, 0.3)):
            await turns()
            before = time.monotonic()
            await asyncio.sleep(0.05)
            begin = time.monotonic()
            line = function(seconds + 0.02 * i)
            end = time.monotonic()
            await asyncio.sleep(0.05)
            LOG.append([function.__name__, line, seconds + 0.02 * i, begin, end, before, time.monotonic()])
    with open(sys.argv[1], "w") as file:
        json.dump(LOG, file)
    print("done", flush=True)
    await asyncio.sleep(1000)


if sys.argv[2] == "uvloop":
    import uvloop
    loop = uvloop.new_event_loop()
else:
    loop = asyncio.new_event_loop()
loop.run_until_complete(main())
