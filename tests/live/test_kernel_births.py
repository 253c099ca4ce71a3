"""Children of a recorded process are recorded from their birth on (--mode kernel), compared with what the program writes about them."""
import contextlib
import json
import pathlib
import sqlite3
import statistics
import subprocess
import time

import pytest

from live_support import PHLOX, Recording, Target, few_pythons, once_a_version, since
from test_kernel import MODE, possible

PROGRAMS = pathlib.Path(__file__).parent / "programs"
pytestmark = pytest.mark.skipif(not possible(), reason="phlox doctor: --mode kernel cannot be had here")


@since(3, 8)
@few_pythons
@pytest.mark.parametrize("kind", ["loop", "pool"])
def test_no_child_is_missed_and_each_has_its_cpu_time(python, record, tmp_path, kind):
    with Target(python, PROGRAMS / "births.py", tmp_path / "log", kind) as target:
        # It takes a while, longer on a busy machine, until the children of a pool come and go.
        give_up = time.monotonic() + 20
        while (tmp_path / "log").read_text().count("\n") < 4 and time.monotonic() < give_up:
            time.sleep(0.05)
        recording = record(target.pid, 2, *MODE)
    begin, end = (int(recording.query("SELECT value FROM meta WHERE key = ?", key)[0][0]) for key in ("start_monotonic_ns", "end_monotonic_ns"))
    log = [tuple(map(int, line.split())) for line in (tmp_path / "log").read_text().splitlines() if line.count(" ") == 3]
    log = [row for row in log if row[1] > begin + 100_000_000 and row[2] < end - 20_000_000]
    assert len(log) > 10
    found = {pid: (start, end, cpu or 0) for pid, start, end, cpu in recording.query(
        "SELECT p.pid, p.start_ns, p.end_ns, sum(s.cpu_ns) FROM process p LEFT JOIN thread t ON t.process = p.id LEFT JOIN sample s ON s.thread = t.id GROUP BY p.id")}
    missing = [row for row in log if row[0] not in found]
    assert not missing
    off, used, seen = [], 0, 0
    for pid, forked, fetched, cpu in log:
        start, end, told = found[pid]
        assert forked - 1_000_000 < start < fetched and start < end < fetched + 1_000_000, (forked, start, end, fetched)
        off.append(abs(told - cpu) / cpu)
        used += cpu
        seen += told
    # The time that a virtual machine's host took in a child's last tick becomes known after most of it was reported as CPU time.
    assert statistics.median(off) < 0.03, sorted(off)
    assert -0.005 * used < seen - used < 0.03 * used, (seen, used, sorted(off)[-10:])
    # What they did is known, too. A fork and an interpreter's end take time as well: a third with a pool of 3.13t.
    names = {i: [frame[1] for frame in recording.stack(i)] for i in recording.parents}
    done = {i for i, stack in names.items() if "work" in stack or stack[-1] in ("noted_fork", "Popen._launch", "_launch", "loop")}
    of_children = recording.query("SELECT s.cpu_ns, s.stack FROM sample s JOIN thread t ON t.id = s.thread JOIN process p ON p.id = t.process "
                                  "WHERE p.pid IN (SELECT value FROM json_each(?))", json.dumps([row[0] for row in log]))
    assert sum(cpu for cpu, stack in of_children if stack in done) > 0.75 * seen


BECOMES = """
import os, subprocess, sys, time
WORK = "import time\\ndef work():\\n    end = time.process_time() + 0.15\\n    while time.process_time() < end: pass\\nwork()"
def before():
    end = time.process_time() + 0.1
    while time.process_time() < end: pass
print('ready %d' % os.getpid(), flush=True)
sys.stdin.readline()
for kind in ("fork", "later", "spawn"):
    if kind == "spawn":
        subprocess.run([sys.executable, "-c", WORK])
        continue
    pid = os.fork()
    if pid == 0:
        if kind == "later": before()
        os.execv(sys.executable, [sys.executable, "-c", WORK])
    os.waitpid(pid, 0)
"""


