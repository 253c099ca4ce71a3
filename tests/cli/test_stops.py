"""What a recording must never do to its program: leave a thread standing, swallow a signal, break off a system call, keep a debugger out.
Every way of looking, at a program that is sent signals all the time."""
import contextlib
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import time

import pytest
from cli_support import LIMIT, PHLOX, PYTHON, ROOT, phlox, wait_until

pytestmark = pytest.mark.live
AS_ROOT = os.geteuid() == 0
STORM = ROOT / "tests" / "cli" / "storm.py"
FAST = ("-r", "400", "--max-overhead", "off")

MODES = {
    "auto": (),
    "no-kernel": ("--mode", "no-kernel"),
    "same-cpu": ("--mode", "same-cpu"),
    "ptrace": ("--mode", "ptrace"),
    "hands-off": ("--mode", "hands-off"),
    "native": ("--native",),
    "native-no-kernel": ("--native", "--mode", "no-kernel"),
    "native-ptrace": ("--native", "--native-source", "ptrace"),
    "both-ptrace": ("--mode", "ptrace", "--native", "--native-source", "ptrace"),
}
STORMS = {"signals": ("directed", "timer", "children"), "job-control": ("stopped",)}


def threads_of(pid):
    return [int(task.name) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()]


def states_of(pid):
    """Thread: state and tracer; threads that end meanwhile are left out."""
    found = {}
    for tid in threads_of(pid):
        with contextlib.suppress(OSError):
            status = pathlib.Path(f"/proc/{pid}/task/{tid}/status").read_text()
            found[tid] = re.search(r"^State:\t(\w)", status, re.M).group(1), int(re.search(r"^TracerPid:\t(\d+)", status, re.M).group(1))
    return found


def goes_on(pid):
    """No thread is stopped, and none is traced."""
    states = states_of(pid)
    assert states
    left = {tid: state for tid, state in states.items() if state[0] in "tT" or state[1] != 0}
    assert not left, left


