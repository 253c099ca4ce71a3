"""A process and what it starts in one recording: workers, pools, scripts, processes that are named; their times are the kernel's."""
import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import textwrap

import pytest
from cli_support import PHLOX, PYTHON, is_recording, ordinary_pythons, phlox, wait_until

pytestmark = pytest.mark.live

POOL = """
import multiprocessing, os, resource, sys, time

def crunch(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: sum(range(300))
    return os.getpid(), resource.getrusage(resource.RUSAGE_SELF)

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(3) as pool:
        used = dict((pid, r.ru_utime + r.ru_stime) for pid, r in pool.map(crunch, [0.4] * 9, chunksize=1))
    print(*(f"{pid}={seconds}" for pid, seconds in used.items()))
"""

BRIEF = """
import os, sys, time
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        end = time.process_time() + float(sys.argv[2])
        while time.process_time() < end: sum(range(100))
        os._exit(0)
    os.wait()
"""

RESTS = """
import os, time
time.sleep(0.5)  # until it is seen itself
for _ in range(12):
    pid = os.fork()
    if pid == 0:
        while time.process_time() < 0.02: sum(range(100))
        time.sleep(0.3)
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    time.sleep(0.02)  # before it is fetched
    used = os.wait4(pid, 0)[2]
    print(f"{pid}={used.ru_utime + used.ru_stime}", flush=True)
"""

ENDS = """
import os, time
time.sleep(0.5)  # until it is seen itself
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        while time.process_time() < 0.05: sum(range(100))
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    time.sleep(0.02)  # before it is fetched
    used = os.wait4(pid, 0)[2]
    print(f"{pid}={used.ru_utime + used.ru_stime}", flush=True)
"""


def rows(path, sql):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


def cpu_by_pid(path):
    return dict(rows(path, "SELECT p.pid, sum(s.cpu_ns) / 1e9 FROM sample s JOIN thread t ON t.id = s.thread JOIN process p ON p.id = t.process GROUP BY p.pid"))


def write(name, text):
    with open(name, "w") as file:
        file.write(textwrap.dedent(text))
    return name


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_pool_is_whole_in_one_file_and_its_times_are_the_kernels(workdir, method):
    done = phlox("record", "-r", "500", "--max-overhead", "off", "-o", "a.phlox", "--", PYTHON, write("pool.py", POOL), method)
    assert done.returncode == 0, done.stderr
    used = {int(pid): float(seconds) for pid, seconds in (word.split("=") for word in done.stdout.split())}
    seen = cpu_by_pid("a.phlox")
    assert used.keys() <= seen.keys() and len(used) == 3
    # A worker says what it has used when it answers; it goes on a little, and one that is spawned had begun before its Python was up.
    for pid, seconds in used.items():
        assert seconds * 0.9 - 0.05 < seen[pid] < seconds * 1.05 + 0.1, (seen, used)
    parent, = rows("a.phlox", "SELECT id FROM process WHERE parent IS NULL")
    assert {of for of, in rows("a.phlox", "SELECT DISTINCT parent FROM process WHERE parent IS NOT NULL")} >= ({parent[0]} if method != "forkserver" else set())
    report = json.loads(phlox("report", "--json", "a.phlox").stdout)
    assert report["not_recorded"] == ""
    assert {row["pid"] for row in report["processes"]} == seen.keys()
    assert report["processes"] == sorted(report["processes"], key=lambda row: -row["cpu_ns"])
    assert "Processes, the busiest first" in phlox("report", "a.phlox").stdout
    parts = json.loads(phlox("report", "--json", "--by", "program", "a.phlox").stdout)["programs"]
    assert sum(row["processes"] for row in parts) == len(seen) and max(row["processes"] for row in parts) >= 3, parts
    assert sum(row["cpu_ns"] for row in parts) == sum(row["cpu_ns"] for row in report["processes"])
    assert "Programs, the busiest first" in phlox("report", "--by", "program", "a.phlox").stdout
    roots = {line.split(";")[0].replace("\\x3b", ";") for line in phlox("export", "-f", "collapsed", "--by", "program", "a.phlox").stdout.splitlines()}
    assert parts[0]["name"] in roots and not [root for root in roots if "(pid " in root], roots
    one = max(used, key=used.get)
    alone = json.loads(phlox("report", "--json", "--pid", one, "a.phlox").stdout)
    assert {row["pid"] for row in alone["threads"]} == {one}
    assert f"(pid {one})" in phlox("export", "-f", "collapsed", "--by", "function,process", "a.phlox").stdout


