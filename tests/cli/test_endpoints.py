"""phlox report --by endpoint, with frameworks of others: what the program itself measured, and the same numbers in every output."""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from cli_support import ROOT, phlox

sys.path.insert(0, str(ROOT / "bench"))
from harness import services  # noqa: E402

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "phlox"

PROGRAM = """
import asyncio, collections, json, sys, threading, time
import tornado.httpclient, tornado.web
from celery import Celery
cpu, slept = collections.Counter(), collections.Counter()
def spin(name, seconds):
    begin = time.thread_time()
    while time.thread_time() < begin + seconds: sum(i * i for i in range(200))
    cpu[name] += time.thread_time() - begin
class Slow(tornado.web.RequestHandler):
    def prepare(self): spin("Slow.prepare", 0.0005)
    async def get(self, number):
        spin("Slow.get", 0.002)
        begin = time.monotonic()
        await asyncio.sleep(0.06)
        slept["Slow.get"] += time.monotonic() - begin
        self.write(number)
class Busy(tornado.web.RequestHandler):
    def get(self):
        spin("Busy.get", 0.004)
        self.write("busy")
async def part(seconds):
    spin("Fan.get", seconds)
    await asyncio.sleep(0.03)
    spin("Fan.get", seconds)
class Fan(tornado.web.RequestHandler):
    async def get(self):
        spin("Fan.get", 0.0005)
        begin = time.monotonic()
        await asyncio.gather(*(part(0.001) for _ in range(3)))
        slept["Fan.get"] += time.monotonic() - begin
        self.write("fan")
tasks = Celery("tasks", broker="memory://", backend="cache+memory://")
@tasks.task(autoretry_for=(KeyError,))
def add(a, b):
    spin("add", 0.003)
    return a + b
def work(until):
    while time.monotonic() < until:
        assert add.apply((1, 2)).get() == 3
        time.sleep(0.02)
async def client(url, until):
    while time.monotonic() < until:
        await tornado.httpclient.AsyncHTTPClient().fetch(url)
async def main(seconds):
    server = tornado.web.Application([(r"/slow/(\\d+)", Slow), (r"/busy", Busy), (r"/fan", Fan)]).listen(0, "127.0.0.1")
    port = next(iter(server._sockets.values())).getsockname()[1]
    begin = time.monotonic()
    thread = threading.Thread(target=work, args=(begin + seconds,))
    thread.start()
    urls = [f"http://127.0.0.1:{port}/slow/{i}" for i in range(4)] + [f"http://127.0.0.1:{port}/{name}" for name in ("busy", "fan")]
    await asyncio.gather(*(client(url, begin + seconds) for url in urls))
    thread.join()
asyncio.run(main(float(sys.argv[1])))
print(json.dumps({"cpu": cpu, "slept": slept}))
"""

# As py-spy writes it: only the names of functions, so before Python 3.11 as well as after.
STACKS = """\
<module> (/srv/app.py:90);run (/venv/lib/python3.9/site-packages/werkzeug/serving.py:700);{flask};index (/srv/views.py:12) 30
<module> (/srv/app.py:90);run (/venv/lib/python3.9/site-packages/werkzeug/serving.py:700);{flask};index (/srv/views.py:13);query (/srv/db.py:5) 10
<module> (/srv/app.py:90);run (/venv/lib/python3.9/site-packages/werkzeug/serving.py:700);{flask};about (/srv/views.py:40) 20
<module> (/srv/app.py:90);run (/venv/lib/python3.9/site-packages/werkzeug/serving.py:700) 40
""".format(flask="dispatch_request (/venv/lib/python3.9/site-packages/flask/app.py:1950)")


