"""phlox record records what tasks await over time: compared with the program's own measurement, on every interpreter, with asyncio and uvloop."""
import json
import os
import pathlib
import signal
import subprocess

import pytest

from live_support import PHLOX, Recording, Target, few_pythons, has, once_a_version, since

PROGRAMS = pathlib.Path(__file__).with_name("programs")
SECONDS = 5


def record(target, path, *words):
    """-> (what the program measured, the awaits of the report's only loop)"""
    subprocess.run([PHLOX, "record", "-q", "-d", str(SECONDS), "-o", path, *words, "-p", str(target.pid)], check=True, timeout=120)
    target.process.send_signal(signal.SIGTERM)
    truth = json.loads(target.process.stdout.readline())
    done = subprocess.run([PHLOX, "report", "--json", "--top", "100", path], capture_output=True, text=True, check=True, timeout=120)
    (loop,) = json.loads(done.stdout)["awaits"]
    return truth, loop


def at_a_time(loop, time_ns):
    return time_ns / loop["sampled"]["span_ns"]


@once_a_version
@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("words", [(), ("uvloop",)], ids=["asyncio", "uvloop"])
@since(3, 8)
def test_each_group_has_the_time_that_its_tasks_waited_and_its_line(python, words, tmp_path):
    if words and not has(python, *words):
        pytest.skip("this interpreter has no uvloop")
    with Target(python, PROGRAMS / "await_time.py", *words) as target:
        truth, loop = record(target, tmp_path / "a.phlox")
    assert SECONDS * 0.9 < loop["sampled"]["span_ns"] * 1e-9 < SECONDS * 1.2, loop["sampled"]
    assert loop["sampled"]["times"] >= 5 and loop["sampled"]["problem"] == "", loop["sampled"]
    assert loop["loop"] == ("uvloop.Loop" if words else "_UnixSelectorEventLoop")
    found = {(group["name"], group["line"], group["kind"]): group for group in loop["groups"]}
    assert len(truth["waits"]) == 9
    # For the program, a task that was woken still waits until it runs, which takes long if every CPU is busy.
    sampled = loop["sampled"]
    turns = (loop["ready_ns"] + loop["running_ns"]) / sampled["span_ns"]
    missing = sum(sampled[kind] for kind in ("unproved", "ended", "beyond")) / sampled["times"]
    # A census does not read all tasks at the same moment: meanwhile one goes on and another takes its place.
    between = 3 / sampled["times"]
    for name, line, kind, seconds in truth["waits"]:
        group = found[name, line, kind]
        expected = seconds / truth["seconds"]
        error = 0.1 if name == "two_places" else 0.02 if os.geteuid() == 0 else 0.05
        least, most = expected * (1 - error) - turns - missing - between, expected * (1 + error) + between
        assert least <= at_a_time(loop, group["time_ns"]) <= most, (name, line, kind, expected, loop["sampled"])
        assert group["file"].endswith("await_time.py")
    chain = [one["name"] for one in found_deep(loop)["chain"]]
    assert chain[0] == "deep" and chain.count("deep") in (4, 21) and chain[-1] == "sleep", chain
    longest = max(group["longest_ns"] for group in loop["groups"] if group["name"] == "forgotten")
    assert longest == pytest.approx(loop["sampled"]["span_ns"], rel=0.2)


def found_deep(loop):
    return max((group for group in loop["groups"] if group["name"] == "deep"), key=lambda group: group["time_ns"])


@once_a_version
@since(3, 8)
def test_tasks_that_come_and_go_are_counted_and_never_mixed(python, tmp_path):
    with Target(python, PROGRAMS / "brief_tasks.py") as target:
        truth, loop = record(target, tmp_path / "a.phlox")
    missing = sum(loop["sampled"][name] for name in ("unproved", "ended", "beyond"))
    share = missing / (loop["sampled"]["tasks"] + missing)
    assert share < 0.3, loop["sampled"]  # a busy machine lets more of them end while they are read
    for family, lived in truth["lived"].items():
        time_ns = sum(group["time_ns"] for group in loop["groups"] if group["name"] == family)
        assert at_a_time(loop, time_ns) == pytest.approx(lived / truth["seconds"], rel=0.1 + share), family
    recording = Recording(tmp_path / "a.phlox")
    parents = dict((row[0], row[1:]) for row in recording.query("SELECT id, parent, frame FROM task_stack"))
    chains = set()
    for (stack,) in recording.query("SELECT stack FROM task_time WHERE stack IS NOT NULL"):
        names = []
        while stack:
            stack, frame = parents[stack]
            names.append(recording.frames[frame][1])
        chains.add(tuple(names[::-1]))
    whole = [("red", "red_middle", "red_leaf", "sleep"), ("blue", "blue_middle", "blue_leaf", "sleep"), ("main", "sleep")]
    allowed = {chain[:length] for chain in whole for length in range(1, len(chain) + 1)}
    assert chains <= allowed, chains - allowed
    assert set(whole) <= chains


@few_pythons
@since(3, 8)
def test_a_program_without_tasks_has_no_rows(python, tmp_path):
    program = tmp_path / "busy.py"
    program.write_text("import os, time\nprint('ready %d' % os.getpid(), flush=True)\nwhile True: time.sleep(0.01)\n")
    with Target(python, program) as target:
        subprocess.run([PHLOX, "record", "-q", "-d", "1", "-o", tmp_path / "a.phlox", "-p", str(target.pid)], check=True, timeout=120)
    recording = Recording(tmp_path / "a.phlox")
    for table in ("task_census", "event_loop", "task_stack", "task_time", "task_group", "task_waiter", "job_waiter", "ready_tasks"):
        assert recording.query(f"SELECT count(*) FROM {table}") == [(0,)]
