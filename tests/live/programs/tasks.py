"""Tasks of asyncio in every kind of await. Writes to the file in the first argument what they await, as the program itself sees it: for
each task its chain of [function, line], outermost first, and the kind that `phlox dump --json` should give it. Then prints `ready`,
and nothing changes any more. asyncio cannot name what an async_generator_asend belongs to; the garbage collector can."""
import asyncio
import concurrent.futures
import gc
import json
import os
import sys
import sysconfig
import threading
import types

KINDS = {}
FUTURES = []  # something else refers to them


def task(kind, coroutine, name, make=None, **more):
    KINDS[name] = kind
    loop = asyncio.get_running_loop()
    return (make or asyncio.Task)(coroutine, loop=loop, name=name, **more)


async def lost():
    await asyncio.get_running_loop().create_future()


async def forgotten(future):
    await future


async def outer(future):
    before = 1
    await middle(
        future
    )
    return before


async def middle(future):
    values = [1, 2, 3]
    for _ in values:
        await inner(
            future)


async def inner(future):
    try:
        await future
    finally:
        pass


async def deep(depth, future):
    if depth == 0:
        await future
    else:
        await deep(depth - 1, future)


async def numbers(future):
    yield 1
    await future
    yield 2


async def loops_over(future):
    async for _ in numbers(future):
        pass


async def sends_to(future):
    generator = numbers(future)
    await generator.asend(None)
    await generator.asend(None)


async def throws_into(future):
    async def catches():
        try:
            yield 1
        except ValueError:
            await future
            yield 2
    generator = catches()
    await generator.__anext__()
    await generator.athrow(ValueError())


class Awaitable:
    def __init__(self, future):
        self.future = future

    def __await__(self):
        for _ in iter([1, 2]):
            yield from self.future.__await__()


class OfCoroutine:
    def __init__(self, future):
        self.future = future

    def __await__(self):
        return inner(self.future).__await__()


async def awaits_object(thing):
    return await thing


@types.coroutine
def old_style(future):
    yield from inner(future)


class Resource:
    def __init__(self, future):
        self.future = future

    async def __aenter__(self):
        await self.future

    async def __aexit__(self, *_):
        pass


async def enters(future):
    async with Resource(future):
        pass


async def locks(lock):
    async with lock:
        await asyncio.sleep(1000)


async def waits_for_condition(condition):
    async with condition:
        await condition.wait()


async def gets(queue):
    await queue.get()


async def puts(queue):
    await queue.put(2)


async def sleeps():
    await asyncio.sleep(1234.5)


async def gathers(*some):
    await asyncio.gather(*some)


async def waits(some):
    await asyncio.wait(some)


async def limited(future):
    await asyncio.wait_for(future, 5000)


async def shields(other):
    await asyncio.shield(other)


async def groups(future):
    async with asyncio.TaskGroup() as group:
        for i in range(3):
            KINDS["in-group-%d" % i] = "future"
            group.create_task(forgotten(future), name="in-group-%d" % i)


async def job(executor, function):
    await asyncio.get_running_loop().run_in_executor(executor, function)


async def reads(reader):
    await reader.readline()


async def circle(others, name):
    await others[name]


class OwnTask(asyncio.Task):
    pass


def chain(thing):
    """What a coroutine awaits, as the interpreter itself reports it."""
    frames = []
    while thing is not None:
        for prefix, next_of in (("cr_", "cr_await"), ("gi_", "gi_yieldfrom"), ("ag_", "ag_await")):
            if hasattr(thing, prefix + "frame"):
                frame = getattr(thing, prefix + "frame")
                frames.append([frame.f_code.co_name, frame.f_lineno, frame.f_code.co_filename])
                thing = getattr(thing, next_of)
                break
        else:
            if type(thing).__name__ not in ("coroutine_wrapper", "async_generator_asend", "async_generator_athrow", "anext_awaitable"):
                return frames
            thing = gc.get_referents(thing)[0]
    return frames


