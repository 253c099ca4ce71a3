"""Findings about tasks that never end, of a program that has such tasks and many that wait as they should; and none of a program that has none."""
import json
import pathlib
import subprocess

import pytest

from live_support import PHLOX, Recording, Target, few_pythons, has, once_a_version, since

PROGRAMS = pathlib.Path(__file__).with_name("programs")
KINDS = {"tasks_lost", "tasks_stuck", "tasks_grow"}


def record(target, path, seconds, *words):
    subprocess.run([PHLOX, "record", "-q", "-d", str(seconds), "-o", path, *words, "-p", str(target.pid)], check=True, timeout=120)
    done = subprocess.run([PHLOX, "report", "--json", path], capture_output=True, text=True, check=True, timeout=120)
    return json.loads(done.stdout)


def findings(report):
    return {(one["kind"], one["names"]["function"]): one for one in report["findings"] if one["kind"] in KINDS}


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("words", [(), ("uvloop",)], ids=["asyncio", "uvloop"])
@few_pythons
@since(3, 8)
def test_tasks_that_never_end_are_findings_and_no_others(python, words, tmp_path):
    if words and not has(python, *words):
        pytest.skip("this interpreter has no uvloop")
    with Target(python, PROGRAMS / "endless_tasks.py", *words) as target:
        report = record(target, tmp_path / "a.phlox", 9)
    found = findings(report)
    expected = {("tasks_stuck", "locked"), ("tasks_stuck", "full"), ("tasks_grow", "leaked")}
    # Without a GIL, an object has no single count of its references.
    if "t" not in python.flags:
        expected |= {("tasks_lost", "lost"), ("tasks_lost", "lost_in_a_variable")}
        assert found["tasks_lost", "lost"]["numbers"]["tasks"] == 12 and "lost (" in found["tasks_lost", "lost"]["text"]
    assert set(found) == expected, [one["text"] for one in found.values()]
    assert found["tasks_stuck", "locked"]["numbers"]["tasks"] == 3 and "a lock (Lock)" in found["tasks_stuck", "locked"]["text"]
    grows = found["tasks_grow", "leaked"]
    assert grows["numbers"]["gone"] == 0 and "none was seen to end, and nothing waits for their end" in grows["text"], grows
    assert grows["numbers"]["first"] < 100 < grows["numbers"]["last"], grows
    (rate,) = [one["numbers"]["per_second"] for one in (grows,)]
    assert 5 < rate <= 51, "one every 20 ms"
    groups = {group["name"]: group for loop in report["awaits"] for group in loop["groups"]}
    assert groups["heartbeat"]["at_end"] in range(10, 21)


@few_pythons
@since(3, 8)
def test_tasks_that_come_and_go_are_no_finding(python, tmp_path):
    with Target(python, PROGRAMS / "await_time.py") as target:
        found = findings(record(target, tmp_path / "a.phlox", 7))
    assert {kind for kind, _ in found} <= {"tasks_lost"}, found  # forgotten() waits for a future that nobody else has


@once_a_version
@since(3, 8)
def test_without_async_nothing_of_tasks_is_recorded(python, tmp_path):
    with Target(python, PROGRAMS / "await_time.py") as target:
        report = record(target, tmp_path / "a.phlox", 1, "--no-async")
    assert report["awaits"] == []
    recording = Recording(tmp_path / "a.phlox")
    for table in ("task_census", "event_loop", "task_stack", "task_time", "task_group", "task_waiter", "job_waiter", "ready_tasks"):
        assert recording.query(f"SELECT count(*) FROM {table}") == [(0,)]
