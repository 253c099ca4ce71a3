"""Tasks that wait for functions in threads of an executor: two run, one waits for a thread."""
import asyncio
import concurrent.futures
import os
import threading


def leaf(event):
    event.wait()


def first_job(event):
    leaf(event)


def second_job(event):
    leaf(event)


async def waits(executor, function, event):
    await asyncio.get_running_loop().run_in_executor(executor, function, event)


async def main():
    executor, event = concurrent.futures.ThreadPoolExecutor(2, thread_name_prefix="pool"), threading.Event()
    keep = []
    for name, function in (("first", first_job), ("second", second_job), ("queued", first_job)):
        keep.append(asyncio.create_task(waits(executor, function, event), name=name))
        await asyncio.sleep(0.1)
    while len(executor._threads) < 2 or executor._work_queue.qsize() != 1:
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.2)
    print("ready %d" % os.getpid(), flush=True)
    await asyncio.gather(*keep)


asyncio.run(main())
