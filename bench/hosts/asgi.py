"""An ASGI application: most of a request's time is spent in awaiting."""
import asyncio
import hashlib


async def query(seconds):
    await asyncio.sleep(seconds)
    return b"x" * 20_000


async def handle():
    parts = await asyncio.gather(query(0.01), query(0.02), query(0.005))
    return hashlib.sha256(b"".join(parts)).hexdigest()


async def application(scope, receive, send):
    if scope["type"] != "http":
        return
    body = (await handle()).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})
