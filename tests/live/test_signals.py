"""Who ended a process, from where, and where its threads were then: against a program's own log. programs/deaths.py has the long form too: COUNT."""
import json
import os
import pathlib
import subprocess

import pytest

from live_support import PHLOX, few_pythons, since
from test_kernel import possible

PROGRAM = pathlib.Path(__file__).parent / "programs" / "deaths.py"
COUNT = int(os.environ.get("PHLOX_DEATHS", "10"))

pytestmark = pytest.mark.skipif(not possible(), reason="phlox doctor: --mode kernel cannot be had here")


def report(path):
    return json.loads(subprocess.run([PHLOX, "report", "--json", path], capture_output=True, text=True, check=True).stdout)


def row_of(rows, pid, name):
    """Of a process whose last signal was this."""
    return next((row for row in reversed(rows) if row["pid"] == pid and row["name"] == name), None)


@since(3, 8)
@few_pythons
@pytest.mark.parametrize("kind", ["killed", "aborted", "stopped", "crashed", "raised"])
def test_who_ended_a_process_and_where_it_was(python, tmp_path, kind):
    done = subprocess.run([PHLOX, "record", "--mode", "kernel", "-o", tmp_path / "a.phlox", "--", python.path, PROGRAM, kind, str(COUNT), tmp_path / "log"],
                          capture_output=True, text=True, env={**os.environ, "PYTHONFAULTHANDLER": ""})
    assert done.returncode == 0, done.stderr
    said = report(tmp_path / "a.phlox")
    log = [line.split("\t") for line in (tmp_path / "log").read_text().splitlines()]
    assert len(log) == COUNT
    wrong = []
    for pid, name, sender, place, second in log:
        row = row_of(said["signals"], int(pid), name)
        if row is None:
            wrong.append((pid, "no row"))
            continue
        handled = kind == "stopped"
        found = (row["sent_by"], row["outcome"], row["sender_at"]["name"] or "-", row["threads"][0]["name"] if row["threads"] else "")
        right = ("own fault" if kind == "crashed" else "process", "handled" if handled else "ended", sender, place)
        others = [thread["name"].rsplit(".", 1)[-1] for thread in row["threads"][1:]]
        if found != right or (not handled and others != [second]):
            wrong.append((pid, found, right, others))
    assert len(wrong) <= 0.01 * COUNT, wrong
    sentences = [finding["text"] for finding in said["findings"] if finding["kind"] == "signal"]
    assert len(sentences) == 1 and f"{COUNT - 1} more like it" in sentences[0], sentences


@since(3, 8)
@few_pythons
def test_an_end_that_was_asked_for_is_no_finding(python, tmp_path):
    program = "import os, signal, time; time.sleep(0.5); pid = os.fork(); time.sleep(0.5); pid and (os.kill(pid, signal.SIGTERM), os.wait())"
    done = subprocess.run([PHLOX, "record", "--mode", "kernel", "-o", tmp_path / "a.phlox", "--", python.path, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = report(tmp_path / "a.phlox")
    (row,) = said["signals"]
    assert (row["name"], row["outcome"], row["sent_by"]) == ("SIGTERM", "ended", "process")
    assert not [finding for finding in said["findings"] if finding["kind"] == "signal"]


def test_a_flood_of_signals_that_a_program_handles_is_cut_short(tmp_path):
    program = "import os, signal, time\ntime.sleep(0.5)\nsignal.signal(signal.SIGTERM, lambda *_: None)\nfor i in range(20000): os.kill(os.getpid(), signal.SIGTERM)\nos.kill(os.getpid(), signal.SIGKILL)"
    subprocess.run([PHLOX, "record", "--mode", "kernel", "-o", tmp_path / "a.phlox", "--", "/usr/bin/python3", "-c", program], capture_output=True, text=True)
    rows = report(tmp_path / "a.phlox")["signals"]
    assert len(rows) < 1000
    last = row_of(rows, rows[0]["pid"], "SIGKILL")
    assert last is not None and last["outcome"] == "ended"