class Storm:
    """tests/cli/storm.py, asked for its counts."""

    def __init__(self, start, *kinds, threads=3):
        self.process = start([PYTHON, STORM, threads, *kinds], stdin=subprocess.PIPE)
        assert self.process.stdout.readline() == "ready\n"
        self.pid = self.process.pid
        self.stops = "stopped" in kinds

    def counts(self):
        self.process.stdin.write("?\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def watched(self, run):
        """What comes of `run`, while every thread is seen to work, and standing never for long. Jobs are stopped and continued."""
        begun = self.counts()
        windows, standing, longest = [begun["work"]], {}, 0
        while run.poll() is None:
            if self.stops:
                os.kill(self.pid, signal.SIGSTOP)
                time.sleep(0.01)
                os.kill(self.pid, signal.SIGCONT)
            end = time.monotonic() + 0.5
            while time.monotonic() < end and run.poll() is None:
                for tid, (state, _) in states_of(self.pid).items():
                    standing[tid] = standing.get(tid, 0) + 1 if state == "t" else 0
                    longest = max(longest, standing[tid])
                time.sleep(0.02)
            windows.append(self.counts()["work"])
        assert longest < 10, "a thread stood still for a fifth of a second and longer"
        goes_on(self.pid)
        done = self.counts()
        for work in zip(begun["work"], done["work"]):
            assert work[1] > work[0], "a thread has not worked"
        return begun, done, windows

    def end(self):
        """Signals that are under way arrive; then the last counts."""
        out, _ = self.process.communicate("end\n", timeout=LIMIT)
        assert self.process.returncode == 0
        return json.loads(out.splitlines()[-1])


def record(pid, *options):
    return subprocess.Popen([PHLOX, "record", "-p", str(pid), "-d", "2", "-o", "a.phlox", *FAST, *options], stderr=subprocess.PIPE, text=True)


def nothing_was_lost(last):
    # A byte for each call of the handler: real-time signals queue, so not one may be missing.
    assert last["got"] == last["sent"]
    if last["timer"] is not None:
        assert last["timer"] > 0
    assert last["children"] == last["reaped"]
    assert last["interrupted"] == 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("storm", STORMS)
def test_a_program_that_is_sent_signals_works_on(start, workdir, mode, storm):
    target = Storm(start, *STORMS[storm])
    run = record(target.pid, *MODES[mode])
    begun, done, windows = target.watched(run)
    _, said = run.communicate(timeout=LIMIT)
    assert run.returncode == 0, said
    if storm == "signals":
        assert done["got"] > begun["got"] + 50, "signals had been arriving"
    # Work continues at the same pace from beginning to end: a stopped thread would show.
    for thread in range(3):
        moved = [b[thread] > a[thread] for a, b in zip(windows, windows[1:-1])]
        assert all(moved), windows
    nothing_was_lost(target.end())


@pytest.mark.parametrize("mode", MODES)
def test_a_launched_program_gets_its_signals_and_reaped_by_its_parent(workdir, mode):
    done = subprocess.run([PHLOX, "record", "-o", "a.phlox", *FAST, *MODES[mode], "--", PYTHON, STORM, "3", "directed", "timer", "children",
                           "for=3"], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 7, done.stderr
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["sent"] > 100
    nothing_was_lost(last)


# A thread other than the first calls execve: a tracer that asked it to stop then waits for a number that no thread has any more.
BECOMES = """
import os, sys, threading
left = int(sys.argv[2]) if len(sys.argv) > 2 else 60
if left == 60:
    print("ready", flush=True)
if left == 0:
    sys.exit("done")
def compute_and_become():
    sum(i * i for i in range(20000))
    os.execv(sys.executable, [sys.executable, "-S", "-E", "-c", sys.argv[1], sys.argv[1], str(left - 1)])
threading.Thread(target=compute_and_become).start()
sum(i * i for i in range(10 ** 9))
"""


@pytest.mark.parametrize("mode", ("ptrace", "native-ptrace"))
def test_a_thread_that_becomes_another_program_is_not_left_standing(start, workdir, mode):
    target = start([PYTHON, "-S", "-E", "-c", BECOMES, BECOMES], stderr=subprocess.PIPE)
    assert target.stdout.readline() == "ready\n"
    run = subprocess.Popen([PHLOX, "record", "-p", str(target.pid), "-o", "a.phlox", "-r", "5000", "--max-overhead", "off", *MODES[mode]],
                           stderr=subprocess.DEVNULL)
    assert target.communicate(timeout=LIMIT)[1] == "done\n"
    run.wait(timeout=LIMIT)


@pytest.mark.parametrize("mode", ("ptrace", "native-ptrace"))
def test_many_threads_that_are_sent_signals(start, workdir, mode):
    target = Storm(start, "directed", threads=30)
    run = record(target.pid, *MODES[mode])
    _, said = run.communicate(timeout=LIMIT)
    assert run.returncode == 0, said
    goes_on(target.pid)
    before = target.counts()["work"]
    wait_until(lambda: all(b > a for a, b in zip(before, target.counts()["work"])), "work of every thread")
    nothing_was_lost(target.end())


# Sleeps in a system call that a stop would break off (signal(7): epoll_wait), having held the GIL until then.
SLEEPER = """
import ctypes, select
libc = ctypes.CDLL(None, use_errno=True)
poll = select.epoll()
poll.register(0, select.EPOLLIN)
events = ctypes.create_string_buffer(64)
print("ready", flush=True)
got = libc.epoll_wait(poll.fileno(), events, 1, -1)
print(got, ctypes.get_errno(), flush=True)
"""


@pytest.mark.parametrize("mode", MODES)
def test_a_system_call_is_never_broken_off(start, workdir, mode):
    target = start([PYTHON, "-c", SLEEPER], stdin=subprocess.PIPE)
    assert target.stdout.readline() == "ready\n"
    wait_until(lambda: states_of(target.pid)[target.pid][0] == "S", "its sleep")
    done = phlox("record", "-p", target.pid, "-d", "1", "-o", "a.phlox", *FAST, *MODES[mode])
    assert done.returncode == 0, done.stderr
    out, _ = target.communicate("now\n", timeout=LIMIT)
    assert out == "1 0\n"


@pytest.mark.parametrize("mode", ("ptrace", "native-ptrace", "auto"))
def test_a_killed_recorder_leaves_no_thread_stopped(start, workdir, mode):
    target = Storm(start, "directed")
    for attempt in range(8):
        run = subprocess.Popen([PHLOX, "record", "-p", str(target.pid), "-o", f"{attempt}.phlox", "-r", "3000", "--max-overhead", "off",
                                *MODES[mode]], stderr=subprocess.DEVNULL)
        time.sleep(0.3 + 0.037 * attempt)
        run.kill()
        run.wait()
        wait_until(lambda: all(state in "RSD" and tracer == 0 for state, tracer in states_of(target.pid).values()), "everybody let go")
        before = target.counts()["work"]
        wait_until(lambda: all(b > a for a, b in zip(before, target.counts()["work"])), "work of every thread")
    nothing_was_lost(target.end())


# ---- CPUs that phlox may not use ----------------------------------------------------------------------------------

CPUSETS = pathlib.Path("/sys/fs/cgroup/cpuset")


@pytest.fixture
def on_one_cpu():
    """What goes before a command that is to run in a cpuset of one CPU; the target keeps them all."""
    cpus = sorted(os.sched_getaffinity(0))
    folder = CPUSETS / f"phlox-test-{os.getpid()}"
    if not AS_ROOT or len(cpus) < 2 or not (CPUSETS / "cpuset.mems").exists():
        pytest.skip("needs root, two CPUs and cgroup's cpusets")
    folder.mkdir()
    (folder / "cpuset.mems").write_text((CPUSETS / "cpuset.mems").read_text())
    (folder / "cpuset.cpus").write_text(str(cpus[0]))
    yield ["/bin/sh", "-c", f'echo $$ > {folder}/tasks && exec "$@"', "sh"], cpus
    wait_until(lambda: not (folder / "tasks").read_text(), "the cpuset's end")
    folder.rmdir()


def in_cpuset(before, pid, *options):
    return subprocess.Popen([*before, PHLOX, "-v", "record", "-p", str(pid), "-d", "2", "-o", "a.phlox", *FAST, *options],
                            stderr=subprocess.PIPE, text=True)


def qualities():
    with contextlib.closing(sqlite3.connect("a.phlox")) as db:
        of = dict(db.execute("SELECT quality, sum(samples) FROM sample JOIN state ON state.id = sample.state GROUP BY quality"))
        counters = dict(db.execute("SELECT name, sum(value) FROM counter GROUP BY name"))
        (mode,) = db.execute("SELECT mode FROM process").fetchone()
    return of, counters, mode


@pytest.mark.parametrize("mode", ("auto", "no-kernel", "same-cpu", "ptrace", "native", "native-no-kernel"))
def test_in_a_cpuset_a_program_that_is_sent_signals_works_on(start, workdir, on_one_cpu, mode):
    before, _ = on_one_cpu
    target = Storm(start, "directed", "timer")
    run = in_cpuset(before, target.pid, *MODES[mode])
    target.watched(run)
    _, said = run.communicate(timeout=LIMIT)
    assert run.returncode == 0, said
    nothing_was_lost(target.end())


def pinned(target, cpus, cpu):
    for tid in threads_of(target.pid):
        os.sched_setaffinity(tid, {cpus[cpu]})


def test_a_thread_on_a_refused_cpu_is_stopped_and_that_is_reported(start, workdir, on_one_cpu):
    before, cpus = on_one_cpu
    target = Storm(start, "quiet")
    pinned(target, cpus, 1)
    run = in_cpuset(before, target.pid, "--mode", "no-kernel")
    _, said = run.communicate(timeout=LIMIT)
    of, counters, mode = qualities()
    assert counters["cpu_refused"] > 0 and counters["unproved"] == 0 and of[0] > 100
    assert "ptrace stop" in mode
    assert "may not use" in said
    goes_on(target.pid)


def test_the_others_are_still_read_on_their_own_cpu(start, workdir, on_one_cpu):
    """One refused CPU is the matter of the threads that run there."""
    before, cpus = on_one_cpu
    target = Storm(start, "quiet")
    pinned(target, cpus, 1)
    run = in_cpuset(before, target.pid, "--mode", "no-kernel")
    time.sleep(1)
    pinned(target, cpus, 0)
    _, said = run.communicate(timeout=LIMIT)
    assert run.returncode == 0, said
    _, counters, mode = qualities()
    assert "same CPU" in mode and "ptrace stop" in mode
    assert 0 < counters["cpu_refused"] < 0.8 * counters["samples"]


def test_mode_same_cpu_stops_no_thread(start, workdir, on_one_cpu):
    before, cpus = on_one_cpu
    target = Storm(start, "quiet")
    pinned(target, cpus, 1)
    run = in_cpuset(before, target.pid, "--mode", "same-cpu")
    traced = 0
    while run.poll() is None:
        traced += sum(tracer != 0 for _, tracer in states_of(target.pid).values())
    _, said = run.communicate(timeout=LIMIT)
    assert run.returncode == 0, said
    assert traced == 0
    _, counters, mode = qualities()
    assert counters["cpu_refused"] > 0 and counters["unproved"] > 0
    assert "ptrace" not in mode and "unproved" in mode
    assert "may not use" in said


# ---- processes with another tracer -----------------------------------------------------------------------------------

# Takes one thread of a process and lets it run, as a debugger does.
TRACER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for tid in map(int, sys.argv[1:]):
    if libc.ptrace(0x4206, tid, 0, 0):  # PTRACE_SEIZE
        sys.exit("refused: " + os.strerror(ctypes.get_errno()))
print("ready", flush=True)
while True:
    pid, status = os.waitpid(-1, 0x40000000)  # __WALL
    if os.WIFSTOPPED(status):
        event, number = status >> 16, os.WSTOPSIG(status)
        print("stop", pid, event, number, flush=True)
        libc.ptrace(7, pid, 0, 0 if event else number)  # PTRACE_CONT
"""


@pytest.mark.parametrize("mode", ("auto", "no-kernel", "native", "native-no-kernel", "native-ptrace"))
def test_a_traced_process_is_left_to_its_tracer(start, workdir, mode):
    """One thread of the program is: that one is read without being stopped, and said so where it is. The others are none the wiser."""
    target = Storm(start, "quiet")
    tracer = start(["/usr/bin/python3", "-c", TRACER, target.counts()["tids"][0]], stderr=subprocess.PIPE)
    if tracer.stdout.readline() != "ready\n":
        pytest.skip(tracer.stderr.read())
    run = record(target.pid, *MODES[mode])
    _, said = run.communicate(timeout=LIMIT)
    assert run.returncode == 0, said
    traced = [state for state in states_of(target.pid).values() if state[1] == tracer.pid]
    assert len(traced) == 1
    before = target.counts()["work"]
    wait_until(lambda: all(b > a for a, b in zip(before, target.counts()["work"])), "work of every thread")
    _, counters, read = qualities()
    if mode == "native-ptrace":
        # The other threads are stopped for their native half as asked.
        assert counters["stop_refused"] > 0 and "ptrace stop" in read
        assert "could not be stopped" in said
    tracer.kill()
    assert "stop" not in tracer.communicate(timeout=LIMIT)[0]


def is_stopped(pid):
    return re.search(r"^State:\t(\w)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M).group(1) == "T"


def is_free(pid):
    return all(state not in "tT" and tracer == 0 for state, tracer in states_of(pid).values())


@pytest.mark.parametrize("mode", ["ptrace", "native-ptrace", "both-ptrace", "native-no-kernel"])
def test_a_recorder_that_is_stopped_holds_no_thread(busy, start, workdir, mode):
    recorder = start([PHLOX, "record", "-q", *MODES[mode], "-r", "1000", "--max-overhead", "off", "-p", busy.pid, "-o", "a.phlox"], stderr=subprocess.PIPE)
    wait_until(lambda: os.path.exists("a.phlox"), "a recorder at work")
    time.sleep(0.5)
    for instant in range(60):
        time.sleep(0.003 + instant % 10 * 0.0007)
        recorder.send_signal(signal.SIGSTOP)
        wait_until(lambda: is_stopped(recorder.pid) and is_free(busy.pid), f"the thread to run on beside a recorder that is stopped ({instant})")
        time.sleep(0.02)
        assert is_stopped(recorder.pid) and is_free(busy.pid), instant
        recorder.send_signal(signal.SIGCONT)
    recorder.send_signal(signal.SIGINT)
    _, err = recorder.communicate(timeout=LIMIT)
    assert recorder.returncode == 0, err
    goes_on(busy.pid)
