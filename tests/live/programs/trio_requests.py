"""Requests as hypercorn runs them on trio, each a line of the file LOG, as requests.py writes them. trio_requests.py LOG SECONDS
trio|trio-blocked. blocked: their functions let no other task run."""
import os
import random
import sys
import time

import trio
from blocking import compute, nap  # noqa: F401 (by name)

LOG = open(sys.argv[1], "w")
UNTIL = time.monotonic() + float(sys.argv[2])
LENGTHS = (0.35, 0.9, 1.7)
# The name and the file are what Phlox knows such a task by.
SERVER = """
async def _handle(serve, *words):
    await serve(*words)
async def _connection(answer, *words):
    await answer(*words)
"""
NAMES = {}
exec(compile(SERVER, "/srv/hypercorn/trio/task_group.py", "exec"), NAMES)
MOMENTS = {}  # by task


class Ends(trio.abc.Instrument):
    def task_exited(self, task):
        if task in MOMENTS:
            LOG.write("%d %d %d %d %s\n" % (*MOMENTS[task][1:], time.monotonic_ns(), MOMENTS[task][0]))
            LOG.flush()
            del MOMENTS[task]


async def leaf(seconds):
    await trio.sleep(seconds)


async def middle(seconds):
    with trio.move_on_after(60):
        await leaf(seconds)


async def answer(what, seconds):
    if what in ("compute", "nap"):
        globals()[what](seconds)
    elif what == "slow":
        await trio.sleep(seconds)
    elif what == "fan":
        async with trio.open_nursery() as nursery:
            nursery.start_soon(leaf, seconds)
            nursery.start_soon(middle, seconds)


async def serve(what, seconds, before, done):
    """The whole work of a request."""
    moments = MOMENTS[trio.lowlevel.current_task()] = [what, before, time.monotonic_ns()]
    await answer(what, seconds)
    moments.append(time.monotonic_ns())
    done.set()


async def client(nursery, what, lengths, pause=0):
    while time.monotonic() < UNTIL:
        done = trio.Event()
        nursery.start_soon(NAMES["_handle"], serve, what, random.choice(lengths), time.monotonic_ns(), done)
        await done.wait()
        await trio.sleep(pause)


async def of_connections(nursery):
    while time.monotonic() < UNTIL:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(NAMES["_connection"], answer, "slow", 1.3)


async def busy():
    while time.monotonic() < UNTIL:
        compute(0.004)
        await trio.sleep(random.uniform(0.005, 0.03))


async def main():
    print("ready", os.getpid(), flush=True)
    async with trio.open_nursery() as nursery:
        if sys.argv[3] == "trio-blocked":
            for what in ("compute", "nap"):
                nursery.start_soon(client, nursery, what, [random.uniform(0.2, 0.4) for _ in range(20)], 0.1)
            return
        nursery.start_soon(busy)
        nursery.start_soon(of_connections, nursery)
        for what, lengths in [("slow", LENGTHS)] * 3 + [("fan", LENGTHS)] * 2 + [("fast", (0,))] * 4:
            nursery.start_soon(client, nursery, what, lengths)


trio.run(main, instruments=[Ends()])
