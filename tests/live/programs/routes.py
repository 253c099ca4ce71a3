"""Calls the handlers of a small application of a web framework, as its server would: GET and POST of items in a part of the application
that has a prefix. Flask's is made by a function and is no global variable. Arguments: starlette, fastapi, flask, django or aiohttp; seconds."""
import asyncio
import sys
import time

FRAMEWORK, END = sys.argv[1], time.monotonic() + float(sys.argv[2])


def spin():
    until = time.thread_time() + 0.004
    while time.thread_time() < until:
        sum(i * i for i in range(200))


async def call_asgi(app):
    """Without a server, which Starlette does not need."""
    async def receive():
        return {"type": "http.request", "body": b""}

    async def send(_):
        pass
    while time.monotonic() < END:
        for method in ("GET", "POST"):
            path = "/api/items/%d" % (time.monotonic() * 1e6)
            await app({"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode(),
                       "root_path": "", "scheme": "http", "query_string": b"", "headers": [], "server": ("localhost", 80)}, receive, send)
            await asyncio.sleep(0.001)


if FRAMEWORK == "starlette":
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Mount, Route

    async def read_item(request):
        spin()
        return PlainTextResponse("")

    async def write_item(request):
        spin()
        return PlainTextResponse("")

    app = Starlette(routes=[Mount("/api", routes=[Route("/items/{item:int}", read_item), Route("/items/{item:int}", write_item, methods=["POST"])])])
    asyncio.run(call_asgi(app))

elif FRAMEWORK == "fastapi":
    from fastapi import APIRouter, FastAPI

    router = APIRouter()

    @router.get("/items/{item}")
    async def read_item(item: int):
        spin()

    @router.post("/items/{item}")
    async def write_item(item: int):
        spin()

    app = FastAPI()
    app.include_router(router, prefix="/api")
    asyncio.run(call_asgi(app))

elif FRAMEWORK == "flask":
    from flask import Blueprint, Flask

    api = Blueprint("api", __name__, url_prefix="/api")

    @api.route("/items/<int:item>")
    def read_item(item):
        spin()
        return ""

    @api.route("/items/<int:item>", methods=["POST"])
    def write_item(item):
        spin()
        return ""

    def create_app():
        app = Flask(__name__)
        app.register_blueprint(api)
        return app

    def serve(client):
        while time.monotonic() < END:
            client.get("/api/items/%d" % (time.monotonic() * 1e6))
            client.post("/api/items/1")

    serve(create_app().test_client())

elif FRAMEWORK == "django":
    from django.conf import settings
    settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="-", MIDDLEWARE=[])
    import django
    django.setup()
    from django.core.handlers.wsgi import WSGIHandler
    from django.http import HttpResponse
    from django.test import RequestFactory
    from django.urls import include, path
    from django.views import View

    def read_item(request, item):
        spin()
        return HttpResponse("")

    class Things(View):
        def post(self, request, thing):
            spin()
            return HttpResponse("")

    urlpatterns = [path("api/", include([path("items/<int:item>/", read_item), path("things/<int:thing>/", Things.as_view())]))]
    handler, make = WSGIHandler(), RequestFactory()
    while time.monotonic() < END:
        handler.get_response(make.get("/api/items/%d/" % (time.monotonic() * 1e6)))
        handler.get_response(make.post("/api/things/1/"))

elif FRAMEWORK == "aiohttp":
    import aiohttp
    from aiohttp import web

    async def read_item(request):
        spin()
        return web.Response()

    class Things(web.View):
        async def post(self):
            spin()
            return web.Response()

    async def main():
        api = web.Application()
        api.router.add_get("/items/{item}", read_item)
        api.router.add_view("/things/{thing}", Things)
        app = web.Application()
        app.add_subapp("/api", api)
        globals()["app"] = app
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        base = "http://127.0.0.1:%d/api" % site._server.sockets[0].getsockname()[1]
        async with aiohttp.ClientSession() as session:
            while time.monotonic() < END:
                await (await session.get(base + "/items/%d" % (time.monotonic() * 1e6))).read()
                await (await session.post(base + "/things/1")).read()
    asyncio.run(main())
