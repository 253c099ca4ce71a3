"""Waits, their lengths, wait targets and wakers (--mode kernel), compared with what the programs themselves write."""
import collections
import json
import pathlib
import statistics
import subprocess

import pytest

from live_support import PHLOX, Target, few_pythons, once_a_version, since
from test_kernel import MODE, possible
from noise import Noise
from wait_judge import WaitTargets, Ended, Handovers, read_ended, rows_by_thread

PROGRAMS = pathlib.Path(__file__).parent / "programs"
pytestmark = pytest.mark.skipif(not possible(), reason="phlox doctor: --mode kernel cannot be had here")


def log_of(target, path, between=None):
    """Its log, once it has written it all."""
    while "done" not in target.process.stdout.readline():
        pass
    return [line.split(between) for line in path.read_text().splitlines()]


def report(recording):
    return json.loads(subprocess.run([PHLOX, "report", "--json", recording.path], capture_output=True, text=True, check=True).stdout)


@since(3, 8)
@once_a_version
def test_waits_for_the_gil_and_its_holders(python, record, tmp_path):
    if python.flags == "t":
        pytest.skip("no GIL")
    with Target(python, PROGRAMS / "handovers.py", tmp_path / "log", 3, 4) as target:
        recording = record(target.pid, 3, *MODE)
        log = [tuple(map(int, line)) for line in log_of(target, tmp_path / "log")]
    found = Handovers(recording, log)
    assert found.looked_at > 50
    assert found.waited >= 0.97 * found.looked_at, found.wrong[:5]
    assert found.held >= 0.97 * found.looked_at, found.wrong[:5]
    said = report(recording)
    assert said["waits_exact"] is True
    assert len(said["gil_waits"]) >= 3
    for row in said["gil_waits"][:3]:
        assert row["holders"][0]["name"] in ("have_it", "run"), row
        # On a busy machine it is free again and again, while the thread that was given it waits for a CPU.
        assert row["unseen_ns"] - row["free_ns"] < 0.05 * row["wall_ns"], row


@since(3, 8)
@few_pythons
def test_wakers(python, record, tmp_path):
    if python.flags == "t":
        pytest.skip("locks of free-threaded builds yield their CPU for long before they block")
    with Target(python, PROGRAMS / "passing.py", tmp_path / "log", 3) as target:
        recording = record(target.pid, 2, *MODE)
        log = [(what, int(start), int(wall)) for what, start, wall in log_of(target, tmp_path / "log")]
    names = dict(recording.query("SELECT tid, name FROM thread"))
    (waiter,) = [tid for tid, name in names.items() if name.startswith("waiter")]
    rows = [row for row in rows_by_thread(recording)[waiter] if row.cpu in (2, 3) and row.gil != 3]
    long = [(what, start, wall) for what, start, wall in log if wall > 2_000_000 and rows[0].start < start and start + wall < rows[-1].end]
    assert len(long) > 30
    enders = {"queue": "put_item", "lock": "let_go", "condition": "notify", "pipe": "write_pipe", "socket": "send"}
    off, right = [], 0
    wakes = {i: (tid, recording.stack(stack)) for i, tid, stack in recording.query("SELECT w.id, t.tid, w.stack FROM waker w LEFT JOIN thread t ON t.id = w.thread")}
    for what, start, wall in long:
        inside = [row for row in rows if row.start >= start - 100_000 and row.end <= start + wall + 100_000]
        assert inside, (what, start, wall)
        off.append(wall - sum(row.end - row.start for row in inside))
        tid, stack = wakes.get(max(inside, key=lambda row: row.end - row.start).wake, (None, []))
        right += names.get(tid, "").startswith("ender") and any(frame[1] == enders[what] for frame in stack)
    assert right >= 0.95 * len(long), (right, len(long))
    # The program's own measurement includes waits for the GIL and a CPU before it can read its clock.
    assert statistics.median(off) < 200_000, sorted(off)
    classes = {(row["class"], row["ended_in"]) for row in report(recording)["ended_waits"]}
    for what, how in (("queue", "put_item"), ("lock", "let_go"), ("condition", "notify"), ("socket", "send"), ("pipe", "write_pipe")):
        assert any(kind == what and name.endswith(how) for kind, name in classes), (what, classes)


@since(3, 8)
@few_pythons
def test_wakers_under_unrelated_load(python, record, tmp_path):
    """The long form is ended_waits.py. No other wait may be ended by an unrelated process."""
    if python.flags == "t":
        pytest.skip("a pause of all threads, for the garbage collector, is a wait too, which the program cannot note")
    with Noise(), Target(python, PROGRAMS / "ended.py", tmp_path / "log") as target:
        recording = record(target.pid, 3, *MODE)
        (tmp_path / "log.enough").touch()
        log_of(target, tmp_path / "log")
        log = read_ended(tmp_path / "log")
    found = Ended(recording, log)
    (timed_out, named_timeouts), (ended, named) = found.counts()
    assert not found.wrong, found.wrong[:5]
    assert timed_out > 30 and ended > 60
    assert named_timeouts >= 0.95 * timed_out and named >= 0.95 * ended, found.silent
    own = {by for *_, by in log} | {"timeout", "process %d" % target.pid} | {"thread %d" % tid for (tid,) in recording.query("SELECT tid FROM thread")}
    assert set(found.said.values()) <= own, set(found.said.values()) - own


