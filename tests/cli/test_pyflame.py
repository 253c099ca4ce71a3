"""Pyflame's command line: what its own end-to-end tests asked of it, and what its readers expect of the output."""
import html
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from cli_support import BUSY, PHLOX, PYTHON, phlox

LINE = re.compile(r"^(.+) (\d+)$")
FRAME = re.compile(r"^[^:;]+:[^:;]+:\d+$")

SLEEPER = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.05)"
THREADS = """
import threading, time
def a():
    while True: time.sleep(0.01)
def b():
    while True: time.sleep(0.01)
for f in (a, b): threading.Thread(target=f, daemon=True).start()
print("ready", flush=True)
time.sleep(60)
"""


def running(start, script):
    process = start([PYTHON, "-c", script])
    assert process.stdout.readline() == "ready\n"
    return process


def stacks(text, frame=FRAME):
    """The stacks of an output with their counts; each line must be of the format and come once."""
    found = {}
    for line in text.splitlines():
        stack, count = LINE.match(line).groups()
        assert stack not in found
        assert int(count) >= 1
        if not stack.startswith("("):
            assert all(frame.match(part) for part in stack.split(";")), line
        found[stack] = int(count)
    return found


def test_one_second_and_a_hundred_samples_by_default(busy):
    done = phlox("pyflame", "-p", busy.pid)
    assert (done.returncode, done.stderr) == (0, "")
    found = stacks(done.stdout)
    assert any(":work:" in stack and ":hot:" in stack for stack in found)
    assert 50 <= sum(found.values()) <= 120


def test_rate_and_seconds(busy):
    assert 20 <= sum(stacks(phlox("pyflame", "-s", "0.5", "-r", "0.01", "-p", busy.pid).stdout).values()) <= 70


