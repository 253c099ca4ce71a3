"""Tasks that compute, each awaited by one chain of coroutines, or by several that share a part of theirs, by every way that
asyncio has to await a task. With "trio": by a nursery's. The names say what is awaited how."""
import asyncio
import os
import sys
import time


def compute():
    until = time.thread_time() + 0.004
    while time.thread_time() < until:
        sum(range(50))


async def leaf():
    for _ in range(5):
        compute()
        await asyncio.sleep(0.002)


# Each has a coroutine of its own, so that its awaiters are known.
async def gathered_task(): await leaf()
async def awaited_task(): await leaf()
async def timed_task(): await leaf()
async def shielded_task(): await leaf()
async def waited_task(): await leaf()
async def grouped_task(): await leaf()
async def inner_task(): await leaf()
async def alone_task(): await leaf()
async def shared_task(): await leaf()
async def unshared_task(): await leaf()


async def gathered(): await asyncio.gather(gathered_task(), gathered_task())
async def awaited(): await asyncio.ensure_future(awaited_task())
async def timed(): await asyncio.wait_for(timed_task(), 10)
async def shielded(): await asyncio.shield(shielded_task())
async def waited(): await asyncio.wait([asyncio.ensure_future(waited_task()) for _ in range(2)])


async def grouped():
    async with asyncio.TaskGroup() as group:
        group.create_task(grouped_task())
        group.create_task(grouped_task())


async def middle_task(): await asyncio.gather(inner_task(), inner_task())
async def nested(): await asyncio.gather(middle_task(), middle_task())


async def alone():
    task = asyncio.ensure_future(alone_task())
    while not task.done():
        await asyncio.sleep(0.001)


async def load(): await asyncio.gather(shared_task())
async def by_one(): await load()
async def by_other(): await load()


async def sharing():
    await by_one()
    await by_other()


async def again(function):
    while True:
        await function()


async def first(): await asyncio.gather(unshared_task())
async def second(): await asyncio.gather(unshared_task())


async def first_again(): await again(first)
async def second_again(): await again(second)


LEFT = []


async def main():
    functions = [gathered, awaited, timed, shielded, waited, nested, alone, sharing]
    if hasattr(asyncio, "TaskGroup"):
        functions.append(grouped)
    tasks = [asyncio.ensure_future(again(function)) for function in functions]
    # Nothing awaits these two, whose chains have no frame in common.
    LEFT.append(asyncio.ensure_future(first_again()))
    LEFT.append(asyncio.ensure_future(second_again()))
    print("ready %d" % os.getpid(), flush=True)
    await asyncio.gather(*tasks)


async def trio_leaf():
    import trio
    while True:
        compute()
        await trio.sleep(0.002)


async def of_nursery():
    import trio
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio_leaf)
        nursery.start_soon(trio_leaf)


if "trio" in sys.argv:
    import trio
    print("ready %d" % os.getpid(), flush=True)
    trio.run(of_nursery)
elif "uvloop" in sys.argv:
    import uvloop
    uvloop.install()
    asyncio.run(main())
else:
    asyncio.run(main())
