"""A target may produce any amount of data; it must not decide how much memory the recorder uses, or when it ends."""
import os
import pathlib
import signal
import subprocess
import time

import pytest

from live_support import PHLOX, Recording, Target, few_pythons, since

GREEDY = pathlib.Path(__file__).with_name("programs") / "greedy.py"
MOST_MEMORY = 400 << 20
# With other work on the machine; a recorder that the target could keep busy would not end at all.
MOST_SECONDS = 30


def ended(recorder, start):
    """How it ended, how long after `start`, and the most memory that it used."""
    done = 0
    while not done and time.monotonic() - start < 3 * MOST_SECONDS:
        done, status, used = os.wait4(recorder.pid, os.WNOHANG)
        time.sleep(0.02)
    if not done:
        recorder.kill()
        recorder.wait()
        pytest.fail("it does not end")
    recorder.returncode = os.waitstatus_to_exitcode(status)
    return time.monotonic() - start, used.ru_maxrss * 1024


KINDS = ["names", "files", "lines", "many", "deep", "threads"]


# The kernel sends the first 512 bytes of a name. Without the right to use it, this is the mode no-kernel again.
@pytest.mark.parametrize("mode, shortest", [("no-kernel", 1000), ("auto", 400)])
@pytest.mark.parametrize("what", KINDS)
@since(3, 11)
@few_pythons
def test_it_ends_in_time_with_little_memory(python, tmp_path, what, mode, shortest):
    with Target(python, GREEDY, what) as target, open(tmp_path / "said", "w+") as said:
        start = time.monotonic()
        recorder = subprocess.Popen([PHLOX, "record", "--mode", mode, "-p", str(target.pid), "-d", "1.5", "-o", tmp_path / "a.phlox"], stderr=said)
        seconds, memory = ended(recorder, start)
        said.seek(0)
        words = said.read()
    assert recorder.returncode == 0, words
    assert seconds < MOST_SECONDS
    assert memory < MOST_MEMORY, f"{memory >> 20} MiB"
    recording = Recording(tmp_path / "a.phlox")
    assert recording.counter("samples") > 0
    # If something was left out, it is counted and reported.
    assert ("left out" in words) == (recording.counter("left_out") > 0)
    assert (tmp_path / "a.phlox").stat().st_size < MOST_MEMORY
    if what == "names":
        longest, = recording.query("SELECT max(length(function)) FROM frame")[0]
        assert shortest < longest < 200000, "cut, and not lost"


@since(3, 11)
@few_pythons
def test_interrupted_it_ends(python, tmp_path):
    with Target(python, GREEDY, "deep") as target:
        recorder = subprocess.Popen([PHLOX, "record", "-p", str(target.pid), "-r", "max", "--max-overhead", "off", "-o", tmp_path / "a.phlox"],
                                    stderr=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        time.sleep(3)
        recorder.send_signal(signal.SIGINT)
        seconds, memory = ended(recorder, time.monotonic())
    assert recorder.returncode == 0
    assert seconds < MOST_SECONDS
    assert memory < MOST_MEMORY, f"{memory >> 20} MiB"


@pytest.mark.parametrize("what", ["names", "lines", "deep"])
@since(3, 11)
@few_pythons
def test_a_dump_is_short(python, tmp_path, what):
    with Target(python, GREEDY, what) as target:
        start = time.monotonic()
        dump = subprocess.Popen([PHLOX, "dump", "--locals", "-p", str(target.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seconds, memory = ended(dump, start)
    assert dump.returncode == 0
    assert seconds < MOST_SECONDS
    assert memory < MOST_MEMORY, f"{memory >> 20} MiB"
