"""Tasks that hold locks of asyncio and tasks that wait for them. Writes who holds what to the file in the first argument: {waiter: holders}."""
import asyncio
import json
import os
import sys


async def forever():
    await asyncio.get_running_loop().create_future()


async def holds(*locks):
    """Inside all of them."""
    if not locks:
        return await forever()
    async with locks[0]:
        await holds(*locks[1:])


async def holds_two_in_one_frame(first, second):
    async with first:
        async with second:
            await forever()


async def waits(lock):
    async with lock:
        pass


async def holds_while_it_waits(first, second):
    async with first:
        await asyncio.sleep(0.01)  # so that the other one has its first, too
        async with second:
            pass


async def held_before(lock):
    async with lock:
        pass
    await forever()


async def acquires(lock):
    await lock.acquire()
    await forever()


async def waits_for_condition(condition):
    async with condition:
        await condition.wait()


async def main(path):
    keep, truth = [], {}

    def start(name, coroutine):
        keep.append(asyncio.create_task(coroutine, name=name))

    one, two, three = asyncio.Lock(), asyncio.Lock(), asyncio.Lock()
    start("nested", holds(one, two))
    start("side by side", holds_two_in_one_frame(three, asyncio.Lock()))
    await asyncio.sleep(0)
    for name, lock, holder in (("of one", one, "nested"), ("of two", two, "nested"), ("of three", three, "side by side")):
        start(name, waits(lock))
        truth[name] = [holder]
    # Two that each hold the lock that the other one wants.
    left, right = asyncio.Lock(), asyncio.Lock()
    for name, own, other, holder in (("left", left, right, "right"), ("right", right, left, "left")):
        start(name, holds_while_it_waits(own, other))
        truth[name] = [holder]
    semaphore = asyncio.BoundedSemaphore(2)
    start("first of two", holds(semaphore))
    start("second of two", holds(semaphore))
    await asyncio.sleep(0)
    start("third", waits(semaphore))
    truth["third"] = ["first of two", "second of two"]
    # No task is inside: it was left, or taken without `async with`.
    taken = asyncio.Lock()
    start("passed on", held_before(taken))
    await asyncio.sleep(0.05)
    start("acquires", acquires(taken))
    await asyncio.sleep(0)
    start("of acquired", waits(taken))
    truth["of acquired"] = []
    # One in wait() has released the condition's lock.
    condition = asyncio.Condition()
    start("in wait", waits_for_condition(condition))
    await asyncio.sleep(0.05)
    start("has condition", holds(condition))
    await asyncio.sleep(0)
    start("of condition", waits(condition))
    truth["of condition"] = ["has condition"]
    await asyncio.sleep(0.05)
    with open(path, "w") as file:
        json.dump(truth, file)
    print("ready %d" % os.getpid(), flush=True)
    await forever()


asyncio.run(main(sys.argv[1]))
