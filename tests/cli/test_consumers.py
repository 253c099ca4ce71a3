"""The programs that people open exports with, where they are here (tools/get-consumers.sh): each adds up to what was recorded, to the last digit."""
import json
import os
import re
import shutil
import sqlite3
import subprocess

import pytest
from cli_support import PYTHON, phlox

FOLDER = os.environ.get("PHLOX_CONSUMERS") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "phlox", "consumers")
PROGRAM = """
import threading, time, zlib
end = time.monotonic() + 1.2
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def work():
    while time.monotonic() < end: fib(10)
def squash():
    while time.monotonic() < end: zlib.compress(b"abc" * 5000)
threads = [threading.Thread(target=work, name="one; two"), threading.Thread(target=squash)]
[t.start() for t in threads]; [t.join() for t in threads]
"""


def consumer(name):
    beside = os.path.join(FOLDER, name)
    return beside if os.path.exists(beside) else shutil.which(os.path.basename(name))


def needs(name):
    return pytest.mark.skipif(consumer(name) is None, reason=f"no {os.path.basename(name)} here: tools/get-consumers.sh")


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("consumers")
    (folder / "app.py").write_text(PROGRAM)
    done = phlox("record", "-r", "500", "--native", "-o", folder / "a.phlox", "--", PYTHON, folder / "app.py")
    assert done.returncode == 0, done.stderr
    return folder / "a.phlox"


def total(recording):
    return sqlite3.connect(recording).execute("select sum(wall_ns) from sample").fetchone()[0]


def export(recording, kind, folder):
    out = folder / f"a.{kind}"
    done = phlox("export", recording, "-f", kind, "--show", "everything", "-o", out)
    assert done.returncode == 0, done.stderr
    return out


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs("go")
def test_go_tool_pprof(recording, tmp_path):
    file = export(recording, "pprof", tmp_path)

    def pprof(*options):
        return run(consumer("go"), "tool", "pprof", "-unit=ns", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0", *options, file)

    top = pprof("-top")
    assert f"Total samples = {total(recording)}ns" in top
    own = [int(row) for row in re.findall(r"^ *(\d+)(?:ns)? +[\d.]+% +[\d.]+% +\d+(?:ns)? +[\d.]+%  ", top, re.M)]
    assert sum(own) == total(recording)
    assert re.search(r"^ *\d+ns .* fib$", pprof("-tree"), re.M)
    assert re.search(r"Showing nodes accounting for 0,", pprof("-top", f"-diff_base={file}"))


@needs("node_modules/.bin/profiler-cli")
def test_profiler_cli(recording, tmp_path):
    file = export(recording, "firefox", tmp_path)
    environment = dict(os.environ, HOME=str(tmp_path), XDG_RUNTIME_DIR=str(tmp_path))

    def cli(*words):
        return run(consumer("node_modules/.bin/profiler-cli"), *words, env=environment, cwd=tmp_path)

    loaded = cli("load", file.rename(tmp_path / "a.firefox.json.gz"))
    assert "Session started" in loaded
    try:
        threads = len(json.loads(cli("profile", "info", "--json"))["processes"][0]["threads"])
        rows = [row for i in range(threads) for row in json.loads(cli("thread", "functions", "--thread", f"t-{i}", "--limit", "0", "--include-idle", "--json"))["functions"]]
        assert "fib" in {row["name"] for row in rows}
        assert round(sum(row["selfSamples"] for row in rows) * 1e6) == seen(recording)
    finally:
        cli("stop", "--all")


def seen(recording):
    """Of stretches with a stack: time without one is no function's."""
    return sqlite3.connect(recording).execute("select sum(wall_ns) from sample where stack is not null").fetchone()[0]


@needs("venv/bin/python")
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_duckdb(recording, tmp_path, kind):
    file = export(recording, kind, tmp_path)
    reader = {"csv": "read_csv", "jsonl": "read_json"}[kind]
    query = f"select sum(wall_ns)::bigint, count(*), count(distinct tid) from {reader}('{file}')"
    words = run(consumer("venv/bin/python"), "-c", "import duckdb, sys; print(*duckdb.sql(sys.argv[1]).fetchall()[0])", query).split()
    assert int(words[0]) == total(recording) and int(words[1]) > 100 and int(words[2]) == 3


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs(name)) for name in ("bin/inferno-flamegraph", "flamegraph.pl")])
def test_flame_graph_scripts(recording, tmp_path, name):
    picture = run(consumer(name), "--countname=ns", export(recording, "collapsed", tmp_path))
    assert re.search(r"<title>all \(([\d,]+) ns", picture)[1].replace(",", "") == str(total(recording))
    assert re.search(r"<title>fib ", picture)
