"""Processes that were forked without the interpreter's knowledge: the thread state of the forking thread has the parent's kernel
id. Servers that embed Python fork like this."""
import json
import os
import pathlib
import re
import shlex
import socket
import subprocess
import threading
import time

import pytest

from live_support import PHLOX, few_pythons, once_a_version
from programs import Program, brought

FORKS = pathlib.Path(__file__).with_name("programs") / "forks.py"
MAIN, THREAD = "computes_in_main", "computes_in_thread"
NOTHING_SEEN = 120
# The functions of each thread of the child, the main thread first.
HOW = {"main": [MAIN], "threads": [MAIN, THREAD, THREAD], "leftover": [MAIN], "reused": [MAIN, THREAD, THREAD], "thread": [MAIN],
       "recycled": None}


def dumped(pid):
    done = subprocess.run([PHLOX, "dump", "--json", "-p", str(pid)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["missing"] == []
    return {thread["tid"]: thread for thread in found["threads"]}


def which(names):
    both = [name for name in (MAIN, THREAD) if name in names]
    assert len(both) == 1, names
    return both[0]


def tasks(pid):
    return {int(task) for task in os.listdir(f"/proc/{pid}/task")}


@pytest.mark.parametrize("how", HOW)
@few_pythons
def test_every_thread_is_seen_as_itself(python, record, how):
    # A shell in between, which reaps a parent that ends.
    command = f"{shlex.quote(python.path)} -u {shlex.quote(str(FORKS))} {how}; sleep 600"
    if how == "recycled" and os.geteuid() != 0:
        pytest.skip("only root says which id is given next")
    with Program("sh", "-c", command) as child:
        there = tasks(child.pid)
        expected = {tid: MAIN if tid == child.pid else THREAD for tid in there}
        if HOW[how]:
            assert sorted(expected.values()) == sorted(HOW[how])
        found = dumped(child.pid)
        assert {tid: which([frame["function"] for frame in thread["frames"]]) for tid, thread in found.items()} == expected
        recording = record(child.pid, 0.5, "-r", "500", "--max-overhead", "off")
    tids = dict(recording.query("SELECT id, tid FROM thread"))
    assert set(tids.values()) == there
    seen = {}
    for thread, stack, samples in recording.query("SELECT thread, stack, samples FROM sample WHERE stack IS NOT NULL"):
        names = [frame[1] for frame in recording.stack(stack)]
        if names[0].startswith("("):
            continue  # rejected
        seen.setdefault(tids[thread], set()).add(which(names))
    assert {tid: {name} for tid, name in expected.items()} == seen


# The process no longer has anything that says which thread it is.
@once_a_version
def test_a_recording_without_a_sample_is_an_error_with_its_reason(python, tmp_path):
    if os.uname().machine != "x86_64":
        pytest.skip("the number of the system call is another one")
    with Program(python.path, "-u", FORKS, "raw") as child:
        done = subprocess.run([PHLOX, "record", "--mode", "no-kernel", "-p", str(child.pid), "-d", "0.5", "-o", tmp_path / "a.phlox"],
                              capture_output=True, text=True, timeout=60)
    assert done.returncode == NOTHING_SEEN, done.stderr
    assert re.search(r"no sample was taken of process \d+.*1 thread state of Python", done.stderr)


# A worker writes to uWSGI's log.
UWSGI = """
import os, threading
def spin():
    return sum(i * i for i in range(500))
def application(environ, start_response):
    with open(os.environ["READY"], "w") as ready:
        ready.write("ready %d %d\\n" % (os.getpid(), threading.get_native_id()))
    while True:
        spin()
"""


def ask(port, count):
    """Requests that are never answered. -> their connections"""
    connections = []
    end = time.monotonic() + 60
    while len(connections) < count and time.monotonic() < end:
        one = socket.socket()
        try:
            one.connect(("127.0.0.1", port))
        except ConnectionRefusedError:
            time.sleep(0.05)
            continue
        one.sendall(b"GET / HTTP/1.0\r\n\r\n")
        connections.append(one)
    return connections


@pytest.mark.parametrize("options", [[], ["--enable-threads"], ["--enable-threads", "--threads", "2"], ["--threads", "2", "--lazy-apps"],
                                     ["--enable-threads", "--lazy-apps"]], ids=lambda options: " ".join(options) or "plain")
def test_uwsgi_workers(record, tmp_path, options):
    (tmp_path / "app.py").write_text(UWSGI)
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    os.mkfifo(tmp_path / "ready")
    # Opened for both, so that it does not end between two writers.
    ready = os.fdopen(os.open(tmp_path / "ready", os.O_RDWR))
    requests = 4 if "--threads" in options else 2
    asked = []
    asking = threading.Thread(target=lambda: asked.extend(ask(port, requests)))
    asking.start()
    with Program(brought("uwsgi-core"), "--plugin", "python3", "--http-socket", f"127.0.0.1:{port}", "--master", "--processes", "2", "--need-app",
                 "--disable-logging", "--no-orphans", "--wsgi-file", tmp_path / "app.py", *options, answer=False,
                 env={"READY": str(tmp_path / "ready")}) as server, ready:
        said = [re.match(r"ready (\d+) (\d+)", ready.readline()) for _ in range(requests)]
        server.pid = worker = int(said[0].group(1))
        expected = {int(one.group(2)) for one in said if int(one.group(1)) == worker}
        found = dumped(worker)
        busy = {tid for tid, thread in found.items() if "application" in [frame["function"] for frame in thread["frames"]]}
        assert busy == expected
        recording = record(worker, 0.7, "-r", "500", "--max-overhead", "off")
    asking.join()
    for one in asked:
        one.close()
    tids = dict(recording.query("SELECT id, tid FROM thread"))
    in_application = {tids[thread] for thread, stack in recording.query("SELECT thread, stack FROM sample WHERE stack IS NOT NULL")
                      if "application" in [frame[1] for frame in recording.stack(stack)]}
    assert in_application == expected