def test_by_the_name_pyflame(busy, workdir):
    os.symlink(PHLOX, "pyflame")
    done = subprocess.run(["./pyflame", "-s", "0.2", "-p", str(busy.pid)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and stacks(done.stdout)


def test_idle_time_and_without_it(start):
    sleeper = running(start, SLEEPER)
    with_idle = stacks(phlox("pyflame", "-s", "0.5", "-p", sleeper.pid).stdout)
    assert with_idle["(idle)"] >= 10
    done = phlox("pyflame", "-x", "-s", "0.5", "-p", sleeper.pid)
    assert done.returncode == 0
    assert "(idle)" not in stacks(done.stdout)


def test_threads_are_seen_about_equally(start):
    threaded = running(start, THREADS)
    found = stacks(phlox("pyflame", "--threads", "-s", "0.5", "-p", threaded.pid).stdout)
    a, b = (sum(n for stack, n in found.items() if f":{name}:" in stack) for name in "ab")
    assert a > 0 and b > 0
    assert min(a, b) / max(a, b) >= 0.5


def test_no_line_numbers(busy):
    for flag in ("-n", "--no-line-numbers"):
        found = stacks(phlox("pyflame", flag, "-s", "0.3", "-p", busy.pid).stdout, re.compile(r"^[^:;]+:[^:;]+$"))
        assert any(stack.endswith(":hot;<string>:<genexpr>") for stack in found)


def test_trace_a_command_into_a_file(workdir):
    done = phlox("pyflame", "-o", "prof.txt", "-t", PYTHON, "-c", BUSY + "print('over')", "0.5")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ready\nover\n"
    assert any(":work:" in stack for stack in stacks(open("prof.txt").read()))


def test_dump(start):
    threaded = running(start, THREADS)
    done = phlox("pyflame", "-d", "-p", threaded.pid)
    assert done.returncode == 0, done.stderr
    threads = [part.splitlines() for part in done.stdout.strip().split("\n\n")]
    assert len(threads) == 3
    for head, *frames in threads:
        assert re.fullmatch(r"\d+\*?:", head)
        assert frames and all(FRAME.match(frame) for frame in frames)
    assert sum(frames[0].split(":")[1] in ("a", "b") for _, *frames in threads) == 2


def test_flamechart(busy):
    lines = phlox("pyflame", "--flamechart", "-s", "0.5", "-p", busy.pid).stdout.splitlines()
    times, texts = [int(t) for t in lines[::2]], lines[1::2]
    assert len(times) == len(texts) >= 10
    assert times == sorted(times) and times[0] > 1_600_000_000_000_000
    for text in texts:
        assert text in ("(idle)", "(failed)") or (text.endswith(";") and all(FRAME.match(f) for f in text[:-1].split(";")))


def test_the_old_way_to_name_a_process(busy):
    done = phlox("pyflame", "-s", "0.2", busy.pid)
    assert done.returncode == 0 and "warning" in done.stderr


def test_abi_is_accepted(busy):
    assert phlox("pyflame", "--abi", "36", "-s", "0.1", "-p", busy.pid).returncode == 0


@pytest.mark.parametrize("words, part", [
    (["1", "2"], "which process"), (["-p", "1", "-t", "true"], "mutually compatible"), (["-d", "-t", "true"], "mutually compatible"),
    (["-t"], "requires a command"), (["--abi=0", "-p", "1"], "unsupported ABI"), (["-p", "x"], "as a PID"), (["-p", str(2**22 + 1)], "no process"),
    (["--nonsense"], "no option"), (["-s"], "needs a value"), ([], "which process"),
])
def test_errors_are_status_1(words, part):
    done = phlox("pyflame", *words)
    assert done.returncode == 1
    assert part in done.stderr and done.stdout == ""


def tool(name, *places):
    """A program of other people's, where it may be."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "phlox"
    for place in [shutil.which(name), *places, cache / "consumers" / "bin" / name]:
        if place and os.path.isfile(place):
            return str(place)
    pytest.skip(f"{name} is not at hand")


FLAMEGRAPH_PL = ("flamegraph.pl", "/usr/share/perl5/Devel/NYTProf/flamegraph.pl")  # Debian: libdevel-nytprof-perl


@pytest.mark.parametrize("script", [
    lambda: ["perl", tool(*FLAMEGRAPH_PL)],
    lambda: [tool("inferno-flamegraph")],  # tools/get-consumers.sh
], ids=["flamegraph.pl", "inferno"])
@pytest.mark.parametrize("output", ["pyflame", "pyflame-threads", "collapsed"])
def test_flame_graph_tools_draw_it(start, workdir, script, output):
    command = script()
    process = running(start, THREADS.replace("time.sleep(60)", "exec(BUSY)").replace("import threading", f"BUSY = {BUSY!r}\nimport threading"))
    if output == "collapsed":
        assert phlox("record", "-q", "-p", process.pid, "-d", "0.5", "-o", "a.txt").returncode == 0
    else:
        done = phlox("pyflame", "-s", "0.5", "-o", "a.txt", "-p", process.pid, *(["--threads"] if output == "pyflame-threads" else []))
        assert done.returncode == 0, done.stderr
    counts = {stack: int(count) for stack, _, count in (line.rpartition(" ") for line in open("a.txt"))}
    drawn = subprocess.run([*command, "a.txt"], capture_output=True, text=True, timeout=60)
    assert drawn.returncode == 0, drawn.stderr
    assert "gnored" not in drawn.stderr and "nvalid" not in drawn.stderr, drawn.stderr
    def shown(name):
        return name.translate(str.maketrans("<>", "()"))  # flamegraph.pl does so
    titles = {shown(html.unescape(title)) for title in re.findall(r"<title>([^<]*) \([\d,]+ samples", drawn.stdout)}
    wide = {shown(frame) for stack, count in counts.items() if count > 0.02 * sum(counts.values()) for frame in stack.split(";")}
    assert wide and wide <= titles, wide - titles
    assert any("work" in frame for frame in wide)