@since(3, 8)
@once_a_version
def test_what_a_wait_was_for(python, record, tmp_path):
    with Target(python, PROGRAMS / "awaiting.py", tmp_path, 4, 0.006, "kernel") as target:
        recording = record(target.pid, 3, *MODE)
        log = [(kind, name, int(start), int(wall)) for kind, name, start, wall in log_of(target, tmp_path / "log", "\t")]
    found = WaitTargets(recording, "waiter", log, least=4_000_000)
    kinds = {"socket", "client", "listener", "pipe", "device", "file", "time", "process"} | ({"object"} if python.minor >= 10 else set())
    assert set(found.by_kind) == kinds
    assert not found.wrong, found.wrong[:5]
    assert found.named >= 0.98 * (found.named + len(found.unnamed)), (found.named, collections.Counter(found.unnamed))
    said = {(row["class"], row["wait_target"]) for row in report(recording)["waits"]}
    assert any(kind == "socket" and words.startswith("127.0.0.1:") for kind, words in said), said


BESIDE_ONE_THAT_SWITCHES = """
import os, threading, time
there, back = os.pipe(), os.pipe()
def switches():
    while True:
        os.write(there[1], b"x")
        os.read(back[0], 1)
def partner():
    while True:
        os.read(there[0], 1)
        os.write(back[1], b"x")
def waits():
    while True:
        for ms in (0.1, 0.1, 0.1, 40):
            time.sleep(ms / 1000)
for one in (switches, partner, waits):
    threading.Thread(target=one, name=one.__name__, daemon=True).start()
print("ready %d" % os.getpid(), flush=True)
time.sleep(3600)
"""


@since(3, 8)
@few_pythons
def test_a_long_wait_while_another_thread_switches_all_the_time(python, record, tmp_path):
    (tmp_path / "beside.py").write_text(BESIDE_ONE_THAT_SWITCHES)
    with Target(python, tmp_path / "beside.py") as target:
        recording = record(target.pid, 2, "--mode", "kernel")
    waits = {tid for tid, name in recording.query("SELECT tid, name FROM thread") if name.startswith("waits")}
    known = unknown = 0
    for tid, wall, stack in recording.query("SELECT t.tid, s.wall_ns, s.stack FROM sample s JOIN thread t ON s.thread = t.id"):
        names = {frame[1] for frame in recording.stack(stack)}
        if tid in waits or "waits" in names:
            known, unknown = known + wall * ("waits" in names), unknown + wall * ("waits" not in names)
    assert known > 1e9 and unknown < 0.1 * known, (known, unknown)


SHORT_WAITS = """
import os, threading, time
held = threading.Lock()
held.acquire()
def nap():
    time.sleep(0.0002)
def lock():
    held.acquire(timeout=0.00002)
print("ready %d" % os.getpid(), flush=True)
times = open("short.times", "w")
slept = locked = 0
while True:
    since = time.perf_counter_ns()
    for i in range(3):
        nap()
    between = time.perf_counter_ns()
    for i in range(7):
        lock()
    slept += between - since
    locked += time.perf_counter_ns() - between
    times.seek(0)
    times.write("%d %d \\n" % (slept, locked))
    times.flush()
"""


@since(3, 8)
@few_pythons
@pytest.mark.parametrize("budget, seconds, apart", [("0.2", 10, 0.2), ("off", 4, 0.08)])  # with few walks, chance weighs more
def test_short_waits_that_stand_for_others(python, budget, seconds, apart, record, tmp_path):
    """Each stack is in the system call that it waited in, and both have as much time as the program's own clock says."""
    log = tmp_path / "short.times"
    (tmp_path / "short.py").write_text(SHORT_WAITS.replace("short.times", str(log)))
    with Target(python, tmp_path / "short.py") as target:
        recording = record(target.pid, seconds, "--mode", "kernel", "--max-overhead", budget)
    slept, locked = map(int, log.read_text().split())
    blocked, ours = collections.Counter(), collections.Counter()
    for cpu, wall, call, stack in recording.query("SELECT cpu, wall_ms, system_call, stack FROM span"):
        names = {frame[1] for frame in recording.stack(stack)} & {"nap", "lock"}
        ours[tuple(names)] += wall  # its clock does not distinguish blocked from runnable
        if cpu == "blocked":
            blocked[(*names, call)] += wall
    both = [key for key in blocked if len(key) == 2 and key[1] is not None]  # None: for a page of memory, on a busy host
    assert sorted(name for name, _ in both) == ["lock", "nap"], blocked
    assert sum(blocked[key] for key in both) > 0.95 * sum(blocked.values()), blocked
    share = ours["nap", ] / (ours["nap", ] + ours["lock", ])
    assert abs(share - slept / (slept + locked)) < apart, (ours, blocked, slept, locked)
