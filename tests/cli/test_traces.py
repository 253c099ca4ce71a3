"""Times of distributed traces (table trace_time) in every command that reads a recording."""
import contextlib
import json
import shutil
import sqlite3

import pytest
from cli_support import PYTHON, phlox

pytestmark = pytest.mark.live

USAGE = 2
FIRST, SECOND = "4bf92f3577b34da6a3ce929d0e0e4736", "4bf92f3500000000000000000000cafe"
SPANS = ["00f067aa0ba902b7", "00f067aa0ba902b8", "1122334455667788"]
PROGRAM = """
import threading, time
def busy(until):
    while time.monotonic() < until: sum(range(200))
def other(until):
    while time.monotonic() < until: sum(range(100))
end = time.monotonic() + 1.2
thread = threading.Thread(target=other, args=(end,), name="other")
thread.start()
busy(end)
thread.join()
"""


def add_traces(path):
    """MainThread works for the first trace from 0.2 s to 0.5 s, in two spans, and the other thread for the second one from 0.3 s to 0.7 s."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        begin = int(db.execute("SELECT value FROM meta WHERE key = 'start_monotonic_ns'").fetchone()[0])
        threads = dict(db.execute("SELECT name, min(id) FROM thread GROUP BY name"))
        rows = [("MainThread", 200, 400, FIRST, SPANS[0]), ("MainThread", 400, 500, FIRST, SPANS[1]), ("other", 300, 700, SECOND, SPANS[2])]
        db.executemany("INSERT INTO trace_time VALUES (NULL, ?, ?, ?, ?, ?)",
                       [(threads[name], begin + start * 1_000_000, begin + end * 1_000_000, trace, span) for name, start, end, trace, span in rows])
        db.commit()


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    path = tmp_path_factory.mktemp("traces") / "bare.phlox"
    done = phlox("record", "-o", path, "--", PYTHON, "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def traced(bare):
    path = bare.with_name("app.phlox")
    shutil.copy(bare, path)
    add_traces(path)
    return path


def report(*arguments):
    done = phlox("report", "--json", "--show", "everything", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_report_names_them(traced):
    traces = report(traced)["traces"]
    assert traces["count"] == 2
    # Samples begin some ms after the recording.
    assert traces["time_ns"] == pytest.approx(700e6, rel=0.02)
    longest = {row["trace"]: row for row in traces["longest"]}
    assert list(longest) == [SECOND, FIRST]
    assert longest[FIRST]["name"] == "busy" and longest[SECOND]["name"] == "other"
    assert longest[FIRST]["spans"] == 2 and longest[SECOND]["spans"] == 1
    assert longest[FIRST]["first_ns"] == pytest.approx(200e6, abs=20e6)
    assert longest[FIRST]["last_ns"] - longest[FIRST]["first_ns"] == pytest.approx(300e6, abs=20e6)
    text = phlox("report", traced).stdout
    assert "\nTraces\n" in text and FIRST in text and SECOND in text


@pytest.mark.parametrize("given, name, seconds", [
    (FIRST, "busy", 0.3), (FIRST.upper(), "busy", 0.3), (FIRST[:12], "busy", 0.3), (SECOND, "other", 0.4), (SPANS[1], "busy", 0.1)])
def test_one_alone_is_shown(traced, given, name, seconds):
    found = report("--trace", given, traced)
    assert found["total"] == pytest.approx(seconds * 1e9, rel=0.05)
    assert {row["name"] for row in found["functions_by_total"] + found["functions_on_all_stacks"]} & {"busy", "other"} == {name}
    assert found["traces"]["count"] == 1


def test_every_export_shows_one_alone(traced, tmp_path):
    for file in ("a.txt", "a.svg", "a.html", "a.pb.gz", "a.speedscope.json", "a.jsonl"):
        done = phlox("export", "--trace", FIRST, traced, "-o", tmp_path / file)
        assert done.returncode == 0, done.stderr
    assert "busy" in (tmp_path / "a.txt").read_text() and "other" not in (tmp_path / "a.txt").read_text()
    assert f"only trace {FIRST}" in (tmp_path / "a.svg").read_text()
    done = phlox("diff", "--trace", FIRST, traced, traced)
    assert done.returncode == 0, done.stderr


def test_formats_with_times_have_the_spans(traced, tmp_path):
    done = phlox("export", "-f", "chrome", traced, "-o", tmp_path / "a.json")
    assert done.returncode == 0, done.stderr
    events = [event for event in json.loads((tmp_path / "a.json").read_text())["traceEvents"] if event.get("cat") == "trace"]
    spans = {event["name"]: event["args"] for event in events if event["ph"] == "b"}
    assert spans == {f"span {span}": {"trace_id": trace, "span_id": span} for trace, span in zip((FIRST, FIRST, SECOND), SPANS)}
    # Samples may be missing in between: then a span has two parts.
    times = {name: sum(event["ts"] * (1 if event["ph"] == "e" else -1) for event in events if event["name"] == name) for name in spans}
    assert times[f"span {SPANS[2]}"] == pytest.approx(400e3, rel=0.02)
    done = phlox("export", "-f", "perfetto", traced, "-o", tmp_path / "a.pftrace")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "a.pftrace").read_bytes()
    assert b"Spans" in text and FIRST.encode() in text and SPANS[2].encode() in text


def test_what_is_not_there_is_an_error(bare, traced):
    for path, given, words in [
        (traced, "0" * 32, "the recording has 2 traces"), (traced, FIRST[:8], "2 traces begin with"), (traced, "f" * 16, "no span"),
        (bare, FIRST, "no process published them"), (traced, "4bf92f3", "no id of a trace"), (traced, "GET /", "no id of a trace")]:
        done = phlox("report", "--trace", given, path)
        assert done.returncode == USAGE and words in done.stderr, done.stderr
    done = phlox("export", "--weight", "await", "--trace", FIRST, traced, "-f", "collapsed", "-o", "-")
    assert done.returncode == USAGE and "leave --time, --label, --trace" in done.stderr


def test_without_traces_the_report_is_silent(bare):
    assert report(bare)["traces"] == {"count": 0, "time_ns": 0, "of_ns": 0, "longest": []}
    assert "trace" not in phlox("report", bare).stdout.lower()
