"""Recordings of days: the oldest goes, what is there is copied meanwhile, and a killed recorder is gone on with."""
import contextlib
import glob
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import time

import pytest
from cli_support import LIMIT, PHLOX, PYTHON, count, has_open, is_recording, phlox, wait_until

pytestmark = pytest.mark.live


def sql(path, query):
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return db.execute(query).fetchone()[0]


def record(start, busy, *arguments):
    before = count("a.phlox") if is_recording("a.phlox") else 0
    recorder = start([PHLOX, "record", *arguments, "-o", "a.phlox", "-p", busy.pid], stderr=subprocess.PIPE)
    # Who asks for samples uses the file, which a recorder does not take over.
    wait_until(lambda: has_open(recorder, "a.phlox"), "the recorder")
    wait_until(lambda: is_recording("a.phlox") and count("a.phlox") > before + 2, "samples")
    return recorder


def end(recorder):
    recorder.send_signal(signal.SIGINT)
    said = recorder.communicate(timeout=LIMIT)[1]
    assert recorder.returncode == 0, said
    return said


def readers(path):
    """Every one takes it."""
    for arguments in (["report", path], ["export", path], ["export", "-f", "chrome", path], ["export", "-f", "firefox", path, "-o", "x.json.gz"], ["view", path, "-o", "x.html"], ["top", "-n", "1", path], ["diff", path, path]):
        done = phlox(*arguments)
        assert done.returncode == 0, (arguments, done.stderr)
    return phlox("report", path).stdout


def test_only_what_is_young_stays_and_the_report_says_so(start, busy, workdir):
    recorder = record(start, busy, "--keep", "5s")
    time.sleep(9)
    end(recorder)
    seconds = sql("a.phlox", "SELECT (max(start_us + wall_ns / 1000) - min(start_us)) / 1e6 FROM sample")
    assert 4 < seconds < 8
    assert re.search(r"the first \d+\.\d s were dropped", readers("a.phlox"))
    told = json.loads(phlox("report", "--json", "a.phlox").stdout)
    assert told["lacking"]["let_go_ns"] > 1e9
    assert "were dropped" in phlox("export", "-f", "svg", "a.phlox").stdout


def test_sigusr1_and_snapshot_write_what_is_there_and_it_goes_on(start, busy, workdir):
    recorder = record(start, busy)
    recorder.send_signal(signal.SIGUSR1)
    wait_until(lambda: glob.glob("a-*.phlox"), "a snapshot")
    [first] = glob.glob("a-*.phlox")
    assert "hot" in readers(first)
    done = phlox("snapshot", "-p", recorder.pid, "-o", "b.phlox")
    assert done.returncode == 0, done.stderr
    assert "killed" not in readers("b.phlox") and count("b.phlox") > 0
    assert phlox("snapshot", "a.phlox", "-o", "c.phlox").returncode == 0
    before = count("a.phlox")
    wait_until(lambda: count("a.phlox") > before, "more")
    assert f"wrote {first}" in end(recorder)
    assert not [name for name in os.listdir(".") if not name.endswith((".phlox", ".html", ".gz"))]


def test_a_killed_recorder_is_gone_on_with(start, busy, workdir):
    randomly = random.Random(47)
    recorder = None
    for _ in range(4):
        recorder = record(start, busy, "--append")
        parts = sql("a.phlox", "SELECT count(*) FROM event WHERE kind = 0")
        time.sleep(randomly.uniform(0.1, 1))
        recorder.kill()
        recorder.wait(timeout=LIMIT)
        assert phlox("report", "a.phlox").returncode == 0
    assert parts == 4
    recorder = start([PHLOX, "record", "--append", "-o", "a.phlox", "-d", "1", "-p", busy.pid], stderr=subprocess.PIPE)
    said = recorder.communicate(timeout=LIMIT)[1]
    assert recorder.returncode == 0 and "behind what was there" in said, said
    report = readers("a.phlox")
    assert "between were not recorded" in report and "killed" not in report.split("Processes")[0]
    # One process all the while, and each of its threads one thread.
    assert sql("a.phlox", "SELECT count(*) FROM process") == 1
    assert sql("a.phlox", "SELECT count(*) FROM thread") == sql("a.phlox", "SELECT count(DISTINCT tid) FROM thread")
    assert sql("a.phlox", "SELECT count(*) FROM event WHERE kind = 0") == 5
    assert sql("a.phlox", "SELECT count(*) FROM event WHERE kind = 8") == 4


@pytest.mark.parametrize("words, said", [
    (["--max-size", "3M"], "at least --max-size 10M"),
    (["--max-size", "much"], "not a size"),
    (["--keep", "x"], "not a duration"),
    (["--append"], "--append needs -o"),
    (["--append", "-o", "a.svg"], "--append needs -o"),
])
def test_what_cannot_be_kept_says_why(workdir, words, said):
    done = phlox("record", *words, "-p", os.getpid())
    assert done.returncode == 2 and said in done.stderr


@pytest.mark.parametrize("words, status, said", [
    ([], 2, "of which recording?"),
    (["-p", str(2**22 + 1)], 111, "no process"),
    (["-p", "1", "a.phlox"], 2, "of which recording?"),
    (["none.phlox"], 118, "cannot open none.phlox"),
])
def test_what_cannot_be_copied_says_why(workdir, words, status, said):
    done = phlox("snapshot", *words)
    assert done.returncode == status and said in done.stderr, done.stderr


def test_a_process_that_records_nothing_is_no_recorder(busy, workdir):
    done = phlox("snapshot", "-p", busy.pid)
    assert done.returncode == 118 and "writes no recording" in done.stderr
