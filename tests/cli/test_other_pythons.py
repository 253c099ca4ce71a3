"""Pythons that run at the same time as the recorded one: found and named; and a program that is no Python leads to the one it starts."""
import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import textwrap

import pytest
from cli_support import BUSY, PHLOX, PYTHON, count, is_recording, phlox, wait_until

pytestmark = pytest.mark.live

NOT_PYTHON, GONE = 112, 115
NOBODY = 65534
AS_ROOT = os.geteuid() == 0

# Two workers, as a pool has them, and what says their ids.
PARENT = """
import os, sys, time
children = []
for _ in range(2):
    child = os.fork()
    if child == 0:
        while True: sum(range(1000))
    children.append(child)
print(*children, flush=True)
time.sleep(60)
"""


@pytest.fixture
def family(start, tmp_path):
    """A parent that waits for two that compute: the ids of all three."""
    (tmp_path / "pool.py").write_text(PARENT)
    parent = start([PYTHON, tmp_path / "pool.py"], start_new_session=True)
    children = [int(word) for word in parent.stdout.readline().split()]
    yield [parent.pid, *children]
    for child in children:
        os.kill(child, signal.SIGKILL)


def listed():
    """What phlox list says: the rows by id."""
    done = phlox("list")
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.splitlines()
    assert head.split() == ["PID", "USER", "PYTHON", "CPU", "TIME", "COMMAND"]
    return {int(row.split()[0]): row for row in rows}


def test_list_has_every_python_whatever_it_is_called(family, start):
    home = subprocess.run([PYTHON, "-c", "import sys; print(sys.base_prefix)"], capture_output=True, text=True).stdout.strip()
    disguised = start(["bash", "-c", f"PYTHONHOME={home} exec -a 'gunicorn: worker' {PYTHON} -c 'import time; time.sleep(60)'"])  # some find it by their name
    sleeper = start(["sleep", "60"])
    wait_until(lambda: disguised.pid in listed(), "a Python that is up")
    rows = listed()
    assert set(family) <= set(rows)
    assert sleeper.pid not in rows and os.getpid() in rows
    version = subprocess.run([PYTHON, "-c", "import platform; print(platform.python_version())"], capture_output=True, text=True).stdout.strip()
    assert version in rows[disguised.pid] and "gunicorn: worker" in rows[disguised.pid]


def test_list_puts_children_beneath_their_parent(family):
    rows = listed()
    order = list(rows)
    parent, *children = family
    assert order[order.index(parent):][:3] == [parent, *children]
    where = {pid: rows[pid].index(PYTHON) for pid in family}
    assert where[parent] + 2 == where[children[0]] == where[children[1]]


@pytest.mark.skipif(not AS_ROOT, reason="needs root to become two users")
def test_list_as_an_ordinary_user(start, tmp_path):
    shutil.copy(PHLOX, "/tmp/phlox-test-list")
    os.chmod("/tmp/phlox-test-list", 0o755)
    theirs = start(["/usr/bin/python3", "-c", BUSY], user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")
    roots = start(["/usr/bin/python3", "-c", BUSY], cwd="/")
    try:
        for process in (theirs, roots):
            assert process.stdout.readline() == "ready\n"
        done = subprocess.run(["/tmp/phlox-test-list", "list"], capture_output=True, text=True, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/",
                              timeout=60)
    finally:
        os.unlink("/tmp/phlox-test-list")
    assert done.returncode == 0, done.stderr
    ids = [int(row.split()[0]) for row in done.stdout.splitlines()[1:]]
    assert theirs.pid in ids and roots.pid not in ids
    assert "may not be read" in done.stderr and "sudo phlox list" in done.stderr


def test_a_parent_says_which_children_are_not_recorded_and_what_that_means(family, workdir):
    parent, *children = family
    wait_until(lambda: set(children) <= set(listed()), "children")
    done = phlox("record", "--no-follow", "-p", parent, "-d", "1", "-o", "a.phlox")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "not recorded" in line]
    assert f"2 child Pythons of process {parent}, not recorded: {children[0]}, {children[1]} ({PYTHON} " in line
    assert "is not in this recording" in line and "without --no-follow they are recorded too" in line
    for words in (["report"], ["report", "--markdown"]):
        assert "2 child Pythons" in phlox(*words, "a.phlox").stdout
    assert "2 child Pythons" in json.loads(phlox("report", "--json", "a.phlox").stdout)["not_recorded"]
    assert phlox("export", "a.phlox", "-o", "a.svg").returncode == 0
    assert "2 child Pythons" in (workdir / "a.svg").read_text().split("<script")[0]
    alone = phlox("dump", "--no-follow", "-p", parent)
    assert alone.stdout.count("Process ") == 1 and f"2 child Pythons of process {parent} not shown: {children[0]}, {children[1]}" in alone.stderr


