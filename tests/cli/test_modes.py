"""Modes that this machine does not need: if the kernel refuses the first one, the next is used and named."""
import contextlib
import json
import os
import re
import sqlite3
import subprocess

import pytest
from cli_support import BUSY, PHLOX, PYTHON, REFUSE, count, phlox, still_runs, where_calls_can_be_refused

# A program of the real-time class takes its CPU from every other test.
pytestmark = [pytest.mark.live, pytest.mark.alone]

AS_ROOT = os.geteuid() == 0


def record_without(calls, busy):
    """A recording by a phlox that is refused these calls: what it printed, and its modes()."""
    # A phlox built with the address sanitizer searches for leaks at its end, by ptrace.
    without_leaks = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"} if "ptrace" in calls else {}
    done = subprocess.run(["/usr/bin/python3", "-c", REFUSE, calls, PHLOX, "record", "-v", "--mode", "no-kernel", "-p", str(busy.pid), "-d", "0.6", "-r", "100",
                           "--max-overhead", "off", "-o", "a.phlox"], capture_output=True, text=True, timeout=60,
                          env=os.environ | without_leaks)
    if done.stderr.startswith("no seccomp"):
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    return done.stderr, *modes()


def modes():
    with contextlib.closing(sqlite3.connect("a.phlox")) as db:
        (mode,) = db.execute("SELECT mode FROM process").fetchone()
        (proved,) = db.execute("SELECT count(*) FROM sample JOIN state ON state.id = sample.state WHERE quality = 0 AND cpu = 1").fetchone()
    return mode, proved


@where_calls_can_be_refused
def test_a_cpu_that_phlox_may_not_enter_is_read_by_stops(busy, workdir):
    # What a cpuset without the target's CPU answers (kernel/sched/core.c: sched_setaffinity, EINVAL).
    said, mode, proved = record_without("sched_setaffinity", busy)
    assert "ptrace stop" in mode and proved > 0
    assert "ptrace stop" in said
    assert still_runs(busy)


@where_calls_can_be_refused
def test_without_the_right_to_stop_stacks_are_unproved_and_that_is_reported(busy, workdir):
    said, mode, proved = record_without("sched_setaffinity,ptrace", busy)
    assert "hands off" in mode and proved == 0 and count("a.phlox") > 0
    assert "hands off" in said and "unproved" in said
    assert still_runs(busy)


# Under the thread sanitizer: what each thread found out about the call is its own.
@where_calls_can_be_refused
def test_without_the_call_that_reads_memory_its_file_is_read(busy, workdir):
    _, mode, proved = record_without("process_vm_readv", busy)
    assert "same CPU" in mode and proved > 0
    with contextlib.closing(sqlite3.connect("a.phlox")) as db:
        assert db.execute("SELECT name FROM thread").fetchall() == [("MainThread",)]


# What a kernel that does not count schedules shows (fs/proc/base.c): zeros (proc_pid_schedstat, its accounting off), or no such
# file (built without CONFIG_SCHED_INFO).
ZEROS = 'echo 0 0 0 > off && mount --bind off "$1/schedstat"'
NO_FILE = """
mkdir task
for file in comm maps mem stat status syscall; do touch "task/$file" && mount --bind "$1/$file" "task/$file" || exit 99; done
mount --rbind task "$1"\
"""


@pytest.mark.skipif(not AS_ROOT, reason="needs root to lay files over the kernel's")
@pytest.mark.parametrize("lay", [ZEROS, NO_FILE], ids=["zeros", "no_file"])
def test_a_kernel_that_does_not_count_schedules_proves_nothing_and_says_so(busy, workdir, lay):
    over = f"/proc/{busy.pid}/task/{busy.pid}"
    if subprocess.run(["unshare", "-m", "true"]).returncode != 0:
        pytest.skip("may not make a mount namespace")
    done = subprocess.run(["unshare", "-m", "sh", "-c", lay + ' || exit 99\nshift; exec "$@"', "sh", over, PHLOX, "record", "-v", "--mode", "no-kernel",
                           "-p", str(busy.pid), "-d", "1.5", "-r", "100", "--max-overhead", "off", "-o", "a.phlox"],
                          capture_output=True, text=True, timeout=60)
    if done.returncode == 99:
        pytest.skip(f"may not lay files over /proc: {done.stderr}")
    assert done.returncode == 0, done.stderr
    mode, proved = modes()
    assert proved == 0 and count("a.phlox") > 0
    assert "unproved" in done.stderr
    report = json.loads(subprocess.run([PHLOX, "report", "--json", "a.phlox"], capture_output=True, text=True, check=True).stdout)
    assert re.search(r"[1-9]\d* unproved", report["quality"]["line"])
    with contextlib.closing(sqlite3.connect("a.phlox")) as db:
        assert db.execute("SELECT sum(cpu_ns) FROM sample").fetchone()[0] > 0


REAL_TIME = "import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nos.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))\n"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a real-time program leaves its CPU to nobody")
def test_a_real_time_program_is_read_and_does_not_hold_the_recorder(start, workdir):
    # Ends by itself, whatever becomes of this test.
    busy = start([PYTHON, "-c", REAL_TIME + BUSY, "10"], stderr=subprocess.DEVNULL)
    if busy.stdout.readline() != "ready\n":
        pytest.skip("no right to real time")
    done = phlox("record", "--mode", "no-kernel", "-p", busy.pid, "-d", "1", "-r", "200", "--max-overhead", "off", "-o", "a.phlox")
    assert done.returncode == 0, done.stderr
    assert busy.poll() is None, "it was waited for"
    mode, proved = modes()
    assert "same CPU" in mode and proved > 10
