"""Requests of an event-loop server, each a line of the file LOG: moments before and after its begin, before and after its end
(CLOCK_MONOTONIC, ns), and what it was. requests.py LOG SECONDS uvicorn|tornado|alone|blocked. alone: tasks as uvicorn starts
them, and others like them that are no requests. blocked: such tasks whose functions let no other task run."""
import asyncio
import os
import random
import socket
import sys
import threading
import time
import weakref

from blocking import compute, nap  # noqa: F401 (by name)

LOG = open(sys.argv[1], "w")
UNTIL = time.monotonic() + float(sys.argv[2])
LENGTHS = (0.35, 0.9, 1.7)


class Request:
    """Of a task; `what`: None until it is known that it is one."""
    what = None

    def __init__(self):
        self.moments = [time.monotonic_ns()]

    def note(self):
        self.moments.append(time.monotonic_ns())

    def end(self, task):
        self.note()
        if self.what is not None:
            LOG.write("%d %d %d %d %s\n" % (*self.moments, self.what))
            LOG.flush()


REQUESTS = weakref.WeakKeyDictionary()  # by task


def new_task(loop, coroutine, **words):
    request = Request()
    task = asyncio.Task(coroutine, loop=loop, **words)
    REQUESTS[task] = request
    task.add_done_callback(request.end)
    return task


async def serve(what, seconds):
    """The whole work of a request."""
    request = REQUESTS[asyncio.current_task()]
    request.note()
    await answer(what, seconds)
    request.note()
    request.what = what


async def leaf(seconds):
    await asyncio.sleep(seconds)


async def middle(seconds):
    await asyncio.wait_for(leaf(seconds), 60)


async def answer(what, seconds):
    if what in ("compute", "nap"):
        globals()[what](seconds)
    elif what == "slow":
        await asyncio.sleep(seconds)
    elif what == "fan":
        await asyncio.gather(leaf(seconds), middle(seconds))
    else:
        await asyncio.sleep(0)


# As in uvicorn: the name and the file are what Phlox knows such a task by.
SERVER = """
async def run_asgi(serve, *words):
    await serve(*words)
async def run_connection(answer, *words):
    await answer(*words)
"""


def names_of_server():
    names = {}
    exec(compile(SERVER, "/srv/uvicorn/protocols/http/h11_impl.py", "exec"), names)
    return names


async def blocked():
    run_asgi, loop = names_of_server()["run_asgi"], asyncio.get_running_loop()

    async def client(what):
        while time.monotonic() < UNTIL:
            await asyncio.wait([new_task(loop, run_asgi(serve, what, random.uniform(0.2, 0.4)))])
            await asyncio.sleep(0.1)

    await asyncio.gather(client("compute"), client("nap"))


async def alone():
    names = names_of_server()
    loop = asyncio.get_running_loop()

    async def client(what, lengths):
        while time.monotonic() < UNTIL:
            await asyncio.wait([new_task(loop, names["run_asgi"](serve, what, random.choice(lengths)))])

    async def of_connections():
        while time.monotonic() < UNTIL:
            await asyncio.wait([new_task(loop, names["run_connection"](answer, "slow", 1.3))])

    async def with_a_name():
        while time.monotonic() < UNTIL:
            await asyncio.wait([new_task(loop, names["run_asgi"](answer, "slow", 1.3), name="mine")])

    async def busy():
        while time.monotonic() < UNTIL:
            begin = time.monotonic()
            while time.monotonic() < begin + 0.004:
                pass
            await asyncio.sleep(random.uniform(0.005, 0.03))

    clients = [("slow", LENGTHS)] * 3 + [("fan", LENGTHS)] * 2 + [("fast", (0,))] * 4
    await asyncio.gather(busy(), of_connections(), with_a_name(), *(client(*one) for one in clients))


def connection(port, paths):
    """Keeps its connection for all its requests."""
    with socket.create_connection(("127.0.0.1", port)) as server:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while time.monotonic() < UNTIL:
            server.sendall(b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n" % random.choice(paths).encode())
            got = b""
            while not got.endswith(b"done"):
                got += server.recv(65536)


def start_clients(port):
    slow, fan = (["/%s/%s" % (what, length) for length in LENGTHS] for what in ("slow", "fan"))
    for paths in [slow] * 3 + [fan] * 2 + [["/fast/0"]] * 4 + [slow + ["/fast/0"] * 20]:
        threading.Thread(target=connection, args=(port, paths), daemon=True).start()


async def with_uvicorn():
    import uvicorn

    async def app(scope, receive, send):
        if scope["type"] != "http":
            return
        _, what, seconds = scope["path"].split("/")
        await serve(what, float(seconds))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
        await send({"type": "http.response.body", "body": b"done"})

    listener = socket.create_server(("127.0.0.1", 0))
    start_clients(listener.getsockname()[1])
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    asyncio.get_running_loop().call_later(UNTIL - time.monotonic() + 2, lambda: setattr(server, "should_exit", True))
    await server.serve(sockets=[listener])


async def with_tornado():
    import tornado.web

    class Answer(tornado.web.RequestHandler):
        async def get(self, what, seconds):
            await serve(what, float(seconds))
            await self.finish("done")

    server = tornado.web.Application([(r"/(\w+)/([\d.]+)", Answer)]).listen(0, "127.0.0.1")
    start_clients(next(iter(server._sockets.values())).getsockname()[1])
    await asyncio.sleep(UNTIL - time.monotonic() + 2)


async def main():
    if sys.argv[3] in ("uvicorn", "tornado"):  # CPython 3.13 gives all tasks of a factory the name None
        asyncio.get_running_loop().set_task_factory(new_task)
    print("ready", os.getpid(), flush=True)
    await {"alone": alone, "blocked": blocked, "uvicorn": with_uvicorn, "tornado": with_tornado}[sys.argv[3]]()


asyncio.run(main())
