"""Asks prices_api.py for prices, as 30 users would, and says how long the answers took.

    python3 prices_load.py [SECONDS]
"""
import asyncio
import random
import sys
import time


async def user(until, took):
    reader, writer = await asyncio.open_connection("127.0.0.1", 8000)
    while time.monotonic() < until:
        await asyncio.sleep(random.uniform(0.04, 0.12))
        begin = time.monotonic()
        writer.write(f"GET /price/{random.randrange(600_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = next(line for line in head.lower().splitlines() if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.split(b":")[1]))
        took.append(time.monotonic() - begin)
    writer.close()


async def main():
    seconds, took = float(sys.argv[1]) if len(sys.argv) > 1 else 25, []
    await asyncio.gather(*(user(time.monotonic() + seconds, took) for _ in range(30)))
    took.sort()
    half, most = (1000 * took[int(len(took) * part)] for part in (0.5, 0.99))
    print(f"{len(took)} requests: p50 {half:,.0f} ms, p99 {most:,.0f} ms")


asyncio.run(main())