def test_of_a_running_process_children_that_are_there_and_that_come(start, workdir):
    script = write("server.py", """
        import os, sys, time
        def serve(end):
            while time.monotonic() < end: sum(range(100))
        def worker(seconds):
            pid = os.fork()
            if pid == 0:
                serve(time.monotonic() + seconds)
                os._exit(0)
            return pid
        print(worker(30), worker(30), flush=True)
        sys.stdin.readline()
        print(worker(30), flush=True)
        time.sleep(30)
        """)
    server = start([PYTHON, script], stdin=subprocess.PIPE, start_new_session=True)
    try:
        children = server.stdout.readline().split()
        recorder = start([PHLOX, "record", "-p", str(server.pid), "-o", "a.phlox"], stderr=subprocess.PIPE)
        wait_until(lambda: is_recording("a.phlox") and len(rows("a.phlox", "SELECT 1 FROM process")) == 3, "both workers")
        server.stdin.write("\n")
        server.stdin.flush()
        children += server.stdout.readline().split()
        wait_until(lambda: len(rows("a.phlox", "SELECT 1 FROM process")) == 4, "the new one")
        recorder.send_signal(signal.SIGINT)
        _, said = recorder.communicate(timeout=60)
    finally:
        os.killpg(server.pid, signal.SIGKILL)
    assert recorder.returncode == 0, said
    assert {pid for pid, in rows("a.phlox", "SELECT pid FROM process")} == {server.pid, *map(int, children)}
    assert "4 processes" in said and re.search(rf"recording processes? {children[0]}.*started by process {server.pid}", said), said
    assert "not recorded" not in said
    for pid in map(int, children[:2]):
        assert cpu_by_pid("a.phlox")[pid] > 0


def test_alone_if_asked(workdir):
    done = phlox("record", "--no-follow", "-o", "a.phlox", "--", PYTHON, write("pool.py", POOL), "fork")
    assert done.returncode == 0, done.stderr
    assert len(rows("a.phlox", "SELECT 1 FROM process")) == 1
    assert "3 child Pythons of process" in done.stderr and "without --no-follow" in done.stderr


def test_two_that_a_script_starts_at_once(workdir):
    write("app.py", "import sys, time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: sum(range(100))\nsys.exit(int(sys.argv[1]))\n")
    done = phlox("record", "-o", "a.phlox", "--", "bash", "-c", f"{PYTHON} app.py 3 & {PYTHON} app.py 0; wait $!; exit $?")
    assert done.returncode == 3, done.stderr
    assert sorted(command for command, in rows("a.phlox", "SELECT command_line FROM process")) == [f"{PYTHON} app.py 0", f"{PYTHON} app.py 3"]


def test_several_that_are_named(start, workdir):
    busy = [start([PYTHON, "-c", "while True: sum(range(100))"]) for _ in range(2)]
    wait_until(lambda: all(phlox("dump", "-p", one.pid).returncode == 0 for one in busy), "both")
    done = phlox("record", "-p", busy[0].pid, "--pid", busy[1].pid, "-p", busy[0].pid, "-d", "1", "-o", "a.phlox")
    assert done.returncode == 0, done.stderr
    assert cpu_by_pid("a.phlox").keys() == {one.pid for one in busy}
    assert "of 2 processes" in done.stderr
    done = phlox("record", "-p", busy[0].pid, "-p", 2**22 + 1, "-d", "1", "-o", "b.phlox")
    assert done.returncode != 0 and str(2**22 + 1) in done.stderr and not os.path.exists("b.phlox")


def test_children_that_live_briefly_are_seen_or_counted(workdir):
    """How many depends on the machine, but none is skipped silently. 60 ms: fifteen searches of the finder."""
    done = phlox("record", "-r", "1000", "--max-overhead", "off", "-o", "a.phlox", "--", PYTHON, write("brief.py", BRIEF), 30, 0.06)
    assert done.returncode == 0, done.stderr
    recorded = len(rows("a.phlox", "SELECT 1 FROM process WHERE parent IS NOT NULL"))
    missed = re.search(r"(\d+) process(?:es)? that (?:was|were) forked lived too briefly", done.stderr)
    assert recorded + (int(missed[1]) if missed else 0) >= 28, done.stderr
    assert recorded >= 15, done.stderr


