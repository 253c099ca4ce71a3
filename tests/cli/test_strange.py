"""Processes that are not as ordinary programs are: threads of the kernel inside them, a first thread that has ended, other clocks."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import time

import pytest
from cli_support import PHLOX, PYTHON, phlox, state_of, wait_until

pytestmark = pytest.mark.live

# An io_uring whose kernel thread polls (IORING_SETUP_SQPOLL). Arguments: milliseconds until that thread goes to sleep; "wakes": the
# program wakes it again and again, as one that submits something does.
RING = """
import ctypes, sys, time
libc = ctypes.CDLL(None, use_errno=True)
parameters = (ctypes.c_uint32 * 30)()
parameters[2], parameters[4] = 2, int(sys.argv[1])
ring = libc.syscall(425, 8, ctypes.byref(parameters))
print("ready" if ring >= 0 else "no ring", flush=True)
def leaf():
    return sum(range(500))
wake = time.monotonic()
while True:
    leaf()
    if sys.argv[2] == "wakes" and time.monotonic() > wake:
        libc.syscall(426, ring, 0, 0, 2, 0, 0)  # io_uring_enter(IORING_ENTER_SQ_WAKEUP)
        wake += 0.1
"""


def ring(start, idle, how):
    process = start([PYTHON, "-u", "-c", RING, str(idle), how])
    if process.stdout.readline() != "ready\n":
        pytest.skip("no io_uring here")
    tasks = pathlib.Path(f"/proc/{process.pid}/task")
    # The kernel names it a moment after it was made.
    wait_until(lambda: any((task / "comm").read_text().startswith("iou-") for task in tasks.iterdir()), "the kernel's thread")
    (worker,) = [task for task in tasks.iterdir() if (task / "comm").read_text().startswith("iou-")]
    return process, int(worker.name)


def rows_of(path):
    done = phlox("export", path, "--show", "everything", "-f", "jsonl", "-o", "-")
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("options", [["--mode", "no-kernel"], ["--mode", "no-kernel", "--native"], [], ["--native"]], ids=" ".join)
def test_a_thread_of_the_kernel_has_no_stack_and_is_counted(start, workdir, options):
    process, worker = ring(start, 30000, "wakes")
    done = phlox("record", *options, "-d", "1", "-o", "a.phlox", "-p", process.pid)
    assert done.returncode == 0, done.stderr
    rows = rows_of("a.phlox")
    assert sum(row["wall_ns"] for row in rows if row["tid"] == process.pid) > 0.5e9
    assert [row for row in rows if row["tid"] == worker] == []
    assert "1 kernel thread (io_uring or vhost) left out" in phlox("report", "a.phlox").stdout
    assert "rejected_unreadable" not in json.loads(phlox("report", "--json", "a.phlox").stdout)["quality"]["numbers"]["rejected_by_reason"]


def test_a_dump_does_not_wake_a_thread_of_the_kernel_that_sleeps(start, workdir):
    process, worker = ring(start, 1, "sleeps")
    asleep = pathlib.Path(f"/proc/{process.pid}/task/{worker}/schedstat")
    for _ in range(100):
        before = asleep.read_text()
        time.sleep(0.05)
        if asleep.read_text() == before:
            break
    else:
        pytest.skip("the kernel's thread does not sleep")
    done = phlox("dump", "--native", "-p", process.pid)
    assert done.returncode == 0 and "leaf" in done.stdout
    assert "1 thread is not shown: run by the kernel inside the process" in done.stdout
    assert asleep.read_text() == before


HEADLESS = """
import ctypes, os, threading, time
def still_working():
    print("ready", flush=True)
    while True:
        sum(range(500))
threading.Thread(target=still_working, name="worker").start()
time.sleep(0.2)
ctypes.CDLL(None).pthread_exit(None)  # CDLL gives the GIL away first
"""


@pytest.fixture
def headless(start):
    """A Python whose first thread has ended."""
    process = start([PYTHON, "-c", HEADLESS])
    assert process.stdout.readline() == "ready\n"
    wait_until(lambda: state_of(process.pid) == "Z", "the end of the first thread")
    return process


@pytest.mark.parametrize("options", [[], ["--native"]], ids=" ".join)
def test_a_dump_shows_the_threads_that_go_on_without_the_first(headless, workdir, options):
    done = phlox("dump", *options, "-p", headless.pid)
    assert done.returncode == 0, done.stderr
    assert "in still_working" in done.stdout or "still_working (" in done.stdout
    assert "Thread MainThread" not in done.stdout
    assert len(re.findall(r"^Thread ", done.stdout, re.M)) == 1, done.stdout


@pytest.mark.parametrize("options", [[], ["--native"], ["--mode", "no-kernel"], ["--mode", "no-kernel", "--native"], ["--mode", "ptrace"]], ids=" ".join)
def test_threads_that_go_on_without_the_first_are_recorded(headless, workdir, options):
    done = phlox("record", *options, "-d", "1", "-o", "a.phlox", "-p", headless.pid)
    assert done.returncode == 0, done.stderr
    rows = rows_of("a.phlox")
    assert sum(row["wall_ns"] for row in rows if any("still_working" in frame for frame in row["stack"])) > 0.8e9
    assert [row for row in rows if row["tid"] == headless.pid] == []
    assert not re.search("zombie|has ended", done.stderr)


def test_list_and_doctor_know_a_process_whose_first_thread_has_ended(headless):
    assert re.search(rf"^ *{headless.pid} ", phlox("list").stdout, re.M)
    said = phlox("doctor", "-p", headless.pid)
    assert "zombie" not in said.stdout + said.stderr
    assert said.returncode == 0, said.stdout + said.stderr


def test_the_first_thread_may_end_while_it_is_recorded(start, workdir):
    process = start([PYTHON, "-c", HEADLESS.replace("time.sleep(0.2)", "time.sleep(1.5)")])
    assert process.stdout.readline() == "ready\n"
    for mode in ("auto", "no-kernel"):
        if mode == "no-kernel":
            process = start([PYTHON, "-c", HEADLESS.replace("time.sleep(0.2)", "time.sleep(1.5)")])
            assert process.stdout.readline() == "ready\n"
        done = phlox("record", "--mode", mode, "-d", "3", "-o", f"{mode}.phlox", "-p", process.pid)
        assert done.returncode == 0, done.stderr
        rows = rows_of(f"{mode}.phlox")
        assert sum(row["wall_ns"] for row in rows if row["tid"] != process.pid) > 2.5e9
        assert sum(row["wall_ns"] for row in rows if row["tid"] == process.pid) < 2e9


# Its child may be read by root alone (prctl(PR_SET_DUMPABLE)).
SECRETIVE = """
import ctypes, os, sys, time
child = os.fork()
if not child:
    ctypes.CDLL(None).prctl(4, 0)
