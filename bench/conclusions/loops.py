"""Event loops: idle, busy, blocked, with executors and servers."""
import asyncio
import concurrent.futures
import time

from truth import over, part, spin, tell


def idle(seconds):
    async def tick(end):
        while time.monotonic() < end:
            await asyncio.sleep(0.02)

    async def main():
        end = time.monotonic() + seconds
        await asyncio.gather(*(tick(end) for _ in range(5)))

    asyncio.run(main())
    tell()


def busy(seconds):
    def callback():
        with part("callback"):
            spin(0.005)

    async def work(end):
        while time.thread_time() < end:
            callback()
            await asyncio.sleep(0)

    async def main():
        end = time.thread_time() + seconds
        await asyncio.gather(*(work(end) for _ in range(3)))

    asyncio.run(main())
    tell()


def blocked(seconds):
    """A coroutine calls time.sleep: the loop is blocked, not idle."""
    def block_loop():
        with part("block_loop"):
            time.sleep(0.1)

    async def bad(end):
        while time.monotonic() < end:
            block_loop()
            await asyncio.sleep(0.01)

    asyncio.run(bad(time.monotonic() + seconds))
    tell()


def executor(seconds):
    """Two threads, ten calls at a time: both threads are always inside a call."""
    def call_upstream():
        with part("call_upstream"):
            time.sleep(0.05)

    async def request(pool, end):
        while time.monotonic() < end:
            await asyncio.get_running_loop().run_in_executor(pool, call_upstream)

    async def main():
        end = time.monotonic() + seconds
        with concurrent.futures.ThreadPoolExecutor(2, "pool") as pool:
            await asyncio.gather(*(request(pool, end) for _ in range(10)))

    asyncio.run(main())
    tell()


def streams(seconds):
    """A server and a client on one loop."""
    def handle():
        with part("handle"):
            spin(0.004)

    async def serve(reader, writer):
        while await reader.readexactly(1):
            handle()
            writer.write(b"y")

    async def main():
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            writer.write(b"x")
            await reader.readexactly(1)
            await asyncio.sleep(0.01)

    asyncio.run(main())
    tell()


if __name__ == "__main__":
    over({f.__name__: f for f in (idle, busy, blocked, executor, streams)})