def test_what_a_fork_used_before_it_was_seen_counts(workdir):
    done = phlox("record", "-r", "500", "--max-overhead", "off", "-o", "a.phlox", "--", PYTHON, write("rests.py", RESTS))
    assert done.returncode == 0, done.stderr
    used = {int(pid): float(seconds) for pid, seconds in (word.split("=") for word in done.stdout.split())}
    seen = cpu_by_pid("a.phlox")
    assert len(used) == 12 and used.keys() <= seen.keys()
    assert 0.96 < sum(seen[pid] for pid in used) / sum(used.values()) < 1.03, (
        [(pid, used[pid], seen[pid]) for pid in used], rows("a.phlox", "SELECT id, pid, start_ns, end_ns, how_ended, mode FROM process"))
    # Nothing happens before its process and its thread are there; start_us is cut off below the microsecond.
    [[early]] = rows("a.phlox", "SELECT min(s.start_us * 1000 + (SELECT value FROM meta WHERE key = 'sample_epoch_ns') - max(t.start_ns, p.start_ns)) "
                                "FROM sample s JOIN thread t ON t.id = s.thread JOIN process p ON p.id = t.process")
    assert early > -2000


# At 50 Hz a fifth of it comes after the last sample.
def test_what_a_child_used_until_its_end_counts(workdir):
    done = phlox("record", "-r", "50", "--max-overhead", "off", "-o", "a.phlox", "--", PYTHON, write("ends.py", ENDS))
    assert done.returncode == 0, done.stderr
    used = {int(pid): float(seconds) for pid, seconds in (word.split("=") for word in done.stdout.split())}
    seen = cpu_by_pid("a.phlox")
    known = used.keys() & seen.keys()
    assert len(known) > 15, done.stderr
    assert sum(seen[pid] for pid in known) == pytest.approx(sum(used[pid] for pid in known), rel=0.03)


STARTS = """
import os, subprocess, sys
work = "while __import__('time').thread_time() < 0.05: sum(range(100))"
for _ in range(10):
    child = subprocess.Popen([sys.executable, "-c", work])
    _, _, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    print("%d=%.6f" % (child.pid, usage.ru_utime + usage.ru_stime), end=" ")
"""


def test_what_a_child_used_until_its_python_was_up_counts(workdir):
    done = phlox("record", "-r", "200", "--max-overhead", "off", "-o", "a.phlox", "--", PYTHON, write("starts.py", STARTS))
    assert done.returncode == 0, done.stderr
    used = {int(pid): float(seconds) for pid, seconds in (word.split("=") for word in done.stdout.split())}
    seen = cpu_by_pid("a.phlox")
    known = used.keys() & seen.keys()
    # Without kernel sampling, phlox finds new processes by looking for them: on a busy machine some have ended by then.
    assert len(used) == 10 and len(known) >= (10 if os.geteuid() == 0 else 7), done.stderr
    assert sum(seen[pid] for pid in known) == pytest.approx(sum(used[pid] for pid in known), rel=0.05)
    assert "(before its Python was up)" in phlox("export", "-f", "collapsed", "a.phlox").stdout


def test_what_was_started_counts_from_its_start(workdir):
    app = write("app.py", """
        import os, time
        while time.process_time() < 0.2: sum(range(100))
        print(time.process_time(), flush=True)
        os._exit(0)
        """)
    done = phlox("record", "-r", "200", "--max-overhead", "off", "-o", "a.phlox", "--", PYTHON, app)
    assert done.returncode == 0, done.stderr
    # Its memory is given back after that line.
    assert sum(cpu_by_pid("a.phlox").values()) == pytest.approx(float(done.stdout.split()[0]) + 0.003, abs=0.008)
    assert "(before its Python was up)" in phlox("export", "-f", "collapsed", "a.phlox").stdout


