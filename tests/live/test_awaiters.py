"""Stacks of running tasks have the coroutines that await them: compared with a program in which each task is awaited by one
chain of coroutines, or by several that share a part of theirs, on every interpreter."""
import collections
import pathlib
import re
import subprocess

import pytest

from live_support import PHLOX, Target, has, once_a_version, since

PROGRAM = pathlib.Path(__file__).with_name("programs") / "awaiters.py"
# The program's functions between the loop and the task; None: an (awaits) marker.
EXPECTED = {
    "gathered_task": ("main", None, "again", "gathered", None),
    "awaited_task": ("main", None, "again", "awaited", None),
    "timed_task": ("main", None, "again", "timed", None),
    "shielded_task": ("main", None, "again", "shielded", None),
    "waited_task": ("main", None, "again", "waited", None),
    "grouped_task": ("main", None, "again", "grouped", None),
    "inner_task": ("main", None, "again", "nested", None, "middle_task", None),
    "shared_task": ("main", None, "again", "sharing", None),
    "alone_task": (),
    "unshared_task": (),
    "trio_leaf": (None, "of_nursery", None),  # trio's own init() awaits the first task
}
# Since 3.12 wait_for() itself awaits what it is given.
WITHOUT_A_TASK = {"timed_task": ("main", None, "again", "timed")}


def stacks(python, path, *words):
    """-> {task: {what is between the loop and the task: nanoseconds}}"""
    with Target(python, PROGRAM, *words) as target:
        subprocess.run([PHLOX, "record", "-q", "-d", "8", "-o", path, "--max-overhead", "10", "-p", str(target.pid)], check=True, timeout=120)
    return exported(path)


def exported(path, *options):
    text = subprocess.run([PHLOX, "export", "-q", "-f", "collapsed", *options, path, "-o", "-"], check=True, capture_output=True, text=True).stdout
    found = collections.defaultdict(collections.Counter)
    for line in text.splitlines():
        stack, weight = line.rsplit(" ", 1)
        between = []
        for frame in stack.split(";"):
            if frame == "(awaits)":
                between.append(None)
            elif found_name := re.fullmatch(r"(\w+) \(.*/awaiters\.py\)", frame):
                if found_name[1] == "compute" and between and between[-1] in ("leaf", "trio_leaf"):
                    task = [name for name in between if name in EXPECTED and name != "middle_task"]
                    at = between.index(task[-1])
                    found[task[-1]][tuple(between[:at])] += int(weight)
                between.append(found_name[1])
    return found


def check(found, python, loop="asyncio"):
    expected = {task: between for task, between in EXPECTED.items() if (task == "trio_leaf") == (loop == "trio")}
    if loop != "trio" and python.minor >= 12:
        expected.update(WITHOUT_A_TASK)
    if python.minor < 11:
        expected.pop("grouped_task", None)
    assert {task: set(between) for task, between in found.items()} == {task: {between} for task, between in expected.items()}


@once_a_version
@pytest.mark.usefixtures("loops")
@since(3, 8)
def test_a_task_that_runs_has_its_awaiters(python, tmp_path):
    path = tmp_path / "a.phlox"
    found = stacks(python, path)
    check(found, python)
    without = exported(path, "--no-awaiters")
    assert None not in {frame for between in without.values() for stack in between for frame in stack}, without
    # The time is the same.
    for task, between in found.items():
        assert sum(between.values()) == sum(without[task].values()), task


@once_a_version
@pytest.mark.usefixtures("loops")
@since(3, 8)
@pytest.mark.parametrize("loop", ["uvloop", "trio"])
def test_tasks_of_other_loops_have_them(python, loop, tmp_path):
    if not has(python, loop):
        pytest.skip(f"this interpreter has no {loop}")
    check(stacks(python, tmp_path / "a.phlox", loop), python, loop)
