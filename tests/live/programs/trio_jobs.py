"""Tasks of trio that wait for functions in threads: two run, and one waits until the limiter lets it start."""
import os
import sys
import threading

import trio

ANYIO = sys.argv[1:] == ["anyio"]
EVENT = threading.Event()


def leaf():
    EVENT.wait()


def first_job():
    leaf()


def second_job():
    leaf()


async def waits(function, limiter):
    if ANYIO:
        import anyio
        await anyio.to_thread.run_sync(function, limiter=limiter)
    else:
        await trio.to_thread.run_sync(function, limiter=limiter)


async def main():
    if ANYIO:
        import anyio
        limiter = anyio.CapacityLimiter(2)
    else:
        limiter = trio.CapacityLimiter(2)
    async with trio.open_nursery() as nursery:
        for name, function in (("first", first_job), ("second", second_job), ("queued", first_job)):
            nursery.start_soon(waits, function, limiter, name=name)
            await trio.sleep(0.1)
        await trio.sleep(0.2)
        print("ready %d" % os.getpid(), flush=True)


trio.run(main)
