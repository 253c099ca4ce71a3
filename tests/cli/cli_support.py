"""Runs the built phlox as a user does; PHLOX_BIN names it, by default that of the build tree."""
import contextlib
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PHLOX_BUILD_DIR", ROOT / "build" / "dev"))
PHLOX = os.environ.get("PHLOX_BIN", str(BUILD / "phlox"))
LIMIT = 60  # seconds: a test that takes longer hangs
# A program that spends most of its time in the kernel.
READS = "zero = open('/dev/zero', 'rb', 0)\nroom = bytearray(1 << 16)\nprint('ready', flush=True)\nwhile True: zero.readinto(room)\n"

# Processes started in the background or by nohup ignore these, and so would every program that the tests start.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)


def ordinary_pythons(pythons, minor):
    """Interpreters of PHLOX_PYTHONS that most users have, of 3.`minor` (a character class): no debug or
    free-threaded build, and none that runs in another root (tools/get-pythons.sh: Debian's later suites),
    whose files are elsewhere."""
    if pythons.endswith(".list"):
        rows = [line.split("\t") for line in pathlib.Path(pythons).read_text().splitlines()]
        paths = [row[1] for row in rows if re.match(rf"3\.1{minor}\.", row[3]) and row[4] == "-" and row[2] not in ("sid", "trixie")]
    else:
        paths = [path for path in pythons.split(":") if re.search(rf"3\.1{minor}(?![0-9td])", path)]
    return [path for path in paths if os.access(path, os.X_OK)]


def ordinary_python(pythons):
    """An interpreter of a version that phlox reads best."""
    return next(iter(ordinary_pythons(pythons, "[123]")), "/usr/bin/python3")


PYTHON = ordinary_python(os.environ.get("PHLOX_PYTHONS", ""))

# Imports threading, whose thread names are the ones to be shown.
BUSY = """
import sys, threading, time
def hot():
    return sum(i * i for i in range(200))
def work(until):
    while time.monotonic() < until:
        hot()
print("ready", flush=True)
work(time.monotonic() + float(sys.argv[1]) if len(sys.argv) > 1 else float("inf"))
"""

# Runs a command with some system calls refused, as by a cpuset, a container's filter or a kernel, with a
# seccomp filter. Numbers are for x86-64.
REFUSE = """
import ctypes, os, struct, sys
EPERM, EINVAL, ENOSYS = 1, 22, 38
NUMBERS = {"sched_setaffinity": (203, EINVAL), "ptrace": (101, EPERM), "process_vm_readv": (310, ENOSYS),
           "perf_event_open": (298, EPERM), "sched_setscheduler": (144, EPERM), "bpf": (321, EPERM)}
refused, command = sys.argv[1].split(","), sys.argv[2:]
program = [struct.pack("HBBI", 0x20, 0, 0, 0)]  # the call's number
for name in refused:
    number, error = NUMBERS[name]
    program.append(struct.pack("HBBI", 0x15, 0, 1, number))
    program.append(struct.pack("HBBI", 0x06, 0, 0, 0x00050000 | error))  # SECCOMP_RET_ERRNO
program.append(struct.pack("HBBI", 0x06, 0, 0, 0x7fff0000))  # SECCOMP_RET_ALLOW
code = ctypes.create_string_buffer(b"".join(program))
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
argument = Filter(len(program), ctypes.addressof(code))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(argument), 0, 0):
    sys.exit("no seccomp: " + os.strerror(ctypes.get_errno()))
os.execv(command[0], command)
"""


def looks_in_the_kernel():
    """Whether record samples in the kernel here by default."""
    said = subprocess.run([PHLOX, "doctor"], capture_output=True, text=True).stdout
    return re.search(r"^yes +BPF", said, re.M) is not None


where_calls_can_be_refused = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the filter knows the numbers of x86-64")


def phlox(*arguments, **options):
    """Runs it until it exits."""
    options.setdefault("timeout", LIMIT)
    return subprocess.run([PHLOX, *map(str, arguments)], capture_output=True, text=True, **options)


def count(path, table="sample"):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute(f"select count(*) from {table}").fetchone()[0]


def wait_until(condition, what):
    """For conditions that cannot be reported on a pipe: the state of a process, a row in a file."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.01)
    pytest.fail(f"waited {LIMIT} s for: {what}")


def has_open(process, name):
    """Unreliable while the process opens and closes others."""
    with contextlib.suppress(OSError):
        return any(os.readlink(f"/proc/{process.pid}/fd/{one}").endswith("/" + name) for one in os.listdir(f"/proc/{process.pid}/fd"))
    return False


def is_recording(path):
    if not os.path.exists(path):
        return False
    try:
        return count(path) > 0
    except sqlite3.Error:
        return False


def status_of(pid):
    return pathlib.Path(f"/proc/{pid}/status").read_text()


def state_of(pid):
    return re.search(r"^State:\t(\w)", status_of(pid), re.M).group(1)


def still_runs(process):
    """Not exited, stopped or traced."""
    return process.poll() is None and state_of(process.pid) in "RSD" and "TracerPid:\t0\n" in status_of(process.pid)
