"""What other profilers recorded, taken in: real files of the real programs."""
import collections
import gzip
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys

import pytest
from cli_support import PHLOX, PYTHON, ordinary_pythons, phlox

pytestmark = pytest.mark.live

PROGRAM = """
import json, threading, time, zlib
class Order:
    def total(self, end):
        while time.monotonic() < end: json.loads('[1,2,{"a":3},"x"]')
def squash(end):
    while time.monotonic() < end: zlib.compress(b'abc' * 5000)
def main():
    end = time.monotonic() + 1.5
    packer = threading.Thread(target=squash, args=(end,), name="packer"); packer.start()
    Order().total(end)
    packer.join()
main()
"""


def tool(name):
    """Of the environment that runs the tests, or of the system."""
    next_to_python = os.path.join(os.path.dirname(sys.executable), name)
    return next_to_python if os.path.exists(next_to_python) else shutil.which(name)


def needs(name):
    return pytest.mark.skipif(tool(name) is None, reason=f"{name} records what is imported here")


def first_python(versions):
    for path in ordinary_pythons(os.environ.get("PHLOX_PYTHONS", ""), versions):
        return path
    return None


TACHYON = first_python("5")
needs_tachyon = pytest.mark.skipif(TACHYON is None, reason="profiling.sampling is in Python 3.15")


def run(folder, *command, good=(0,)):
    (folder / "app.py").write_text(PROGRAM)
    for _ in range(3):
        done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, timeout=120, env=dict(os.environ, LC_ALL="C"))
        # Tachyon gives its program two seconds to start, which a busy machine may not have.
        if "failed to signal readiness" not in done.stderr:
            break
    assert done.returncode in good, done.stdout + done.stderr
    return done


def run_austin(folder, *options):
    """austin 3.7 misses one start of a Python in eight ("not a Python process", status 32), and writes names it has misread."""
    for _ in range(8):
        done = run(folder, tool("austin"), *options, PYTHON, "app.py", good=(0, 32, 254))
        if done.returncode != 32:
            return
    raise AssertionError(done.stdout + done.stderr)


def query(path, text):
    return sqlite3.connect(path).execute(text).fetchall()


def imported(path, name):
    """The recording made of it, which every command takes too."""
    out = f"{path}.phlox"
    done = phlox("import", path, "-o", out)
    assert done.returncode == 0, done.stderr
    assert phlox("import", path, "-o", out, "--from", name).returncode == 0
    report = phlox("report", path)
    assert report.returncode == 0 and report.stdout.strip(), report.stderr
    assert phlox("diff", path, path).returncode == 0
    assert phlox("view", path, "-o", f"{path}.html").returncode == 0
    for kind in ("svg", "collapsed", "speedscope", "pprof", "firefox", "perfetto", "chrome", "callgrind", "pstats", "jsonl", "csv"):
        done = subprocess.run([PHLOX, "export", path, "-f", kind], capture_output=True, timeout=60)
        assert done.returncode == 0, (kind, done.stderr)
        assert done.stdout, kind
    return out


def stacks(recording, *options):
    """Of a recording, by names: how many samples."""
    done = phlox("export", recording, "-f", "collapsed", "--show", "everything", "--weight", "samples", *options)
    assert done.returncode == 0, done.stderr
    return collections.Counter({line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in done.stdout.splitlines()})


def names(recording):
    return {row[0] for row in query(recording, "select qualified_name from frame")}


@needs("py-spy")
@pytest.mark.parametrize("kind", ["raw", "speedscope"])
def test_py_spy(tmp_path, kind):
    path = tmp_path / f"spy.{kind}"
    run(tmp_path, tool("py-spy"), "record", "-f", kind, "-r", "100", "-t", "-o", path, "--", PYTHON, "app.py")
    recording = imported(path, "collapsed" if kind == "raw" else "speedscope")
    assert {"squash", "loads"} <= names(recording) and {"Order.total", "total"} & names(recording)
    assert len(query(recording, "select distinct thread from sample")) >= 2
    assert query(recording, "select count(*) from frame where file like '%app.py' and line > 0")[0][0] > 2
    if kind == "raw":
        total = sum(int(line.rsplit(" ", 1)[1]) for line in path.read_text().splitlines())
        assert query(recording, "select sum(samples) from sample")[0][0] == total
        assert query(recording, "select sum(wall_ns) from sample")[0][0] == 0
    else:
        weights = sum(sum(p["weights"]) for p in json.loads(path.read_text())["profiles"])
        assert abs(query(recording, "select sum(wall_ns) from sample")[0][0] - weights * 1e9) < 1e3


@needs("austin")
@pytest.mark.parametrize("mode", [[], ["-f"], ["-fg"], ["-s"]], ids=lambda mode: "".join(mode) or "wall")
def test_austin_text(tmp_path, mode):
    path = tmp_path / "app.austin"
    run_austin(tmp_path, "-i", "2ms", *mode, "-o", path)
    recording = imported(path, "austin")
    lines = [line for line in path.read_text(errors="replace").splitlines() if line.startswith("P")]
    assert query(recording, "select sum(samples), sum(wall_ns) from sample")[0] == (
        len(lines), sum(int(re.split("[ ,]", line.rsplit(" ", 1)[1])[0]) * 1000 for line in lines))
    assert {"Order.total", "total"} & names(recording) and "squash" in names(recording)
    assert len(query(recording, "select distinct thread from sample")) == 2
    states = {row[0] for row in query(recording, "select distinct cpu from state join sample on sample.state = state.id")}
    assert states == ({1, 3} if "f" in "".join(mode) else {0})
    assert query(recording, "select value from meta where key = 'recorded_by'")[0][0].startswith("austin ")