os.write(1, b"ready\\n")
end = time.monotonic() + 60
while time.monotonic() < end:
    sum(range(500))
"""


def test_a_child_that_may_not_be_read_is_in_the_report(start, tmp_path_factory):
    folder = pathlib.Path(subprocess.run(["mktemp", "-d", "/tmp/strange-XXXXXX"], check=True, capture_output=True, text=True).stdout.strip())
    try:
        shutil.copy(PHLOX, folder / "phlox")
        folder.chmod(0o777)
        user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        environment = {**os.environ, "HOME": str(folder)}
        process = start(["/usr/bin/python3", "-c", SECRETIVE], cwd=folder, **user)
        assert [process.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
        done = subprocess.run([folder / "phlox", "record", "-d", "1.5", "-o", "a.phlox", "-p", str(process.pid)], cwd=folder, env=environment,
                              capture_output=True, text=True, timeout=60, **user)
        assert done.returncode == 0, done.stderr
        assert "not every Python that it started could be recorded" in done.stderr
        report = phlox("report", folder / "a.phlox").stdout
        assert "Not every Python that it started could be recorded" in report
        words = json.loads(phlox("report", "--json", folder / "a.phlox").stdout)["not_recorded"]
        (child,) = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert child in words
        os.kill(int(child), 9)
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("options", [[], ["--native"]], ids=" ".join)
@pytest.mark.parametrize("seconds", [1000000, 500])
def test_a_recorder_in_a_time_namespace_has_the_times_that_the_kernel_has(busy, workdir, options, seconds):
    inside = ["unshare", "-T", "--monotonic", str(seconds), "--boottime", str(seconds), "--fork"]
    if subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
        pytest.skip("no time namespaces here")
    done = subprocess.run([*inside, PHLOX, "record", *options, "-d", "1.5", "-o", "a.phlox", "-p", str(busy.pid)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    rows = rows_of("a.phlox")
    wall = sum(row["wall_ns"] for row in rows)
    used = sum(row["cpu_ns"] for row in rows)
    running = sum(row["wall_ns"] for row in rows if row["cpu_state"] == "running")
    assert 1e9 < wall < 3e9
    assert used <= 1.1 * wall
    assert abs(running - used) < 0.2 * wall, (running, used, wall)


THOUSANDS = """
import sys, threading
threading.stack_size(65536)
never = threading.Event()
for _ in range(int(sys.argv[1])): threading.Thread(target=never.wait, daemon=True).start()
print("up", flush=True)
while True: sum(range(500))
"""


@pytest.fixture(scope="module")
def thousands():
    """A program of 6,001 threads, of which one computes."""
    program = subprocess.Popen([PYTHON, "-c", THOUSANDS, "6000"], stdout=subprocess.PIPE, text=True)
    assert program.stdout.readline() == "up\n"
    yield program.pid
    program.kill()
    program.wait()


@pytest.mark.live
def test_of_thousands_of_threads_a_recording_says_how_many_it_lacks(thousands, tmp_path):
    file = tmp_path / "a.phlox"
    done = phlox("record", "-p", thousands, "-d", "1", "-o", file, timeout=120)
    assert done.returncode == 0, done.stderr
    with contextlib.closing(sqlite3.connect(file)) as db:
        recorded, = db.execute("SELECT count(*) FROM thread").fetchone()
    # Those that were not read at the start, and those that a busy recorder did not come to before the end.
    missing = re.findall(r"(\d+) threads?( were not read when the recording of process \d+ began| of process \d+ are not in the recording)", done.stderr)
    assert recorded + sum(int(count) for count, _ in missing) >= 6001, done.stderr
    said = phlox("report", file).stdout
    assert all(f"{count} threads{words}" in said for count, words in missing), said


@pytest.mark.live
def test_a_dump_of_thousands_of_threads_has_hundreds_and_counts_the_rest(thousands):
    done = phlox("dump", "-p", thousands, timeout=120)
    shown = len(re.findall("^Thread ", done.stdout, re.M))
    missing = sum(int(count) for count in re.findall(r"warning: (\d+) threads are not shown", done.stderr))
    assert shown >= 500 and shown + missing == 6001, (shown, done.stderr)