def report(*words):
    done = phlox("report", "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def rows_of(made):
    return {row["name"]: row for row in made["endpoints"]}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """-> (the recording, what the program measured)"""
    python = services.python_of()
    if subprocess.run([python, "-c", "import tornado, celery"], capture_output=True).returncode != 0:
        pytest.skip("no tornado or celery here (tools/requirements-test.txt)")
    if subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]).returncode != 0:
        pytest.skip("before Python 3.11 a code object has no qualified name: both handlers are called get")
    folder = tmp_path_factory.mktemp("endpoints")
    (folder / "shop.py").write_text(PROGRAM)
    done = phlox("record", "-q", "-o", folder / "a.phlox", "--", python, folder / "shop.py", "6")
    assert done.returncode == 0, done.stderr
    return folder / "a.phlox", json.loads(done.stdout.splitlines()[-1])


@pytest.mark.live
def test_each_endpoint_has_the_cpu_time_and_the_await_time_that_the_program_measured(recorded):
    recording, measured = recorded
    rows = rows_of(report("--weight", "cpu", recording))
    assert set(rows) - {"(stack not read)"} == {"Slow.get", "Busy.get", "Fan.get", "add", "(no endpoint)"}
    whole = sum(row["cpu_ns"] for row in rows.values()) * 1e-9
    for name, framework in [("Slow.get", "Tornado"), ("Busy.get", "Tornado"), ("Fan.get", "Tornado"), ("add", "Celery")]:
        row = rows[name]
        assert (row["framework"], row["certain"]) == (framework, True)
        assert row["file"].endswith("/shop.py")
        # Four intervals of 99 % do not hold the truth in 4 % of all runs, so each may be off by its own half.
        half = (row["total"]["high"] - row["total"]["low"]) / 2
        assert row["total"]["low"] - half <= measured["cpu"][name] / whole <= row["total"]["high"] + half, (name, row["total"], measured)
    slow = rows["Slow.get"]
    assert [rows[name]["routes"] for name in ("Slow.get", "Busy.get", "add")] == [[r"GET /slow/(\d+)"], ["GET /busy"], []]
    # Of four requests, each asleep for 80 % of the time, 60 censuses see the mean with a standard error of 3 %. What the program
    # measured also has the time between the end of its sleep and its turn.
    assert 0.8 * measured["slept"]["Slow.get"] < slow["await_ns"] * 1e-9 < 1.15 * measured["slept"]["Slow.get"], (slow, measured)
    assert slow["awaits_for"] == "the end of sleep()"
    assert rows["add"]["await_ns"] == rows["Busy.get"]["await_ns"] == 0
    # The tasks that it waits for wait at the same time: theirs is not added.
    assert 0.7 * measured["slept"]["Fan.get"] < rows["Fan.get"]["await_ns"] * 1e-9 < 1.3 * measured["slept"]["Fan.get"], (rows["Fan.get"], measured)
    assert rows["Fan.get"]["awaits_for"] == "tasks in gather()"


def test_an_export_has_the_same_sums_at_its_roots(recorded, tmp_path):
    recording, _ = recorded
    made = report("--weight", "cpu", "--by", "endpoint", recording)
    done = phlox("export", recording, "-f", "collapsed", "--weight", "cpu", "--by", "endpoint", "-o", tmp_path / "a.txt")
    assert done.returncode == 0, done.stderr
    roots = {}
    for line in (tmp_path / "a.txt").read_text().splitlines():
        stack, weight = line.rsplit(" ", 1)
        name = re.sub(r"^GET \S+ | \(.*", "", stack.split(";")[0])  # without its route and its place
        roots[name] = roots.get(name, 0) + int(weight)
    for row in made["endpoints"]:
        if row["kind"] == "endpoint":
            assert roots[row["name"]] == row["total"]["weight"], (row, roots)


def test_await_time_has_endpoints_too(recorded, tmp_path):
    recording, _ = recorded
    done = phlox("export", recording, "-f", "collapsed", "--weight", "await", "--by", "endpoint", "-o", tmp_path / "a.txt")
    assert done.returncode == 0, done.stderr
    lines = [line for line in (tmp_path / "a.txt").read_text().splitlines() if " Slow.get (shop.py:" in line.split(";")[0]]
    assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == rows_of(report(recording))["Slow.get"]["await_ns"]