def test_a_dump_of_a_parent_has_its_children(family):
    parent, *children = family
    wait_until(lambda: set(children) <= set(listed()), "children")
    done = phlox("dump", "-p", parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert [int(pid) for pid in re.findall(r"^Process (\d+): ", done.stdout, re.M)] == [parent, *sorted(children)]
    said = json.loads(phlox("dump", "--json", "-p", parent).stdout)
    assert [one["pid"] for one in said["processes"]] == [parent, *sorted(children)]
    assert {one["pid"] for one in said["threads"]} == {parent, *children}
    assert all(one["frames"][-1]["qualified_name"] == "<module>" for one in said["threads"])


def test_one_of_several_alike_says_so(family, workdir):
    _, one, other = family
    wait_until(lambda: {one, other} <= set(listed()), "children")
    done = phlox("record", "-p", one, "-d", "0.3", "-o", "a.phlox")
    assert done.returncode == 0, done.stderr
    assert f"process {one} is one of 2 similar children" in done.stderr and f"not recorded: {other} (" in done.stderr
    assert f"all of them: phlox record -p {family[0]}" in done.stderr


def test_children_that_end_before_the_recording_are_reported_too(workdir):
    app = ("import subprocess, sys, time\n"
           "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(2)'])\np.wait()\n")
    done = phlox("record", "--no-follow", "-o", "a.phlox", "--", PYTHON, "-c", app)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("1 child Python of process") == 1
    assert PYTHON[:40] in done.stderr  # a long command line is cut


def test_nothing_is_reported_if_there_is_no_other_process(busy, workdir):
    done = phlox("record", "-p", busy.pid, "-d", "0.8", "-o", "a.phlox")
    assert "not recorded" not in done.stderr
    assert json.loads(phlox("report", "--json", "a.phlox").stdout)["not_recorded"] == ""
    # Nor of children that are no Pythons.
    app = "import subprocess; subprocess.run(['sleep', '1.2'])"
    assert "not recorded" not in phlox("record", "-o", "b.phlox", "--", PYTHON, "-c", app).stderr


def write_script(workdir, name, text):
    (workdir / "app.py").write_text("import sys, time\n"
                                    "def hot(end):\n    while time.monotonic() < end: sum(range(100))\n"
                                    "hot(time.monotonic() + float(sys.argv[1]))\nsys.exit(int(sys.argv[2]))\n")
    path = workdir / name
    path.write_text(textwrap.dedent(text).lstrip().replace("PYTHON", PYTHON))
    path.chmod(0o755)
    return "./" + name


def processes(path):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return [command for (command,) in db.execute("select command_line from process")]


LAUNCHERS = {
    "bash": ("run.sh", "#!/bin/bash\nPYTHON app.py 0.8 7\nexit $?\n", []),
    "sh that ends with exec": ("run.sh", "#!/bin/sh\nsleep 0.2\nexec PYTHON app.py 0.8 7\n", []),
    "a script that calls a script": ("run.sh", "#!/bin/bash\nbash -c 'PYTHON app.py 0.8 7; exit $?'\n", []),
    "an init, as dumb-init is": ("init.sh", "#!/bin/bash\ntrap 'kill $child' TERM\nPYTHON app.py 0.8 7 &\nchild=$!\nwait $child\n", []),
    "env": ("", "", ["env", "A=b", PYTHON, "app.py", "0.8", "7"]),
    "nice": ("", "", ["nice", "-n", "1", PYTHON, "app.py", "0.8", "7"]),
    "timeout": ("", "", ["timeout", "30", PYTHON, "app.py", "0.8", "7"]),
    "setsid": ("", "", ["setsid", "-w", PYTHON, "app.py", "0.8", "7"]),
}


@pytest.mark.parametrize("kind", LAUNCHERS)
def test_what_starts_a_python_is_led_to_it(workdir, kind):
    name, text, words = LAUNCHERS[kind]
    script = write_script(workdir, name or "unused.sh", text)
    done = phlox("record", "-o", "a.phlox", "--", *(words or [script]))
    assert done.returncode == 7, done.stderr
    assert processes("a.phlox") == [f"{PYTHON} app.py 0.8 7"]
    assert "hot" in phlox("export", "a.phlox", "-f", "collapsed").stdout


def test_the_process_that_is_recorded_instead_is_named(workdir):
    script = write_script(workdir, "run.sh", "#!/bin/bash\nPYTHON app.py 0.8 7\nexit 0\n")
    done = phlox("record", "-o", "a.phlox", "--", script, "word")
    assert done.returncode == 0, done.stderr
    assert re.search(rf"recording process \d+ \({re.escape(PYTHON)} app\.py 0\.8 7\), started by process \d+ \(\./run\.sh word\)", done.stderr)
    assert re.search(r"process \d+ ended: exit 0; the recording is complete", done.stderr)


def test_make(workdir):
    if shutil.which("make") is None:
        pytest.skip("no make")
    write_script(workdir, "Makefile", "all:\n\tPYTHON app.py 0.6 0\n\tPYTHON app.py 0.5 0\n")
    done = phlox("record", "-o", "a.phlox", "--", "make", "-s")
    assert done.returncode == 0, done.stderr
    assert processes("a.phlox") == [f"{PYTHON} app.py 0.6 0", f"{PYTHON} app.py 0.5 0"]


def test_pythons_one_after_the_other_are_one_recording_and_its_rate_is_that_of_their_time(workdir):
    script = write_script(workdir, "run.sh", "#!/bin/bash\nPYTHON app.py 0.5 1\nsleep 1.5\nPYTHON app.py 0.6 2\nexit 3\n")
    done = phlox("record", "-o", "a.phlox", "--", script)
    assert done.returncode == 3, done.stderr
    assert len(processes("a.phlox")) == 2
    numbers = json.loads(phlox("report", "--json", "a.phlox").stdout)["quality"]["numbers"]
    assert 0.8e9 < numbers["elapsed_ns"] < 2.2e9


def test_two_at_once_one_is_recorded_and_the_other_named(workdir):
    script = write_script(workdir, "run.sh", "#!/bin/bash\nPYTHON app.py 1.5 0 &\nPYTHON app.py 1.6 0\nwait\n")
    done = phlox("record", "--no-follow", "-o", "a.phlox", "--", script)
    assert done.returncode == 0, done.stderr
    assert "1 child Python of process" in done.stderr


def test_a_job_without_any_python_says_that_it_waits_and_keeps_its_recording_for_none(workdir):
    done = phlox("record", "-o", "a.phlox", "--", "bash", "-c", "sleep 3.6; true")
    assert done.returncode == GONE, done.stderr
    assert "no Python yet in process" in done.stderr and "waiting for one" in done.stderr
    assert "ended before a Python was running in it or in a process that it started" in done.stderr
    assert os.listdir() == []


def test_signals_reach_the_script_and_ctrl_c_ends_the_recording(start, workdir):
    script = write_script(workdir, "run.sh", "#!/bin/bash\ntrap : INT\ntrap 'exit 9' USR1\nPYTHON app.py 30 0 &\nwait\nwait\n")
    recorder = start([PHLOX, "record", "-o", "a.phlox", "--", script], stderr=subprocess.PIPE)
    wait_until(lambda: is_recording("a.phlox"), "samples")
    with contextlib.closing(sqlite3.connect("a.phlox")) as db:
        ((python,),) = db.execute("select pid from process").fetchall()
    try:
        recorder.send_signal(signal.SIGINT)
        recorder.send_signal(signal.SIGUSR1)
        assert recorder.wait(timeout=30) == 9  # its pipes are held by what the script left behind
        assert count("a.phlox") > 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(python, signal.SIGKILL)


def test_attaching_to_a_script_names_the_python_that_it_started(start, workdir):
    script = write_script(workdir, "run.sh", "#!/bin/bash\nPYTHON app.py 300 0\ntrue\n")
    shell = start([script], start_new_session=True)
    found = []
    wait_until(lambda: found.extend(pid for pid, row in listed().items() if "app.py 300 0" in row) or found, "its Python")
    python = found[0]
    try:
        for command, *options in (["record", "--no-follow"], ["dump"]):
            done = phlox(command, *options, "-p", shell.pid)
            assert done.returncode == NOT_PYTHON
            assert f"hint: it started a Python, process {python} ({PYTHON} app.py 300 0): phlox {command} -p {python}" in done.stderr
        done = phlox("record", "-p", shell.pid, "-d", "0.5", "-o", "a.phlox")
        assert done.returncode == 0, done.stderr
        assert processes("a.phlox") == [f"{PYTHON} app.py 300 0"]
    finally:
        os.kill(python, signal.SIGKILL)


def test_hints_name_our_own_list(start):
    sleeper = start(["sleep", "60"])
    wait_until(lambda: "sleep" in os.readlink(f"/proc/{sleeper.pid}/exe"), "exec")
    for pid in (sleeper.pid, 2**22 + 1):
        assert "phlox list" in phlox("record", "-p", pid).stderr