@needs("austin")
@needs("mojo2austin")
@pytest.mark.parametrize("mode", [[], ["-f"], ["-m"]], ids=lambda mode: "".join(mode) or "wall")
def test_austin_mojo_is_what_mojo2austin_makes_of_it(tmp_path, mode):
    path = tmp_path / "app.mojo"
    for _ in range(4):
        run_austin(tmp_path, "-b", "-i", "2ms", *mode, "-o", path)
        recording = imported(path, "austin-mojo")
        # Ours reads names that are no UTF-8; mojo2austin ends with a UnicodeDecodeError.
        if run(tmp_path, tool("mojo2austin"), path, tmp_path / "app.austin", good=(0, 1)).returncode == 0:
            break
    # Where austin could not read a frame, MOJO says so, and mojo2austin leaves it out.
    ours = collections.Counter()
    for stack, count in stacks(recording, "--by", "thread,line").items():
        thread, *frames = [part for part in stack.split(";") if part != "(a part that austin could not read)"]
        ours[";".join([thread, *(frames or ["(no Python frames)"])])] += count
    assert ours == stacks(imported(tmp_path / "app.austin", "austin"), "--by", "thread,line")
    # Half of it is what was there.
    (tmp_path / "cut.mojo").write_bytes(path.read_bytes()[:path.stat().st_size // 2])
    done = phlox("import", tmp_path / "cut.mojo", "-o", tmp_path / "cut.phlox")
    assert done.returncode == 0 and "cut" in done.stderr
    half, whole = stacks(tmp_path / "cut.phlox"), stacks(recording)
    assert 0 < sum(half.values()) < sum(whole.values())
    assert all(whole[stack] >= count for stack, count in half.items())


@needs_tachyon
@pytest.mark.parametrize("mode", ["wall", "cpu"])
def test_tachyon(tmp_path, mode):
    words = [TACHYON, "-m", "profiling.sampling"]
    path = tmp_path / "app.bin"
    run(tmp_path, *words, "run", "-a", "--mode", mode, "--binary", "-o", path, "app.py")
    recording = imported(path, "tachyon")
    run(tmp_path, *words, "replay", "--collapsed", "-o", tmp_path / "app.txt", path)
    text = imported(tmp_path / "app.txt", "collapsed")
    # The text has the last part of a file's path, and the same samples.
    short = collections.Counter()
    for stack, count in stacks(recording, "--by", "thread,line").items():
        # Its own frames Tachyon leaves out when it writes text.
        stack = ";".join(frame for frame in stack.split(";") if "_sync_coordinator.py" not in frame)
        short[re.sub(r"\((?:[^();]*/)?([^();/]*)\)", r"(\1)", stack)] += count
    assert short == stacks(text, "--by", "thread,line")
    assert {"Order.total", "squash"} <= names(recording)
    wall = query(recording, "select sum(wall_ns) from sample")[0][0]
    assert (wall > 2e9) == (mode == "wall")
    (tmp_path / "cut.bin").write_bytes(path.read_bytes()[:path.stat().st_size // 2])
    done = phlox("import", tmp_path / "cut.bin", "-o", tmp_path / "cut.phlox")
    assert done.returncode == 0 and "cut" in done.stderr


@needs_tachyon
def test_tachyon_for_the_firefox_profiler(tmp_path):
    path = tmp_path / "app.json"
    run(tmp_path, TACHYON, "-m", "profiling.sampling", "run", "-a", "--gecko", "-o", path, "app.py")
    recording = imported(path, "firefox")
    count = sum(thread["samples"]["length"] for thread in json.loads(path.read_text())["threads"])
    assert query(recording, "select sum(samples) from sample")[0][0] == count
    assert {"Order.total", "squash"} <= names(recording)


@pytest.mark.parametrize("options", [[], ["--native"]], ids=["python", "native"])
def test_our_firefox_export_comes_back(tmp_path, options):
    (tmp_path / "app.py").write_text(PROGRAM)
    done = phlox("record", "-r", "200", *options, "-o", tmp_path / "a.phlox", "--", PYTHON, tmp_path / "app.py")
    assert done.returncode == 0, done.stderr
    done = phlox("export", tmp_path / "a.phlox", "-o", tmp_path / "a.firefox.json.gz", "--native-names", "full")
    assert done.returncode == 0, done.stderr
    back = imported(tmp_path / "a.firefox.json.gz", "firefox")
    totals = "select sum(wall_ns) from sample where wall_ns > 0"
    assert query(back, totals) == query(tmp_path / "a.phlox", totals)
    per_thread = "select tid, name, sum(wall_ns) from sample join thread on thread.id = sample.thread group by 1, 2 having sum(wall_ns) > 0 order by 1"
    assert query(back, per_thread) == query(tmp_path / "a.phlox", per_thread)
    # Where there is no frame, the export has a marker.
    kinds = "select distinct kind from frame where kind < 3 order by 1"
    assert query(back, kinds) == query(tmp_path / "a.phlox", kinds)
    whole = gzip.decompress((tmp_path / "a.firefox.json.gz").read_bytes())
    (tmp_path / "a.json").write_bytes(whole)
    plain = imported(tmp_path / "a.json", "firefox")
    assert stacks(plain) == stacks(back)
    (tmp_path / "cut.json.gz").write_bytes((tmp_path / "a.firefox.json.gz").read_bytes()[:2000])
    cut = phlox("report", tmp_path / "cut.json.gz")
    assert cut.returncode == 118 and "compressed data" in cut.stderr