async def start(keep, event):
    def new():
        FUTURES.append(asyncio.get_running_loop().create_future())
        return FUTURES[-1]

    keep.append(task("future", forgotten(new()), "forgotten"))
    keep.append(task("future", outer(new()), "nested"))
    keep.append(task("future", deep(40, new()), "deep"))
    keep.append(task("future", loops_over(new()), "async-for"))
    keep.append(task("future", sends_to(new()), "asend"))
    keep.append(task("future", throws_into(new()), "athrow"))
    keep.append(task("future", awaits_object(Awaitable(new())), "awaitable"))
    keep.append(task("future", awaits_object(OfCoroutine(new())), "of-coroutine"))
    keep.append(task("future", awaits_object(old_style(new())), "old-style"))
    keep.append(task("future", enters(new()), "async-with"))
    keep.append(task("future", outer(new()), "of-python", asyncio.tasks._PyTask))
    keep.append(task("future", outer(asyncio.futures._PyFuture(loop=asyncio.get_running_loop())), "python-future"))
    keep.append(task("future", outer(new()), "of-own-class", OwnTask))
    keep.append(task("future", outer(new()), "näme \"✓\""))
    # Without a GIL, an object has no single count of its references.
    keep.append(task("future" if sysconfig.get_config_var("Py_GIL_DISABLED") else "lost_future", lost(), "lost"))
    if sys.version_info >= (3, 12):
        keep.append(task("future", outer(new()), "eager", eager_start=True))
    lock, semaphore, condition = asyncio.Lock(), asyncio.BoundedSemaphore(1), asyncio.Condition()
    keep.append(task("sleep", locks(lock), "lock-holder"))
    keep.append(task("lock", locks(lock), "lock-waiter"))
    keep.append(task("sleep", locks(semaphore), "semaphore-holder"))
    keep.append(task("semaphore", locks(semaphore), "semaphore-waiter"))
    keep.append(task("condition", waits_for_condition(condition), "condition"))
    empty, full = asyncio.Queue(), asyncio.Queue(1)
    full.put_nowait(1)
    keep.append(task("queue_item", gets(empty), "queue-get"))
    keep.append(task("queue_room", puts(full), "queue-put"))
    keep.append(task("sleep", sleeps(), "sleep"))
    keep.append(task("task", forgotten(keep[0]), "of-task"))
    keep.append(task("gather", gathers(keep[0], keep[1]), "gather"))
    keep.append(task("wait", waits({keep[0], keep[1]}), "wait"))
    keep.append(task("wait", limited(new()), "wait-for"))
    keep.append(task("task", shields(keep[0]), "shield"))
    keep.append(task("concurrent_future", job(concurrent.futures.ThreadPoolExecutor(1), event.wait), "job"))
    reader, writer = await asyncio.open_connection(*(await listener(keep)))
    keep.append(writer)
    keep.append(task("stream_data", reads(reader), "stream"))
    if sys.version_info >= (3, 11):
        keep.append(task("task_group", groups(new()), "group"))
    others = {}
    for name, other in (("circle-a", "circle-b"), ("circle-b", "circle-a")):
        others[name] = task("task", circle(others, other), name)
    keep.extend(others.values())


async def listener(keep):
    async def handle(reader, writer):
        keep.append((reader, writer))
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    keep.append(server)
    return server.sockets[0].getsockname()[:2]


async def main(path, keep, event, second):
    await start(keep, event)
    asyncio.get_running_loop().call_later(0.5, tell, path, keep, second)
    KINDS["main"] = "event"
    asyncio.current_task().set_name("main")
    await asyncio.Event().wait()


def tell(path, keep, second):
    """From the loop itself: no task runs meanwhile."""
    tasks = {}
    every = asyncio.all_tasks(asyncio.get_running_loop()) | asyncio.all_tasks(second)
    # all_tasks() of 3.14 does not return a _PyTask.
    every |= {one for one in keep if isinstance(one, asyncio.tasks._PyTask)}
    for one in every:
        tasks[one.get_name()] = {"chain": chain(one.get_coro()), "kind": KINDS[one.get_name()]}
    with open(path, "w") as file:
        json.dump(tasks, file)
    print("ready %d" % os.getpid(), flush=True)


def run_second(loop, started):
    async def other():
        KINDS["second"] = "event"
        asyncio.current_task().set_name("second")
        loop.call_soon(started.set)
        await asyncio.Event().wait()
    loop.run_until_complete(other())


if __name__ == "__main__":
    second, started = asyncio.new_event_loop(), threading.Event()
    threading.Thread(target=run_second, args=(second, started), name="second-loop", daemon=True).start()
    started.wait()
    asyncio.run(main(sys.argv[1], [], threading.Event(), second))
