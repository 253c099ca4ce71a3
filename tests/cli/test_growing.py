"""A recording is read while its recorder writes it, and after the recorder was killed."""
import json
import signal
import subprocess

import pytest
from cli_support import LIMIT, PHLOX, PYTHON, READS, count, is_recording, phlox, wait_until
from host_facts import kernel_tells_names

pytestmark = pytest.mark.live

NATIVE = "import zlib\ndata = bytes(range(256)) * 4096\nprint('ready', flush=True)\nwhile True: zlib.crc32(data); zlib.compress(data, 9)\n"


@pytest.fixture
def grows(workdir, busy, start):
    """A recorder at work, with something in its file."""
    recorder = start([PHLOX, "record", "-o", "a.phlox", "-p", busy.pid], stderr=subprocess.PIPE)
    wait_until(lambda: is_recording("a.phlox") and count("a.phlox") > 3, "samples")
    return recorder


def test_every_reader_takes_it_and_says_that_it_grows(grows):
    report = phlox("report", "a.phlox")
    assert report.returncode == 0, report.stderr
    assert "\nstill being recorded: " in report.stdout and "hot" in report.stdout
    told = json.loads(phlox("report", "--json", "a.phlox").stdout)
    assert told["unfinished"].startswith("still being recorded: ") and told["unfinished"].endswith(" s so far")
    assert 0 < told["processes"][0]["recorded_ns"] < LIMIT * 1e9
    for arguments in (["export", "a.phlox"], ["view", "a.phlox", "-o", "a.html"], ["diff", "a.phlox", "a.phlox"], ["export", "a.phlox", "-f", "svg", "-o", "a.svg"]):
        done = phlox(*arguments)
        assert done.returncode == 0, done.stderr
        assert "still being recorded: " in done.stderr, arguments
    assert "still being recorded: " in phlox("export", "a.phlox", "-f", "svg").stdout
    before = count("a.phlox")
    wait_until(lambda: count("a.phlox") > before, "more samples")
    grows.send_signal(signal.SIGINT)
    assert grows.wait(timeout=LIMIT) == 0, grows.stderr.read()
    assert json.loads(phlox("report", "--json", "a.phlox").stdout)["unfinished"] == ""


def test_of_a_recorder_that_was_killed_it_says_how_far_it_came(grows):
    grows.kill()
    grows.wait(timeout=LIMIT)
    done = phlox("export", "a.phlox")
    assert done.returncode == 0 and "the recorder was killed after " in done.stderr
    assert "\nthe recorder was killed after " in phlox("report", "a.phlox").stdout


def test_native_frames_have_names_before_the_recorder_gave_them(workdir, start):
    program = start(["/usr/bin/python3", "-c", NATIVE])  # its zlib is a library with names
    assert program.stdout.readline() == "ready\n"
    start([PHLOX, "record", "--native", "-o", "a.phlox", "-p", program.pid])
    wait_until(lambda: is_recording("a.phlox") and count("a.phlox") > 20, "samples")
    assert count("a.phlox", "frame where kind = 1 and function != ''") == 0
    stacks = phlox("export", "a.phlox").stdout
    assert "deflate" in stacks or "crc32" in stacks, stacks


@pytest.mark.skipif(not kernel_tells_names(), reason="/proc/kallsyms has no addresses for us")
def test_so_have_those_of_the_kernel(workdir, start):
    program = start([PYTHON, "-c", READS])
    assert program.stdout.readline() == "ready\n"
    start([PHLOX, "record", "--native", "-o", "a.phlox", "-p", program.pid])
    wait_until(lambda: is_recording("a.phlox") and count("a.phlox") > 20, "samples")
    if count("a.phlox", "frame where kind = 2") == 0:
        pytest.skip("this host does not grant kernel frames")
    assert count("a.phlox", "frame where kind = 2 and function != ''") == 0
    assert "read_zero" in phlox("export", "--all-frames", "a.phlox").stdout
