"""phlox dump names asyncio's tasks and their chains of awaits, compared with the program's own view, on every interpreter."""
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

from live_support import CACHE, INTERPRETERS, PHLOX, Python, Target, has, since

PROGRAM = pathlib.Path(__file__).with_name("programs") / "tasks.py"


NOT_UP = 116


def dump(*words):
    """Its error says "try again in a moment" if a program changes its frames during the search for the interpreter."""
    for _ in range(3):
        done = subprocess.run([PHLOX, "dump", *map(str, words)], capture_output=True, text=True, timeout=120)
        if done.returncode != NOT_UP:
            break
    assert done.returncode == 0, done.stderr
    return done


@since(3, 8)
def test_each_task_has_the_chain_that_the_program_sees(python, tmp_path):
    truth_file = tmp_path / "truth.json"
    with Target(python, PROGRAM, truth_file) as target:
        truth = json.loads(truth_file.read_text())
        text = dump("--async", "all", "-p", target.pid).stdout
        found = json.loads(dump("--json", "-p", target.pid).stdout)
        without = dump("--no-async", "-p", target.pid).stdout
    assert found["missing_tasks"] == []
    tasks = {task["name"]: task for task in found["tasks"]}
    assert sorted(task["name"] for task in found["tasks"]) == sorted(truth)
    for name, expected in truth.items():
        frames = [[f["function"], f["line"], f["file"]] for f in tasks[name]["frames"]]
        assert frames == expected["chain"], name
        assert tasks[name]["awaited_kind"] == expected["kind"], name
        assert tasks[name]["state"] == "waiting", name
        assert f"    {name}: waiting for " in text, name
    check_relations(found, tasks)
    assert "Tasks that await each other in a circle: circle-" in text
    assert "Event loop" not in without


def check_relations(found, tasks):
    """Which task awaits which, and which loop runs in which thread."""
    name_of = {task["id"]: task["name"] for task in found["tasks"]}
    awaits = {name: sorted(name_of[other["id"]] for other in task["awaits"]) for name, task in tasks.items()}
    assert awaits["of-task"] == awaits["shield"] == ["forgotten"]
    assert awaits["gather"] == awaits["wait"] == ["forgotten", "nested"]
    assert awaits["circle-a"] == ["circle-b"] and awaits["circle-b"] == ["circle-a"]
    if "group" in awaits:
        assert awaits["group"] == ["in-group-0", "in-group-1", "in-group-2"]
    assert {name_of[one["id"]] for one in tasks["forgotten"]["awaited_by"]} == {"of-task", "gather", "shield", "wait"}
    threads = {thread["python_id"]: thread["name"] for thread in found["threads"]}
    loops = {loop["id"]: loop for loop in found["event_loops"]}
    assert threads[loops[tasks["main"]["event_loop"]]["python_id"]] == "MainThread"
    assert threads[loops[tasks["second"]["event_loop"]]["python_id"]] == "second-loop"


CHURN = """
import asyncio, os, sys
async def leaf(n): await asyncio.sleep(0)
async def level_b(n): await leaf(n)
async def level_a(n): await level_b(n)
async def other_b(n): await leaf(n)
async def other_a(n): await other_b(n)
async def spin(make):
    while True:
        await asyncio.gather(*(asyncio.create_task(make(i)) for i in range(200)))
async def main():
    keep = [asyncio.create_task(spin(level_a), name="spin-a"), asyncio.create_task(spin(other_a), name="spin-b")]
    asyncio.get_running_loop().call_later(0.3, lambda: print("ready %d" % os.getpid(), flush=True))
    await asyncio.gather(*keep)
asyncio.run(main())
"""


@since(3, 8)
def test_no_chain_is_a_mixture_while_tasks_start_and_end(python, tmp_path):
    program = tmp_path / "churn.py"
    program.write_text(CHURN)
    allowed = {("level_a", "level_b", "leaf", "sleep"), ("other_a", "other_b", "leaf", "sleep"), ("spin",), ("main",)}
    whole = {chain[:length] for chain in allowed for length in range(1, len(chain) + 1)} | {("level_a", "level_b", "leaf", "sleep", "__sleep0"),
                                                                             ("other_a", "other_b", "leaf", "sleep", "__sleep0")}
    seen = set()
    with Target(python, program) as target:
        for _ in range(5):
            tasks = json.loads(dump("--json", "-p", target.pid).stdout)["tasks"]
            names = collections.Counter(task["name"] for task in tasks)  # asyncio numbers them: each has a name of its own
            seen |= set(names)
            assert set(names.values()) == {1}, "a task is there once"
            for task in tasks:
                assert tuple(frame["function"] for frame in task["frames"]) in whole, task
    assert {"spin-a", "spin-b"} <= seen  # on a busy host, one that changes each time it is read is left out of a dump


