"""The small form of `make trust`: a few attempts of each trial. And each trial can fail."""
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import trust_page as page  # noqa: E402
import trust as runner  # noqa: E402
import trust_trials as trials  # noqa: E402

BUILD = pathlib.Path(os.environ.get("PHLOX_BUILD_DIR", trials.ROOT / "build" / "dev"))
PHLOX = os.environ.get("PHLOX_BIN", str(BUILD / "phlox"))
PYTHON = "/usr/bin/python3"
ATTEMPTS = {"mutate_a_file": 60, "stop_the_recorder": 1}
NEEDS_STRACE = {"kill_at_a_call", "refuse_a_call"}

live = pytest.mark.live


@pytest.fixture(scope="module")
def made():
    with tempfile.TemporaryDirectory() as folder:
        yield runner.recordings(PHLOX, PYTHON, folder)


@live
@pytest.mark.skipif(BUILD.name in ("asan", "tsan"), reason="a sanitizer makes calls of its own, and has other statuses")
@pytest.mark.parametrize("name", runner.SHARES)
def test_a_few_attempts_hold(made, name):
    if name in NEEDS_STRACE and shutil.which("strace") is None:
        pytest.skip("needs strace")
    for seed in range(ATTEMPTS.get(name, 4)):
        failure, _ = runner.attempt(name, seed, PHLOX, PYTHON, made)
        assert failure is None, f"{name}, seed {seed}: {failure}"


def fake(tmp_path, script):
    path = tmp_path / "phlox"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("script,words", [("exit 99", "ended with 99"), ("kill -ABRT $$", "ended with -6"), ("sleep 60", "does not end")])
def test_what_ends_badly_is_seen(tmp_path, monkeypatch, script, words):
    monkeypatch.setattr(trials, "LONGEST", 0.2)
    with pytest.raises(trials.Broken, match=words):
        trials.run(fake(tmp_path, script), "dump", seconds=0.2)


def test_what_takes_too_much_memory_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(trials, "MOST_MEMORY", 1 << 10)
    with pytest.raises(trials.Broken, match="used"):
        trials.run(fake(tmp_path, "exit 0"), "dump")


@live
def test_a_stopped_thread_is_noticed(monkeypatch):
    monkeypatch.setattr(trials, "LONGEST_HOLD", 0.1)
    with trials.Program(PYTHON) as program:
        assert program.let_go() < 0.1
        program.process.send_signal(signal.SIGSTOP)
        while any(state != "T" for state, _ in trials.states_of(program.pid)):
            time.sleep(0.001)
        with pytest.raises(trials.Broken, match="stands"):
            program.let_go()


@live
def test_a_recording_that_is_lost_is_seen(tmp_path):
    with trials.Program(PYTHON) as program, pytest.raises(trials.Broken, match="lost"):
        trials.afterwards(fake(tmp_path, "exit 118"), program, tmp_path / "a.phlox", True)


def test_what_is_changed_differs():
    content = bytes(range(256)) * 40
    changed = [trials.mutate(content, random.Random(seed)) for seed in range(50)]
    assert sum(one != content for one in changed) > 45


def test_the_page_is_of_its_results():
    assert page.PAGE.read_text() == page.text(json.loads(runner.RESULTS.read_text()))
