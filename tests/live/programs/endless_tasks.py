"""Tasks that never end, and others that wait for as long as they like. Usage: endless_tasks.py [uvloop]
Never: 12 of lost(), 12 of lost_in_a_variable(), 3 of locked() and 2 of full(), and ever more of leaked(). As they should: all others."""
import asyncio
import os
import sys

REGISTRY, KEPT = [], []


async def lost():
    await asyncio.get_running_loop().create_future()


async def lost_in_a_variable():
    future = asyncio.get_running_loop().create_future()
    await future


async def registered():
    future = asyncio.get_running_loop().create_future()
    REGISTRY.append(future)
    await future


async def holder(lock):
    async with lock:
        await asyncio.Event().wait()


async def locked(lock):
    async with lock:
        pass


async def fair(lock):
    while True:
        async with lock:
            await asyncio.sleep(0.005)


async def full(queue):
    await queue.put(1)


async def leaked():
    future = asyncio.get_running_loop().create_future()
    KEPT.append(future)
    await future


async def heartbeat():
    while True:
        await asyncio.sleep(0.5)


async def consumer(queue):
    while True:
        await queue.get()


async def brief():
    await asyncio.sleep(0.1)


async def on_connection(reader, writer):
    await reader.read(1)


async def connection(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    KEPT.append(writer)
    await reader.read(1)


async def main():
    loop = asyncio.get_running_loop()
    lock, queue, fair_lock = asyncio.Lock(), asyncio.Queue(1), asyncio.Lock()
    KEPT.append(loop.create_task(holder(lock)))
    await asyncio.sleep(0)
    queue.put_nowait(0)
    plan = [(lost, 12, ()), (lost_in_a_variable, 12, ()), (registered, 12, ()), (locked, 3, (lock,)), (full, 2, (queue,)), (fair, 4, (fair_lock,)),
            (heartbeat, 20, ()), (consumer, 20, (asyncio.Queue(),))]
    KEPT.extend(loop.create_task(function(*words)) for function, many, words in plan for _ in range(many))
    server = await asyncio.start_server(on_connection, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    KEPT.append(loop.create_task(server.serve_forever()))
    print("ready %d" % os.getpid(), flush=True)
    for step in range(1_000_000):
        KEPT.append(loop.create_task(leaked()))
        loop.create_task(brief())
        if step % 4 == 0:
            KEPT.append(loop.create_task(connection(port)))
        await asyncio.sleep(0.02)

if sys.argv[1:] == ["uvloop"]:
    import uvloop
    uvloop.install()
asyncio.run(main())
