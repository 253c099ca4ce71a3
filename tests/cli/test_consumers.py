"""The programs that people open exports with, where they are here (tools/get-consumers.sh): each adds up to what was recorded, to the last digit."""
import json
import os
import re
import shutil
import sqlite3
import subprocess

import pytest
from cli_support import PYTHON, phlox
from host_facts import node_inflates

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


def consumer(name, *places):
    """A program that tools/get-consumers.sh brings, or one of this machine."""
    places = [os.path.join(FOLDER, name), shutil.which(os.path.basename(name)), *places]
    return next((place for place in places if place and os.path.exists(place)), None)


def needs(name, *places):
    return pytest.mark.skipif(consumer(name, *places) is None, reason=f"no {os.path.basename(name)} here: tools/get-consumers.sh")


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("consumers")
    (folder / "app.py").write_text(PROGRAM)
    done = phlox("record", "-r", "500", "--native", "-o", folder / "a.phlox", "--", PYTHON, folder / "app.py")
    assert done.returncode == 0, done.stderr
    return folder / "a.phlox"


def total(recording):
    return sqlite3.connect(recording).execute("select sum(wall_ns) from sample").fetchone()[0]


def export(recording, kind, folder, *options, name=None):
    out = folder / (name or f"a.{kind}")
    done = phlox("export", recording, "-f", kind, "--show", "everything", *options, "-o", out)
    assert done.returncode == 0, done.stderr
    return out


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# The one that comes with Go, and the one that others install.
PPROFS = [pytest.param(("go", "tool", "pprof"), marks=needs("go"), id="go-tool-pprof"), pytest.param(("bin/pprof",), marks=needs("bin/pprof"), id="pprof")]
EXACT = ("-unit=ns", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0")
# "874ns 24% 24% 1157ns 32%  fib"; a share may be 3e-06%.
TOP_ROW = re.compile(r"^ *(-?\d+)(?:ns)? +-?[\d.e+-]+% +-?[\d.e+-]+% +-?\d+(?:ns)? +-?[\d.e+-]+%  (.*)$", re.M)


@pytest.mark.parametrize("program", PPROFS)
def test_pprof(recording, tmp_path, program):
    def pprof(*options):
        return run(consumer(program[0]), *program[1:], *EXACT, *options)

    file = export(recording, "pprof", tmp_path)
    top = pprof("-top", file)
    assert f"Total samples = {total(recording)}ns" in top
    rows = {name: int(own) for own, name in TOP_ROW.findall(top)}
    assert sum(rows.values()) == total(recording)
    assert "<module>" in rows, rows
    assert "<unknown>" not in rows
    assert re.search(r"^ *\d+ns .* fib$", pprof("-tree", file), re.M)


@pytest.mark.parametrize("program", PPROFS)
@pytest.mark.parametrize("by", ["function", "line"])
def test_pprof_lists_the_source(recording, tmp_path, program, by):
    file = export(recording, "pprof", tmp_path, "--by", by)
    listed = run(consumer(program[0]), *program[1:], *EXACT, "-list=^fib$", file)
    source = recording.parent / "app.py"
    assert f"ROUTINE ======================== fib in {source}\n" in listed
    own, under, share = re.search(r"^ *(\d+)ns +(\d+)ns \(flat, cum\) +([\d.]+)% of Total", listed, re.M).groups()
    assert re.search(rf"^ *{own}ns +{under}ns +4:def fib", listed, re.M), listed
    assert 0 < int(own) <= int(under) < total(recording) and float(share) > 1


@pytest.mark.parametrize("program", PPROFS)
def test_pprof_shows_the_difference_of_two(recording, tmp_path, program):
    whole, part = export(recording, "pprof", tmp_path), export(recording, "pprof", tmp_path, "--thread", "one; two", name="part.pprof")
    (of_thread,), = sqlite3.connect(recording).execute("select sum(wall_ns) from sample join thread on thread.id = thread where name = 'one; two'")

    def difference(base, file):
        return TOP_ROW.findall(run(consumer(program[0]), *program[1:], *EXACT, "-top", f"-diff_base={base}", file))

    assert sum(int(own) for own, _ in difference(whole, whole)) == 0
    assert sum(int(own) for own, _ in difference(part, whole)) == total(recording) - of_thread
    assert sum(int(own) for own, _ in difference(whole, part)) == of_thread - total(recording)


LATE_DAEMONS = 15


@needs("node_modules/.bin/profiler-cli")
@pytest.mark.skipif(not node_inflates(), reason="profiler-cli needs Node.js 18")
def test_profiler_cli(recording, tmp_path):
    file = export(recording, "firefox", tmp_path)
    environment = dict(os.environ, HOME=str(tmp_path), XDG_RUNTIME_DIR=str(tmp_path))

    def cli(*words):
        return run(consumer("node_modules/.bin/profiler-cli"), *words, env=environment, cwd=tmp_path)

    file = file.rename(tmp_path / "a.firefox.json.gz")
    try:
        # Its daemon has 500 ms to come up; when it was late, a later try often has one (its own words).
        for tries_left in reversed(range(LATE_DAEMONS)):
            try:
                assert "Session started" in cli("load", file)
                break
            except AssertionError as error:
                if tries_left == 0 or "did not become ready" not in str(error):
                    raise
        threads = len(json.loads(cli("profile", "info", "--json"))["processes"][0]["threads"])
        rows = [row for i in range(threads) for row in json.loads(cli("thread", "functions", "--thread", f"t-{i}", "--limit", "0", "--include-idle", "--json"))["functions"]]
        assert "fib" in {row["name"] for row in rows}
        assert round(sum(row["selfSamples"] for row in rows) * 1e6) == total(recording)
    finally:
        cli("stop", "--all")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_duckdb(recording, tmp_path, kind):
    duckdb = pytest.importorskip("duckdb")
    file = export(recording, kind, tmp_path)
    reader = {"csv": "read_csv", "jsonl": "read_json"}[kind]
    query = f"select sum(wall_ns)::bigint, count(*), count(distinct tid) from {reader}('{file}')"
    wall, stretches, threads = duckdb.sql(query).fetchall()[0]
    assert wall == total(recording) and stretches > 100 and threads == 3


# Debian has the script in the package libdevel-nytprof-perl.
SCRIPTS = [("bin/inferno-flamegraph",), ("flamegraph.pl", "/usr/share/perl5/Devel/NYTProf/flamegraph.pl")]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(recording, tmp_path, library, kind):
    module = pytest.importorskip(library)
    file = export(recording, kind, tmp_path)
    if kind == "csv":
        frame = module.read_csv(file)
    else:
        frame = module.read_json(file, lines=True) if library == "pandas" else module.read_ndjson(file, infer_schema_length=None)
    assert int(frame["wall_ns"].sum()) == total(recording)
    threads = frame.group_by("tid").agg(module.col("wall_ns").sum()).rows() if library == "polars" else frame.groupby("tid")["wall_ns"].sum().items()
    query = "select tid, sum(wall_ns) from sample join thread on thread.id = sample.thread group by 1"
    assert sorted((int(tid), int(wall)) for tid, wall in threads) == sqlite3.connect(recording).execute(query).fetchall()


@pytest.mark.parametrize("places", [pytest.param(places, marks=needs(*places), id=os.path.basename(places[0])) for places in SCRIPTS])
def test_flame_graph_scripts(recording, tmp_path, places):
    picture = run(consumer(*places), "--countname=ns", export(recording, "collapsed", tmp_path))
    assert re.search(r"<title>all \(([\d,]+) ns", picture)[1].replace(",", "") == str(total(recording))
    assert re.search(r"<title>fib ", picture)
