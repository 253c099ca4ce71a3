"""A dump shows every thread, however many there are."""
import json
import pathlib
import re
import subprocess

import pytest

from live_support import PHLOX, Target, once_a_version

SLEEPERS = pathlib.Path(__file__).with_name("programs") / "sleepers.py"


def run(*words):
    done = subprocess.run([PHLOX, *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done


def check(found, count, native=False):
    """All of them with their frames, including the main thread."""
    assert found["missing"] == []
    threads = {thread["name"]: thread for thread in found["threads"]}
    assert set(threads) == {"MainThread", *(f"sleeper-{i}" for i in range(count))}
    assert len(found["threads"]) == count + 1
    for i in range(count):
        frames = threads[f"sleeper-{i}"]["frames"]
        assert [f["function"] for f in frames if f["kind"] == "python"].count("sleep") == i % 7 + 1, frames
        if native:
            assert any(f["kind"] == "native" for f in frames), frames
    main = threads["MainThread"]
    assert main["tid"] == main["pid"]
    assert [f["function"] for f in main["frames"] if f["kind"] == "python"][-2:] == ["main", "<module>"]


@pytest.mark.parametrize("count", [40, 300])
@once_a_version
def test_every_thread_is_there(python, count):
    with Target(python, SLEEPERS, count) as target:
        check(json.loads(run("dump", "--json", "-p", target.pid).stdout), count)
        text = run("dump", "-p", target.pid)
        assert len(re.findall(r"^Thread ", text.stdout, re.M)) == count + 1
        assert text.stderr == ""


@pytest.mark.parametrize("count", [40, 300])
@once_a_version
def test_every_thread_is_there_with_native_frames(python, count):
    with Target(python, SLEEPERS, count) as target:
        check(json.loads(run("dump", "--native", "--json", "-p", target.pid).stdout), count, native=True)


@once_a_version
def test_every_thread_is_there_with_variables(python):
    with Target(python, SLEEPERS, 40) as target:
        found = json.loads(run("dump", "--locals", "--json", "-p", target.pid).stdout)
        check(found, 40)
        leaves = [thread["frames"][0] for thread in found["threads"] if thread["name"] != "MainThread"]
        assert all({"name": "depth", "value": "0", "argument": True} in leaf["variables"] for leaf in leaves)


@once_a_version
def test_every_thread_is_there_for_pyflame(python):
    with Target(python, SLEEPERS, 40) as target:
        assert len(re.findall(r":sleep:", run("pyflame", "-d", "-p", target.pid).stdout)) >= 40
