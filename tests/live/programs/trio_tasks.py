"""Tasks of trio in several kinds of wait. Writes each one's chain to the file in the first argument, as the program itself sees it:
[function, line, file], outermost first, and for a nursery the names of the tasks that it waits for. With `anyio` as the second
argument, anyio creates the tasks."""
import json
import os
import sys

import trio

TRUTH = {}
KINDS = {"middle": "event", "child-0": "event", "child-1": "event", "child-2": "event", "waits": "lock", "reads": "socket",
         "gets": "queue_item", "anyio-event": "event"}
ANYIO = sys.argv[2:] == ["anyio"]


def chain(thing):
    frames = []
    while thing is not None:
        for prefix, next_of in (("cr_", "cr_await"), ("gi_", "gi_yieldfrom"), ("ag_", "ag_await")):
            if hasattr(thing, prefix + "frame"):
                frame = getattr(thing, prefix + "frame")
                frames.append([frame.f_code.co_name, frame.f_lineno, frame.f_code.co_filename])
                thing = getattr(thing, next_of)
                break
        else:
            return frames
    return frames


async def inner(event):
    await event.wait()


async def middle(event):
    for _ in (1, 2):
        await inner(
            event)


async def sleeps():
    await trio.sleep(1000)


async def forever():
    await trio.sleep_forever()


async def locks(lock):
    async with lock:
        await trio.sleep_forever()


async def reads(stream):
    await stream.receive_some()


async def gets(channel):
    await channel.receive()


async def parent(event):
    async with trio.open_nursery() as nursery:
        for i in range(3):
            nursery.start_soon(middle, event, name="child-%d" % i)


async def anyio_parent():
    import anyio
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 1000, name="anyio-sleep")
        group.start_soon(anyio.Event().wait, name="anyio-event")


def every(task):
    yield task
    for nursery in task.child_nurseries:
        for child in nursery.child_tasks:
            yield from every(child)


async def main():
    lock, event = trio.Lock(), trio.Event()
    keep = trio.open_memory_channel(0), trio.testing.memory_stream_pair(), trio.socket.socketpair()
    async with trio.open_nursery() as nursery:
        for name, make, *arguments in (("middle", middle, event), ("sleeps", sleeps), ("forever", forever), ("holds", locks, lock),
                                       ("parent", parent, event), ("reads", reads, trio.SocketStream(keep[2][0])), ("gets", gets, keep[0][1])):
            nursery.start_soon(make, *arguments, name=name)
        if ANYIO:
            nursery.start_soon(anyio_parent, name="anyio-parent")
        await trio.sleep(0.2)
        nursery.start_soon(locks, lock, name="waits")
        await trio.sleep(0.3)
        trio.lowlevel.current_trio_token().run_sync_soon(tell, trio.lowlevel.current_root_task())
        await trio.sleep_forever()


def tell(root):
    """A task of trio itself calls this, so no task of the program runs meanwhile, and this one has no chain."""
    for task in every(root):
        if task.coro.cr_running:
            continue
        children = sorted(child.name for nursery in task.child_nurseries[-1:] for child in nursery.child_tasks)
        frames = chain(task.coro)
        waits = any(name == "_nested_child_finished" for name, *_ in frames)
        sleeps = [name for name, *_ in frames if name in ("sleep", "sleep_until")] != []
        TRUTH[task.name] = {"chain": frames, "children": children if waits else [],
                            "kind": "nursery" if waits else "sleep" if sleeps else KINDS.get(task.name, "")}
    with open(sys.argv[1], "w") as file:
        json.dump(TRUTH, file)
    print("ready %d" % os.getpid(), flush=True)


import trio.testing
trio.run(main)