def test_one_endpoint_is_chosen_in_every_view(recorded, tmp_path):
    recording, _ = recorded
    all_rows, only = rows_of(report("--show", "everything", recording)), report("--endpoint", "^Busy", recording)
    assert set(rows_of(only)) == {"Busy.get"}
    assert only["total"] == all_rows["Busy.get"]["total"]["weight"]
    for name in ("a.html", "a.svg"):
        done = phlox("export", recording, "--endpoint", "^Busy", "--by", "endpoint", "-o", tmp_path / name)
        assert done.returncode == 0, done.stderr
        text = (tmp_path / name).read_text(errors="replace")
        assert "only endpoints /^Busy/" in text or name == "a.html"
    done = phlox("report", "--endpoint", "(", recording)
    assert done.returncode == 2 and "cannot read the expression" in done.stderr, done.stderr


def test_stacks_of_another_tool_have_endpoints(tmp_path):
    (tmp_path / "stacks.txt").write_text(STACKS)
    made = report("--from", "collapsed", tmp_path / "stacks.txt")
    rows = rows_of(made)
    assert {name: row["total"]["weight"] for name, row in rows.items()} == {"index": 40, "about": 20, "(no endpoint)": 40}
    assert rows["index"]["framework"] == "Flask" and rows["index"]["certain"]
    text = phlox("report", "--by", "endpoint", "--from", "collapsed", tmp_path / "stacks.txt").stdout
    assert "Endpoints" in text and "40.0 %" in text


ROUTES = {
    "starlette": {"read_item": ["GET /api/items/{item:int}"], "write_item": ["POST /api/items/{item:int}"]},
    "fastapi": {"read_item": ["GET /api/items/{item}"], "write_item": ["POST /api/items/{item}"]},
    "flask": {"read_item": ["GET /api/items/<int:item>"], "write_item": ["POST /api/items/<int:item>"]},
    "django": {"read_item": ["/api/items/<int:item>/"], "Things.post": ["POST /api/things/<int:thing>/"]},
    "aiohttp": {"read_item": ["GET /api/items/{item}"], "Things.post": ["POST /api/things/{thing}"]},
}


@pytest.mark.live
@pytest.mark.parametrize("framework", ROUTES)
def test_an_endpoint_has_its_methods_and_the_route_as_the_framework_has_it(framework, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(CACHE / "web"))
    python = services.python_of()
    if subprocess.run([python, "-c", f"import {framework}"], capture_output=True).returncode != 0:
        pytest.skip(f"no {framework} here (tools/install-test-deps.sh)")
    done = phlox("record", "-q", "-o", tmp_path / "a.phlox", "--", python, ROOT / "tests/live/programs/routes.py", framework, "6")
    assert done.returncode == 0, done.stderr
    expected = ROUTES[framework]
    # Before Python 3.11, the name of a method is that of its function.
    if subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]).returncode != 0:
        expected = {name.split(".")[-1]: routes for name, routes in expected.items()}
    rows = rows_of(report(tmp_path / "a.phlox"))
    assert {name: rows[name]["routes"] for name in expected} == expected, rows
    assert rows["(no endpoint)"]["routes"] == []
    name, (route,) = next(iter(expected.items()))
    text = phlox("report", "--by", "endpoint", tmp_path / "a.phlox").stdout
    assert route in text and "  route  " in text, text
    only = rows_of(report("--endpoint", "^" + re.escape(route), tmp_path / "a.phlox"))
    assert set(only) == {name}
    done = phlox("export", "-f", "collapsed", "--by", "endpoint", tmp_path / "a.phlox", "-o", tmp_path / "a.txt")
    assert done.returncode == 0 and f"{route} {name} (routes.py:" in (tmp_path / "a.txt").read_text(), done.stderr
    # One row for each route, whatever the number of items.
    assert not re.search("items/[0-9]", json.dumps(rows))