def is_recorded(path):
    try:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            return bool(db.execute("SELECT * FROM process").fetchall())
    except sqlite3.Error:
        return False


@since(3, 8)
@once_a_version
def test_a_child_that_becomes_another_program_is_recorded_as_that(python, tmp_path):
    (tmp_path / "becomes.py").write_text(BECOMES)
    with subprocess.Popen([python.path, tmp_path / "becomes.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as target:
        pid = int(target.stdout.readline().split()[1])
        with subprocess.Popen([PHLOX, "record", *MODE, "-p", str(pid), "-o", tmp_path / "out.phlox"], stderr=subprocess.PIPE, text=True) as recorder:
            while not is_recorded(tmp_path / "out.phlox"):
                assert recorder.poll() is None
                time.sleep(0.05)
            target.stdin.write("go\n")
            target.stdin.close()
            said = recorder.stderr.read()
    assert recorder.returncode == 0 and "warning" not in said, said
    recording = Recording(tmp_path / "out.phlox")
    cpu = {}
    for process, stack, used in recording.query("SELECT t.process, s.stack, s.cpu_ns FROM sample s JOIN thread t ON t.id = s.thread"):
        names = {frame[1] for frame in recording.stack(stack)}
        name = "before" if "before" in names else "work" if "work" in names else "other"
        cpu[process, name] = cpu.get((process, name), 0) + used
    rows = recording.query("SELECT id, pid, how_ended FROM process ORDER BY id")
    assert len({pid for _, pid, _ in rows}) == [how for _, _, how in rows].count("ended") == 4, rows
    # On a busy machine, the first one's time before execve may have been long enough for a row.
    (left,) = [cpu[i, "before"] for i, _, how in rows if how == "exec" and (i, "before") in cpu]
    assert 0.08e9 < left < 0.15e9
    for i, _, how in rows[1:]:
        assert how == "exec" or 0.1e9 < cpu[i, "work"] < 0.17e9, cpu


SPAWNS = r"""
import os, subprocess, sys
for work in (0, 0, 0, 0.01, 0.02):
    for _ in range(8):
        child = subprocess.Popen([sys.executable, "-S", "-c", "import time\nwhile time.process_time() < %f: pass" % work])
        _, _, usage = os.wait4(child.pid, 0)
        child.returncode = 0
        print(child.pid, int((usage.ru_utime + usage.ru_stime) * 1e9))
        subprocess.run(["true"])
"""


@since(3, 8)
@once_a_version
def test_a_python_that_ends_before_it_can_be_found_is_there_with_its_cpu_time(python, tmp_path):
    (tmp_path / "spawns.py").write_text(SPAWNS)
    done = subprocess.run([PHLOX, "record", *MODE, "-o", tmp_path / "out.phlox", "--", python.path, tmp_path / "spawns.py"], capture_output=True, text=True)
    assert done.returncode == 0 and "briefly" not in done.stderr and "another mode" not in done.stderr, done.stderr
    used = {int(pid): int(ns) for pid, ns in (line.split() for line in done.stdout.splitlines() if line.count(" ") == 1 and line[0].isdigit())}
    recording = Recording(tmp_path / "out.phlox")
    rows = recording.query("SELECT p.pid, p.command_line, p.end_ns - p.start_ns, (SELECT pid FROM process q WHERE q.id = p.parent), sum(s.cpu_ns) "
                           "FROM process p JOIN thread t ON t.process = p.id JOIN sample s ON s.thread = t.id GROUP BY p.id")
    root = [row for row in rows if row[3] is None]
    children = [row for row in rows if row[3] is not None]
    # Each child is there once, and what is no Python (true) is not. If fork and execve are more than 10 ms apart, the time between is a row of its own.
    began = [row for row in children if "while time" in row[1]]
    assert len(root) == 1 and len(used) == 40 and sorted(used) == sorted(row[0] for row in began) and {row[0] for row in children} == set(used)
    for pid, command, wall, parent, cpu in children:
        assert parent == root[0][0]
        assert cpu <= wall + 1000
    assert sum(row[4] for row in children) == pytest.approx(sum(used.values()), rel=0.02)
