"""Jobs in threads of pools, and the tasks that wait for them, by every way that asyncio has to wait. With "trio": by trio's.
Each function of a job is waited for by one chain of coroutines, or by none."""
import asyncio
import concurrent.futures
import os
import random
import sys
import time

POOL = concurrent.futures.ThreadPoolExecutor(32)


def leaf():
    time.sleep(random.uniform(0.02, 0.06))


def direct_work(): leaf()
def gathered_work(): leaf()
def inner_work(): leaf()
def shielded_work(): leaf()
def timed_work(): leaf()
def lonely_work(): leaf()
def of_thread_work(): leaf()
def trio_work(): leaf()
def trio_anyio_work(): leaf()
def asgiref_work(): leaf()
def anyio_work(): leaf()


def busy_work():
    until = time.monotonic() + random.uniform(0.02, 0.06)
    while time.monotonic() < until:
        sum(range(50))


def run(function):
    return asyncio.get_running_loop().run_in_executor(POOL, function)


async def direct(): await run(direct_work)
async def busy(): await run(busy_work)
async def gathered(): await asyncio.gather(run(gathered_work), run(gathered_work))
async def inner(): await run(inner_work)
async def nested(): await asyncio.gather(inner(), inner())
async def shielded(): await asyncio.shield(run(shielded_work))
async def timed(): await asyncio.wait_for(run(timed_work), 10)
async def of_thread(): await asyncio.to_thread(of_thread_work)


async def lonely():
    job = run(lonely_work)
    while not job.done():
        await asyncio.sleep(0.01)


async def of_anyio():
    import anyio.to_thread
    await anyio.to_thread.run_sync(anyio_work)


async def of_asgiref():
    from asgiref.sync import sync_to_async
    await sync_to_async(asgiref_work, thread_sensitive=False)()


async def again(function):
    while True:
        await function()


async def main():
    functions = [direct, busy, gathered, nested, shielded, timed, lonely]
    if hasattr(asyncio, "to_thread"):
        functions.append(of_thread)
    if "anyio" in sys.argv:
        functions.append(of_anyio)
    if "asgiref" in sys.argv:
        functions.append(of_asgiref)
    tasks = [asyncio.ensure_future(again(function)) for function in functions]
    print("ready %d" % os.getpid(), flush=True)
    await asyncio.gather(*tasks)


async def of_trio():
    while True:
        await trio.to_thread.run_sync(trio_work)
        if "anyio" in sys.argv:
            await anyio.to_thread.run_sync(trio_anyio_work)


if "trio" in sys.argv:
    import trio
    if "anyio" in sys.argv:
        import anyio.to_thread
    print("ready %d" % os.getpid(), flush=True)
    trio.run(of_trio)
elif "uvloop" in sys.argv:
    import uvloop
    uvloop.install()
    asyncio.run(main())
else:
    asyncio.run(main())
