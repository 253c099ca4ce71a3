"""Threads that start and end all the time: none is recorded twice at the same time, under its own name or its creator's."""
import pathlib
import subprocess

import pytest

from live_support import PHLOX, Recording, Target, few_pythons, since

COME_AND_GO = pathlib.Path(__file__).with_name("programs") / "come_and_go.py"


@pytest.mark.parametrize("options", [(), ("--native",)], ids=["python", "native"])
@since(3, 8)
@few_pythons
def test_no_thread_is_two(python, tmp_path, options):
    with Target(python, COME_AND_GO) as target:
        done = subprocess.run([PHLOX, "record", "-q", "-p", str(target.pid), "-d", "2", "-r", "1000", "--max-overhead", "off", *options,
                               "-o", tmp_path / "a.phlox"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    recording = Recording(tmp_path / "a.phlox")
    rows = recording.query("SELECT tid, interpreter, start_ns, end_ns, name FROM thread ORDER BY tid, interpreter, start_ns")
    assert len(rows) > 20
    # The end of a thread, or that it runs Python now, is seen at the next turn of its kind.
    soon = 20_000_000
    twice = [(one, other) for one, other in zip(rows, rows[1:]) if one[:2] == other[:2] and other[2] < one[3] - soon]
    assert twice == []
