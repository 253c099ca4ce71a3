"""The stalls that `phlox report` finds in a recording of the kernel's capture, compared with the program's own log."""
import collections
import json
import pathlib
import re
import subprocess

import pytest

from live_support import PHLOX, Recording, Target, few_pythons, has, since

PROGRAM = pathlib.Path(__file__).with_name("programs") / "stalls.py"
ROUNDING = 0.002  # samples begin at a microsecond, and the program asks for the time shortly before and after
Stall = collections.namedtuple("Stall", "function line asked begin end before after")


def possible():
    return re.search(r"^yes +BPF", subprocess.run([PHLOX, "doctor"], capture_output=True, text=True).stdout, re.M) is not None


pytestmark = pytest.mark.skipif(not possible(), reason="phlox doctor: --mode kernel cannot be had here")


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
@since(3, 8)
@few_pythons
def test_each_stall_of_the_programs_log_is_found(python, kind, tmp_path):
    if kind == "uvloop" and not has(python, "uvloop"):
        pytest.skip("this interpreter has no uvloop")
    log, path = tmp_path / "log", tmp_path / "stalls.phlox"
    with Target(python, PROGRAM, log, kind) as target:
        with subprocess.Popen([PHLOX, "record", "--mode", "kernel", "--stall", "110ms", "-p", str(target.pid), "-o", str(path)],
                              stderr=subprocess.PIPE, text=True) as recorder:
            assert target.process.stdout.readline() == "done\n"
            recorder.terminate()
            said = recorder.communicate(timeout=60)[1]
    report = json.loads(subprocess.run([PHLOX, "report", "--json", "--stall", "110ms", path], capture_output=True, text=True, check=True).stdout)
    start = int(Recording(path).query("SELECT value FROM meta WHERE key = 'start_monotonic_ns'")[0][0])
    (loop,) = report["event_loops"]
    assert " of 110 ms or more" in said, "record has a limit of its own, which its summary names"
    check(loop["stalls"], [Stall(*one) for one in json.loads(log.read_text())], start)


def check(stalls, truth, start):
    rows = stalls["longest"]
    for row in rows:
        row["begin"] = (start + row["start_ns"]) * 1e-9
        row["end"] = row["begin"] + row["wall_ns"] * 1e-9
    assert stalls["exact"] and len(truth) == 12
    for stall in truth:
        over = [row for row in rows if row["begin"] < stall.end and row["end"] > stall.begin]
        assert len(over) == 1, (stall, over)
        row, error = over[0], over[0]["error_ns"] * 1e-9 + ROUNDING
        assert stall.before - error <= row["begin"] <= stall.begin + error, (stall, row)
        assert stall.end - error <= row["end"] <= stall.after + error, (stall, row)
        # On a busy host the thread may wait for a CPU for longer than it is blocked. The place of the wait is then not tested.
        if row["kind"] == "blocked" or stall.function == "burns":
            assert (row["name"], row["line"]) == (stall.function, stall.line), (stall, row)
        if stall.function == "naps":
            assert row["least_ns"] * 1e-9 >= stall.asked - ROUNDING, (stall, row)
    for row in rows:
        proved = row["least_ns"] > 0 and not row["cut"]
        assert not proved or any(row["begin"] < stall.end and row["end"] > stall.begin for stall in truth), row
