"""Short tasks: about 2,000 a second, in two families of coroutines that never mix, each for about 50 ms. On SIGTERM it prints
JSON: the seconds since it was ready, and for how long all tasks of each family together lived."""
import asyncio
import json
import os
import random
import signal
import time

LIVED = {"red": 0.0, "blue": 0.0}
BORN = {}


async def red_leaf():
    await asyncio.sleep(0.02 + 0.06 * random.random())


async def red_middle():
    await red_leaf()


async def blue_leaf():
    await asyncio.sleep(0.02 + 0.06 * random.random())


async def blue_middle():
    await blue_leaf()


async def red(key):
    BORN[key] = time.monotonic()
    await red_middle()
    LIVED["red"] += time.monotonic() - BORN.pop(key)


async def blue(key):
    BORN[key] = time.monotonic()
    await blue_middle()
    LIVED["blue"] += time.monotonic() - BORN.pop(key)


async def main():
    start = time.monotonic()

    def tell():
        now = time.monotonic()
        for (family, _), born in BORN.items():
            LIVED[family] += now - born
        print(json.dumps({"seconds": now - start, "lived": LIVED}), flush=True)
        os._exit(0)

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, tell)
    print("ready %d" % os.getpid(), flush=True)
    number, keep = 0, set()
    while True:
        for family in [red] * 14 + [blue] * 6:
            number += 1
            task = asyncio.ensure_future(family((family.__name__, number)))
            keep.add(task)
            task.add_done_callback(keep.discard)
        await asyncio.sleep(0.01)

asyncio.run(main())
