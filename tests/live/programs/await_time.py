"""Tasks that wait, and how long for what, as the program itself measures it. Usage: await_time.py [uvloop]
On SIGTERM it prints JSON: the seconds since it was ready, and for each (coroutine, line, kind) the seconds of all its tasks together,
the unfinished waits of that moment included."""
import asyncio
import collections
import concurrent.futures
import json
import os
import random
import signal
import sys
import time

SUMS = collections.Counter()
FUTURES = []  # what forgotten() waits for; nobody sets them, but one could
OPEN = {}  # of each wait that has not ended: where, since when


class Wait:
    """`name` waits for a `kind`, at the line after the one that creates this object."""

    def __init__(self, name, kind):
        self.where = (name, sys._getframe(1).f_lineno + 1, kind)

    def __enter__(self):
        OPEN[self] = time.monotonic()
        return self

    def __exit__(self, *_):
        SUMS[self.where] += time.monotonic() - OPEN.pop(self)


def new():
    FUTURES.append(asyncio.get_running_loop().create_future())
    return FUTURES[-1]


async def forgotten():
    with Wait("forgotten", "future"):
        await new()


async def getter(queue):
    while True:
        with Wait("getter", "queue_item"):
            await queue.get()


async def putter(queue):
    while True:
        with Wait("putter", "sleep"):
            await asyncio.sleep(0.07)
        queue.put_nowait(1)


async def locked(lock):
    while True:
        with Wait("locked", "lock"):
            await lock.acquire()
        with Wait("locked", "sleep"):
            await asyncio.sleep(0.05)
        lock.release()


async def renders(pool):
    loop = asyncio.get_running_loop()
    while True:
        with Wait("renders", "concurrent_future"):
            await loop.run_in_executor(pool, time.sleep, 0.04)


async def deep(number):
    if number > 0:
        await deep(number - 1)
    else:
        await asyncio.sleep(0.03)


async def two_places():
    await asyncio.sleep(random.random() / 10)
    while True:
        with Wait("two_places", "sleep"):
            await asyncio.sleep(0.02 + 0.06 * random.random())
        event = asyncio.Event()
        asyncio.get_running_loop().call_later(0.01 + 0.02 * random.random(), event.set)
        with Wait("two_places", "event"):
            await event.wait()


async def gathers():
    while True:
        with Wait("gathers", "gather"):
            await asyncio.gather(deep(3), deep(20))


async def main():
    queue, lock, pool = asyncio.Queue(), asyncio.Lock(), concurrent.futures.ThreadPoolExecutor(1)
    plan = [(forgotten, 20, ()), (getter, 2, (queue,)), (putter, 1, (queue,)), (locked, 4, (lock,)), (renders, 3, (pool,)),
            (two_places, 100, ()), (gathers, 5, ())]
    keep = [asyncio.ensure_future(function(*words)) for function, many, words in plan for _ in range(many)]
    await asyncio.sleep(0.1)
    SUMS.clear()
    start = time.monotonic()
    for wait in OPEN:
        OPEN[wait] = start

    def tell():
        now = time.monotonic()
        for wait, since in OPEN.items():
            SUMS[wait.where] += now - since
        print(json.dumps({"seconds": now - start, "waits": [[*where, s] for where, s in SUMS.items()]}), flush=True)
        os._exit(0)

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, tell)
    print("ready %d" % os.getpid(), flush=True)
    await asyncio.gather(*keep)

if sys.argv[1:] == ["uvloop"]:
    import uvloop
    uvloop.install()
asyncio.run(main())