def test_what_a_child_becomes_is_another_program_of_it(workdir):
    write("after.py", "import time\ndef after(end):\n    while time.monotonic() < end: sum(range(100))\nafter(time.monotonic() + 1)\n")
    app = write("app.py", f"""
        import os, sys, time
        def before(end):
            while time.monotonic() < end: sum(range(100))
        if os.fork() == 0:
            before(time.monotonic() + 1)
            os.execv({PYTHON!r}, [{PYTHON!r}, "after.py"])
        os.wait()
        """)
    done = phlox("record", "-o", "a.phlox", "--", PYTHON, app)
    assert done.returncode == 0, done.stderr
    child = rows("a.phlox", "SELECT command_line, how_ended FROM process WHERE pid <> (SELECT pid FROM process WHERE id = 1) ORDER BY id")
    assert child[0] == (f"{PYTHON} app.py", "exec") and child[1][0] == f"{PYTHON} after.py", child
    stacks = phlox("export", "-f", "collapsed", "a.phlox").stdout
    assert "before" in stacks and "after" in stacks


def test_children_that_are_no_pythons_are_not_reported(workdir):
    app = write("app.py", "import subprocess\nfor _ in range(20): subprocess.run(['true'])\nsubprocess.run(['sleep', '0.5'])\n")
    done = phlox("record", "-r", "200", "-o", "a.phlox", "--", PYTHON, app)
    assert done.returncode == 0, done.stderr
    assert "not recorded" not in done.stderr
    # Between fork and exec one may be caught as the Python that it still is.
    assert len(rows("a.phlox", "SELECT 1 FROM process")) <= 3


def test_with_native_frames(workdir):
    done = phlox("record", "--native", "-o", "a.phlox", "--", sys.executable if "3.1" in sys.version else PYTHON, write("pool.py", POOL), "fork")
    assert done.returncode == 0, done.stderr
    for pid, in rows("a.phlox", "SELECT pid FROM process"):
        stacks = phlox("export", "-f", "collapsed", "--pid", pid, "--show", "everything", "a.phlox").stdout
        assert "(libc" in stacks or "libpython" in stacks or "python3" in stacks, (pid, stacks[:500])


IDLE = "import time\ntime.sleep(600)\n"


def test_two_dozen_sleeping_processes_cost_little_and_are_in_every_sample(start, workdir):
    """Nothing runs in them, and the kernel says so: their samples count, and one that wakes is noticed."""
    app = write("app.py", """
        import subprocess, sys, time
        sleeping = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) for _ in range(24)]
        def wakes(end):
            while time.monotonic() < end: sum(range(100))
        print("up", flush=True)
        for _ in range(20):
            time.sleep(0.4)
            wakes(time.monotonic() + 0.1)
        """)
    server = start([PYTHON, app], start_new_session=True)
    try:
        server.stdout.readline()
        done = phlox("record", "--mode", "no-kernel", "-p", server.pid, "-r", "100", "--max-overhead", "off", "-d", "4", "-o", "a.phlox")
    finally:
        os.killpg(server.pid, signal.SIGKILL)
    assert done.returncode == 0, done.stderr
    processes = rows("a.phlox", """SELECT p.pid, (p.end_ns - p.start_ns) / 1e9, sum(s.wall_ns) / 1e9, sum(s.samples) FROM process p
        JOIN thread t ON t.process = p.id JOIN sample s ON s.thread = t.id GROUP BY p.id HAVING p.end_ns - p.start_ns > 2e9""")
    assert len(processes) == 25, done.stderr
    for pid, recorded, wall, samples in processes:
        assert recorded - 0.6 < wall < recorded + 0.1, processes  # the stack of a sleeping process is known up to the last sample
        if pid != server.pid:
            assert samples > 25 * recorded, processes
    # It computes a fifth of its time, in stretches of a tenth of a second: none is taken for the sleep before it.
    working = rows("a.phlox", """SELECT sum(s.wall_ns) / 1e9 FROM sample s JOIN thread t ON t.id = s.thread JOIN process p ON p.id = t.process
        JOIN state ON state.id = s.state WHERE p.pid = %d AND state.cpu IN (1, 2)""" % server.pid)[0][0]
    assert working < 0.6 * 4, working


