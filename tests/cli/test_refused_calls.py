"""System calls that the kernel refuses, once and always: each command still ends soon after Ctrl-C, with a documented exit status, and what
was recorded until then can be read. strace refuses the calls."""
import errno
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from cli_support import BUILD, LIMIT, PHLOX, ROOT, phlox, still_runs, wait_until

sys.path.insert(0, str(ROOT / "tests" / "trust"))
from trust_trials import COMMANDS, documented, traced  # noqa: E402

pytestmark = [pytest.mark.live, pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace"),
              pytest.mark.skipif(BUILD.name in ("asan", "tsan"), reason="a sanitizer makes calls of its own")]
# What a command waits with, writes with, and makes its threads with.
REFUSALS = {"epoll_create1": "EMFILE", "eventfd2": "EMFILE", "epoll_ctl": "ENOMEM", "epoll_wait": "EPERM", "poll": "EPERM", "ppoll": "EPERM",
            "write": "EINTR", "munmap": "EINVAL", "rt_sigtimedwait": "EPERM", "tgkill": "EPERM"}
# Those in which the calls above are not made are left out.
MADE_BY = {"dump": ("write", "munmap"), "report": ("write", "munmap")}
CASES = [(command, call) for command in ("record", "record-no-kernel", "top", "dump", "report") for call in MADE_BY.get(command, REFUSALS)]


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def watches_signals(pid):
    """Ctrl-C comes to a thread of its own from then on; before, it is not yet blocked, and ends the process."""
    blocked = re.search(r"^SigBlk:\t(\w+)", read(f"/proc/{pid}/status"), re.M)
    return blocked is None or bool(int(blocked[1], 16) & 1 << signal.SIGINT - 1)  # None: it has ended


def refused(call, when, command, pid, after=0.7, error=None):
    words = [word.format(pid=pid) for word in COMMANDS[command]]
    process = subprocess.Popen(["strace", "-f", "-qq", "-o", "calls.txt", "-e", f"trace={call}", "-e",
                                f"inject={call}:error={error or REFUSALS[call]}:when={when}", "--", PHLOX, *words],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        if command not in MADE_BY:
            wait_until(lambda: process.poll() is not None or traced(process) is not None, "phlox")
            child = traced(process)
            if child is not None:
                wait_until(lambda: process.poll() is not None or watches_signals(child), "a thread that takes Ctrl-C")
                try:
                    process.wait(after)
                except subprocess.TimeoutExpired:
                    os.kill(child, signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT / 2)
    except subprocess.TimeoutExpired:
        if (child := traced(process)) is not None:
            os.kill(child, signal.SIGKILL)
        process.kill()
        process.communicate()
        pytest.fail(f"{command} does not end: {call} is refused")
    return process.returncode, out, err


@pytest.mark.parametrize("when", ["1", "1+"], ids=["once", "always"])
@pytest.mark.parametrize("command,call", CASES)
def test_each_command_ends(busy, workdir, command, call, when):
    if command == "report":
        assert phlox("record", "-p", busy.pid, "-d", 0.3, "-o", "whole.phlox").returncode == 0
    status, _, err = refused(call, when, command, busy.pid)
    assert status in documented(), (status, err)
    if status != 0 and call != "write":
        assert err.startswith("phlox: ") or "\nphlox: " in err, err
    if os.path.exists("a.phlox"):
        report = phlox("report", "a.phlox")
        assert report.returncode == 0 or status == 120, (status, err, report.stderr)
    assert still_runs(busy)


def test_a_wait_that_is_refused_for_long_ends_the_recording_and_says_so(busy, workdir):
    status, _, err = refused("poll", "1+", "record", busy.pid, after=LIMIT / 4)
    assert status == 119 and "cannot wait for processes: Operation not permitted (poll)" in err, (status, err)
    assert "\nhint: " in err and "what was recorded is in a.phlox" in err, err
    assert phlox("report", "a.phlox").returncode == 0


def test_ends_that_cannot_be_watched_are_reported(busy, workdir):
    status, _, err = refused("epoll_create1", "1+", "record-no-kernel", busy.pid)
    assert status == 0 and "refused to watch for the ends of processes (epoll_create1: " in err, (status, err)


@pytest.mark.parametrize("command", [("import", "-o", "b.phlox"), ("report",)], ids=["import", "report"])
@pytest.mark.parametrize("file,call", [("in.txt", "pread64"), ("in.pipe", "read")], ids=["file", "pipe"])
@pytest.mark.parametrize("error", ["EINTR", "EIO"])
def test_a_failed_read_is_reported(workdir, start, command, file, call, error):
    """Once the head of the file is read, a failure is not its end."""
    with open("in.txt", "w", encoding="utf-8") as text:
        text.writelines(f"main;work;function_{i} 1\n" for i in range(20000))
    if file == "in.pipe":
        os.mkfifo(file)
        start(["sh", "-c", "cat in.txt > in.pipe"])
    done = subprocess.run(["strace", "-f", "-qq", "-o", "calls.txt", "-P", file, "-e", f"inject={call}:error={error}:when=3+", "--", PHLOX, *command, file],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 118, (done.returncode, done.stderr)
    assert f"cannot read {file}: {os.strerror(getattr(errno, error))}" in done.stderr, done.stderr
    assert not os.path.exists("b.phlox")


@pytest.mark.parametrize("call,when", [("pwrite64", "1+"), ("pwrite64", "14+"), ("ftruncate", "1+")])
def test_a_write_that_is_interrupted_for_ever_is_an_error(workdir, call, when):
    """SQLite would repeat it for ever."""
    with open("in.txt", "w", encoding="utf-8") as text:
        text.writelines(f"main;work;function_{i} 1\n" for i in range(2000))
    done = subprocess.run(["strace", "-f", "-qq", "-o", "calls.txt", "-e", f"inject={call}:error=EINTR:when={when}", "--",
                           PHLOX, "import", "in.txt", "-o", "b.phlox"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode in documented(), (done.returncode, done.stderr)
    assert done.returncode == 0 or done.stderr.startswith("phlox: "), done.stderr


@pytest.mark.parametrize("command", ["record", "top"])
def test_ctrl_c_is_seen_where_the_wait_for_it_is_always_interrupted(busy, workdir, command):
    status, _, err = refused("rt_sigtimedwait", "1+", command, busy.pid, error="EINTR")
    assert status in documented(), (status, err)
