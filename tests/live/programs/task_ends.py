"""Tasks that await a socket, a stream, a subprocess and the end of a sleep. Writes for each task, to the file in the first argument, both
ends of its socket, the number of its subprocess, or the two times between which its sleep ends (time.monotonic())."""
import asyncio
import json
import os
import socket
import sys
import time

TRUTH = {}


def ends(thing):
    return ["%s:%d" % thing.getsockname()[:2], "%s:%d" % thing.getpeername()[:2]]


async def reads(reader):
    await reader.readexactly(1000)


async def writes(writer):
    writer.write(b"x" * (1 << 26))  # more than both sides of a connection keep
    await writer.drain()


async def receives(thing):
    await asyncio.get_running_loop().sock_recv(thing, 10)


async def accepts(thing):
    await asyncio.get_running_loop().sock_accept(thing)


async def sleeps(seconds):
    await asyncio.sleep(seconds)


async def waits(process):
    await process.wait()


def start(coroutine, name, truth):
    TRUTH[name] = truth
    return asyncio.get_running_loop().create_task(coroutine, name=name)


async def main():
    accepted = []
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        connections = []
        for _ in range(4):
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            connections.append((reader, writer, ends(writer.get_extra_info("socket"))))
            accepted.append(listener.accept()[0])
        tasks = [start(reads(connections[i][0]), "reads-%d" % i, connections[i][2]) for i in range(3)]
        tasks.append(start(writes(connections[3][1]), "writes", connections[3][2]))
        for thing in accepted[:2]:
            thing.setblocking(False)
            tasks.append(start(receives(thing), "receives-%d" % len(tasks), ends(thing)))
        listener.setblocking(False)
        tasks.append(start(accepts(listener), "accepts", ["%s:%d" % listener.getsockname(), ""]))
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(1000)")
        tasks.append(start(waits(process), "subprocess", process.pid))
        for seconds in (500, 1234.5):
            tasks.append(start(sleeps(seconds), "sleeps-%g" % seconds, [time.monotonic() + seconds]))
        await asyncio.sleep(0.2)
        for seconds in (500, 1234.5):
            TRUTH["sleeps-%g" % seconds].append(time.monotonic() + seconds)
        with open(sys.argv[1], "w") as file:
            json.dump(TRUTH, file)
        print("ready %d" % os.getpid(), flush=True)
        try:
            await asyncio.Event().wait()
        finally:
            process.kill()


asyncio.run(main())