@since(3, 8)
def test_a_task_names_the_ends_of_its_socket_its_subprocess_and_what_is_left_of_its_sleep(python, tmp_path):
    truth_file = tmp_path / "truth.json"
    with Target(python, PROGRAM.with_name("task_ends.py"), truth_file) as target:
        truth = json.loads(truth_file.read_text())
        before = time.monotonic()
        found = json.loads(dump("--json", "--no-follow", "-p", target.pid).stdout)
        after = time.monotonic()
        os.kill(truth["subprocess"], signal.SIGKILL)
    tasks = {task["name"]: task for task in found["tasks"]}
    assert len(truth) == 10
    for name, expected in truth.items():
        task = tasks[name]
        if name.startswith("sleeps"):
            assert expected[0] - after <= task["seconds_left"] <= expected[1] - before, task
        elif name == "subprocess":
            assert task["subprocess"] == expected, task
        else:
            assert [task["socket"], task["peer"]] == expected, task


@pytest.mark.parametrize("words", [(), ("anyio",)], ids=["trio", "anyio"])
@pytest.mark.usefixtures("loops")
@since(3, 8)
def test_each_task_of_trio_has_the_chain_that_the_program_sees(python, words, tmp_path):
    if not all(has(python, module) for module in ("trio", *words)):
        pytest.skip("this interpreter has no trio, or no anyio")
    truth_file = tmp_path / "truth.json"
    with Target(python, PROGRAM.with_name("trio_tasks.py"), truth_file, *words) as target:
        truth = json.loads(truth_file.read_text())
        found = json.loads(dump("--json", "-p", target.pid).stdout)
        text = dump("--async", "all", "-p", target.pid).stdout
    assert found["missing_tasks"] == []
    assert [loop["type"] for loop in found["event_loops"]] == ["trio"]
    names = {task["id"]: task["name"] for task in found["tasks"]}
    tasks = {task["name"]: task for task in found["tasks"]}
    # One more: trio's own task, which wrote the file.
    assert len(tasks) == len(found["tasks"]) == len(truth) + 1 and len(truth) >= 12
    for name, expected in truth.items():
        frames = [[f["function"], f["line"], f["file"]] for f in tasks[name]["frames"]]
        assert frames == expected["chain"], name
        assert (tasks[name]["state"], tasks[name]["awaited_kind"]) == ("waiting", expected["kind"]), name
        assert sorted(names[one["id"]] for one in tasks[name]["awaits"]) == expected["children"], name
    assert "Event loop (trio), " in text
    assert "parent: waiting for the tasks of a nursery: child-" in text
    assert "waits: waiting for a lock (Lock), held by holds" in text


TRIO_CHURN = """
import os, trio
async def leaf(): await trio.lowlevel.checkpoint()
async def level_b(): await leaf()
async def level_a(): await level_b()
async def other_b(): await leaf()
async def other_a(): await other_b()
async def main():
    print("ready %d" % os.getpid(), flush=True)
    while True:
        async with trio.open_nursery() as nursery:
            for i in range(100):
                nursery.start_soon(level_a)
                nursery.start_soon(other_a)
trio.run(main)
"""


@pytest.mark.usefixtures("loops")
@since(3, 8)
def test_no_chain_of_trio_is_a_mixture_while_tasks_start_and_end(python, tmp_path):
    if not has(python, "trio"):
        pytest.skip("this interpreter has no trio")
    program = tmp_path / "churn.py"
    program.write_text(TRIO_CHURN)
    whole = [("level_a", "level_b", "leaf"), ("other_a", "other_b", "leaf")]
    with Target(python, program) as target:
        for _ in range(5):
            for task in json.loads(dump("--json", "-p", target.pid).stdout)["tasks"]:
                chain = tuple(frame["function"] for frame in task["frames"])
                if chain and chain[0] in ("level_a", "other_a"):
                    assert any(chain[:3] == one[:len(chain)] for one in whole), chain
                    assert task["name"].endswith(chain[0]), task


@since(3, 8)
def test_the_holder_of_a_lock_is_found_by_its_async_with(python, tmp_path):
    truth_file = tmp_path / "truth.json"
    with Target(python, PROGRAM.with_name("task_locks.py"), truth_file) as target:
        truth = json.loads(truth_file.read_text())
        found = json.loads(dump("--json", "-p", target.pid).stdout)
        text = dump("--async", "all", "-p", target.pid).stdout
    assert found["missing_tasks"] == []
    names = {task["id"]: task["name"] for task in found["tasks"]}
    holders = {lock["id"]: sorted(names[one["id"]] for one in lock["holders"]) for lock in found["locks"]}
    told = {task["name"]: holders[task["lock"]] for task in found["tasks"] if "lock" in task}
    assert told == truth
    assert "left: waiting for a lock (Lock), held by right" in text
    assert re.search("Tasks that await each other in a circle: (left, right, which awaits left|right, left, which awaits right)\n", text)