def test_by_the_command_line_those_that_are_there_and_that_come(start, workdir):
    token = f"phlox-{os.getpid()}-worker"
    others = [path for path in ordinary_pythons(os.environ.get("PHLOX_PYTHONS", ""), "[0-4]") if path != PYTHON]
    write("app.py", "import time\nwhile True: sum(range(100)), time.sleep(0.001)\n")
    there = [start([python, "app.py", token, str(i)]) for i, python in enumerate([PYTHON, *others[-1:]])]
    unrelated = start([PYTHON, "app.py", "something-else"])
    recorder = start([PHLOX, "record", "--name", f"{token} [0-9]$", "-d", "20", "-o", "a.phlox"], stderr=subprocess.PIPE)
    wait_until(lambda: is_recording("a.phlox") and len(rows("a.phlox", "SELECT 1 FROM process")) == len(there), "those that are there")
    late = start([PYTHON, "app.py", token, "9"])
    wait_until(lambda: len(rows("a.phlox", "SELECT 1 FROM process")) == len(there) + 1, "the late one")
    for one in there:
        one.kill()
    wait_until(lambda: len(rows("a.phlox", "SELECT 1 FROM process WHERE end_ns > 0")) == len(there), "their ends")
    assert recorder.poll() is None  # another one may come
    wait_until(lambda: late.pid in cpu_by_pid("a.phlox"), "samples of the late one")
    recorder.send_signal(signal.SIGINT)
    _, said = recorder.communicate(timeout=60)
    assert recorder.returncode == 0, said
    assert {pid for pid, in rows("a.phlox", "SELECT pid FROM process")} == {one.pid for one in [*there, late]}, said
    assert unrelated.poll() is None
    assert "recording process" in said and "started by" not in said, said


def test_each_of_several_conditions_has_to_be_true(start, workdir):
    token = f"phlox-{os.getpid()}-one"
    one = start([PYTHON, write("app.py", IDLE), token])
    wait_until(lambda: phlox("dump", "-p", one.pid).returncode == 0, "it to be up")
    group = next(line.split(":", 2)[2] for line in open("/proc/self/cgroup").read().splitlines())
    for conditions, taken in [(["--user", os.getuid()], True), (["--cgroup", group], True), (["--all"], True),
                              (["--user", os.getuid() + 1], False), (["--cgroup", group.rstrip("/") + "/no-such-group"], False)]:
        done = phlox("record", "--name", token, *conditions, "-d", "1", "-o", "a.phlox")
        if taken:
            assert done.returncode == 0 and rows("a.phlox", "SELECT pid FROM process") == [(one.pid,)], done.stderr
        else:
            assert done.returncode != 0, done.stderr
            assert re.search(rf"no Python whose command line matches '{token}', \S+.* is running; here run \d+ \(", done.stderr), done.stderr
    assert "waiting for one" in done.stderr
    # What is named is there in any case.
    done = phlox("record", "--name", token + "-none", "-p", one.pid, "-d", "1", "-o", "a.phlox")
    assert done.returncode == 0 and rows("a.phlox", "SELECT pid FROM process") == [(one.pid,)], done.stderr


def test_all_but_itself(start, workdir):
    sleeping = [start([PYTHON, write("app.py", IDLE), str(i)]) for i in range(2)]
    wait_until(lambda: all(phlox("dump", "-p", one.pid).returncode == 0 for one in sleeping), "both")
    recorder = start([sys.executable, "-c", f"import subprocess; subprocess.run([{PHLOX!r}, 'record', '--all', '-d', '3', '-o', 'a.phlox'])"], stderr=subprocess.PIPE)
    _, said = recorder.communicate(timeout=60)
    seen = dict(rows("a.phlox", "SELECT pid, executable FROM process"))
    assert {one.pid for one in sleeping} <= seen.keys() and os.getpid() in seen, said
    assert not [path for path in seen.values() if os.path.basename(path) == "phlox"], seen


def test_the_children_of_those_that_match(start, workdir):
    token = f"phlox-{os.getpid()}-master"
    write("child.py", IDLE)
    master = start([PYTHON, write("app.py", "import subprocess, sys\nprint(subprocess.Popen([sys.executable, 'child.py']).pid, flush=True)\nsys.stdin.readline()\n"), token],
                   stdin=subprocess.PIPE, start_new_session=True)
    try:
        child = int(master.stdout.readline())
        wait_until(lambda: phlox("dump", "-p", child).returncode == 0, "the child")
        for more, expected in [([], {master.pid, child}), (["--no-follow"], {master.pid})]:
            done = phlox("record", "--name", token, *more, "-d", "1.5", "-o", "a.phlox")
            assert done.returncode == 0, done.stderr
            assert {pid for pid, in rows("a.phlox", "SELECT pid FROM process")} == expected, done.stderr
            assert rows("a.phlox", "SELECT count(*) FROM process WHERE parent = (SELECT id FROM process WHERE pid = %d)" % master.pid) == [(len(expected) - 1,)]
    finally:
        os.killpg(master.pid, signal.SIGKILL)