@pytest.mark.parametrize("words", [(), ("anyio",)], ids=["trio", "anyio"])
@pytest.mark.usefixtures("loops")
@since(3, 8)
def test_a_job_of_trio_has_the_frames_of_the_thread_that_runs_it(python, words):
    if not all(has(python, module) for module in ("trio", *words)):
        pytest.skip("this interpreter has no trio, or no anyio")
    with Target(python, PROGRAM.with_name("trio_jobs.py"), *words) as target:
        found = json.loads(dump("--json", "-p", target.pid).stdout)
        text = dump("--async", "all", "-p", target.pid).stdout
    tasks = {task["name"]: task for task in found["tasks"]}
    assert tasks["queued"]["awaited_kind"] == "semaphore" and "job" not in tasks["queued"], tasks["queued"]
    threads = {thread["python_id"]: thread for thread in found["threads"]}
    for name, function in (("first", "first_job"), ("second", "second_job")):
        job = tasks[name]["job"]
        assert tasks[name]["awaited_kind"] == "thread_job" and not job["queued"]
        inner = [frame["function"] for frame in job["frames"]]
        assert inner[:3] == [function, "leaf", "wait"], job
        assert function in [frame["function"] for frame in threads[job["python_id"]]["frames"]], job
        assert "which runs in Thread " + threads[job["python_id"]]["name"] in text


@since(3, 8)
def test_a_job_has_the_frames_of_the_thread_that_runs_it(python, tmp_path):
    with Target(python, PROGRAM.with_name("task_jobs.py")) as target:
        found = json.loads(dump("--json", "-p", target.pid).stdout)
        text = dump("--async", "all", "-p", target.pid).stdout
    jobs = {task["name"]: task["job"] for task in found["tasks"] if "job" in task}
    threads = {thread["python_id"]: thread["name"] for thread in found["threads"]}
    assert sorted(jobs) == ["first", "queued", "second"]
    for name, function in (("first", "first_job"), ("second", "second_job")):
        assert [frame["function"] for frame in jobs[name]["frames"]][:3] == [function, "leaf", "wait"], jobs[name]
        assert threads[jobs[name]["python_id"]].startswith("pool"), threads
        assert not jobs[name]["queued"]
    assert jobs["queued"] == {"queued": True, "python_id": 0, "frames": []}
    assert "which runs in Thread pool" in text
    assert "no thread has begun it yet" in text


def with_greenlet(python):
    """The environment in which this interpreter has greenlet; none: it does not have it."""
    for path in ("", str(CACHE / "greenlet-3.10")):
        environment = {**os.environ, "PYTHONPATH": path}
        if subprocess.run([python.path, "-c", "import greenlet"], capture_output=True, env=environment).returncode == 0:
            return path
    return None


VENV = Python("venv", sys.executable, *sys.version_info[:2], "-")
GREENLETS = [VENV, *[one for one in INTERPRETERS if (one.major, one.minor) == (3, 10)]]


@pytest.mark.parametrize("builder", GREENLETS, ids=lambda one: one.name)
def test_a_parked_greenlet_has_the_frames_that_the_program_sees(builder, tmp_path, monkeypatch):
    path = with_greenlet(builder)
    if path is None:
        pytest.skip("this interpreter has no greenlet")
    if path:
        monkeypatch.setenv("PYTHONPATH", path)
    truth_file = tmp_path / "truth.json"
    with Target(builder, PROGRAM.with_name("greenlets_parked.py"), truth_file) as target:
        truth = json.loads(truth_file.read_text())
        found = json.loads(dump("--json", "-p", target.pid).stdout)
        text = dump("-p", target.pid).stdout
    assert found["missing_tasks"] == []
    parked = [[[frame["function"], frame["line"], frame["file"]] for frame in task["frames"]]
              for task in found["tasks"] if task["state"] == "parked"]
    assert sorted(parked) == sorted(truth)
    assert sorted(task["state"] for task in found["tasks"]) == ["parked"] * 4 + ["running", "unstarted"]
    assert [loop["type"] for loop in found["event_loops"]] == ["greenlet"]
    assert "Greenlets (greenlet), 6: 1 running, 4 parked, 1 not started yet" in text


def site_packages(python):
    return json.loads(subprocess.run([python.path, "-c", "import json, sys; print(json.dumps(sys.path))"],
                                     capture_output=True, text=True, check=True).stdout)


FEW_IMPORTS = """
import os, sys, time, greenlet
def parked(): greenlet.getcurrent().parent.switch()
one = greenlet.greenlet(parked)
one.switch()
print("ready %d" % os.getpid(), flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("builder", GREENLETS, ids=lambda one: one.name)
def test_a_greenlet_is_found_where_little_is_imported(builder, monkeypatch):
    path = with_greenlet(builder)
    if path is None:
        pytest.skip("this interpreter has no greenlet")
    if path:
        monkeypatch.setenv("PYTHONPATH", path)
    with Target(builder, "-S", "-c", "import sys; sys.path.extend(%r)\n%s" % (site_packages(builder), FEW_IMPORTS)) as target:
        found = json.loads(dump("--json", "-p", target.pid).stdout)
    assert found["missing_tasks"] == []
    assert [[frame["function"] for frame in task["frames"]] for task in found["tasks"] if task["state"] == "parked"] == [["parked"]]