@pytest.mark.parametrize("wrong, word", [(["--name", "("], "regular expression"), (["--user", "no-such-user"], "no user"),
                                         (["--all", "--", "true"], "not both"), ([], "nothing to record")])
def test_a_choice_that_cannot_be_made(workdir, wrong, word):
    done = phlox("record", *wrong)
    assert done.returncode == phlox("record", "--no-such-option").returncode and word in done.stderr, done.stderr
    assert not os.listdir(".")


def stacks(recording, *options):
    done = phlox("export", recording, "-f", "collapsed", "--show", "everything", *options)
    assert done.returncode == 0, done.stderr
    return [line.rsplit(" ", 1)[0].split(";") for line in done.stdout.splitlines()]


def test_workers_of_a_pool_begin_at_their_fork_and_are_distinguished(workdir):
    (workdir / "pool.py").write_text(POOL)
    done = phlox("record", "-o", "a.phlox", "--", PYTHON, "pool.py", "fork")
    assert done.returncode == 0, done.stderr
    for stack in stacks("a.phlox"):
        if any(frame.startswith("crunch ") for frame in stack):
            assert stack[0] == "(forked here)" and not any(frame.startswith(("<module> (pool.py)", "BaseContext.Pool ", "Pool.")) for frame in stack)
    inherited = [stack for stack in stacks("a.phlox", "--inherited-frames") if any(frame.startswith("crunch ") for frame in stack)]
    assert inherited and all(stack.index("(forked here)") > 1 and stack[0].startswith("<module>") for stack in inherited)
    commands = [row["command_line"] for row in json.loads(phlox("report", "--json", "a.phlox").stdout)["processes"]]
    assert sum(" · ForkPoolWorker-" in command for command in commands) == 3, commands


STARTS_OTHERS = """
import subprocess, time
others = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2)]
end = time.monotonic() + 3  # their CPU time is read about once a second
while time.monotonic() < end: pass
for other in others:
    other.kill()
print(*(other.pid for other in others))
"""


def test_what_a_program_starts_that_is_no_python_has_its_cpu_time(workdir):
    (workdir / "starts.py").write_text(STARTS_OTHERS)
    done = phlox("record", "-o", "a.phlox", "--", PYTHON, "starts.py")
    assert done.returncode == 0, done.stderr
    pids = {int(word) for word in done.stdout.split()}
    rows = json.loads(phlox("report", "--json", "a.phlox").stdout)["not_looked_into"]
    # What they used between the last time that they were seen and their end has a row without a pid.
    seen, unseen = [row for row in rows if row["pid"]], [row for row in rows if not row["pid"]]
    assert {row["pid"] for row in seen} == pids, rows
    assert all(row["command_line"] == "sh -c while :; do :; done" and row["cpu_ns"] > 0 for row in seen), rows
    assert all(row["command_line"].endswith(", after the last reading of their CPU time)") for row in unseen) and len(unseen) <= 1, rows
    # Two recordings are one report.
    both = json.loads(phlox("report", "--json", "a.phlox", "a.phlox").stdout)
    assert len(both["recordings"]) == 2 and len(both["not_looked_into"]) == 2 * len(rows)
    assert both["samples"] == 2 * both["recordings"][0]["samples"]


MANY = """
import os, signal, sys
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        signal.pause()
print("up", flush=True)
sum(iter(int, 1))
"""


def test_thousands_of_children_do_not_delay_the_end_and_missing_ones_are_reported(workdir):
    count = 2000
    program = subprocess.Popen([PYTHON, "-c", MANY, str(count)], stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert program.stdout.readline() == "up\n"
        done = phlox("record", "-p", program.pid, "-d", "1", "-o", "a.phlox", timeout=120)
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
    assert done.returncode == 0, done.stderr
    report = json.loads(phlox("report", "--json", "a.phlox").stdout)
    assert report["elapsed_ns"] < 5e9
    with contextlib.closing(sqlite3.connect("a.phlox")) as db:  # The report lists the largest processes only.
        recorded = db.execute("SELECT count(*) FROM process").fetchone()[0]
    unrecorded = re.findall(r"warning: (\d+) (?:child Pythons of|processes that) process \d+", done.stderr)
    assert recorded - 1 + sum(map(int, unrecorded)) == count, done.stderr
