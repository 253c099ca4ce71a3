"""Recordings of real programs, read back by what reads the formats: not a nanosecond is lost between them."""
import csv
import gzip
import json
import pstats
import re
import sqlite3
import subprocess

import pytest
from cli_support import PHLOX, PYTHON, phlox

THREADS = """
import threading, time
end = time.monotonic() + 1.2
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def even(n): return n == 0 or odd(n - 1)
def odd(n): return n != 0 and even(n - 1)
def work():
    while time.monotonic() < end: fib(10); even(50)
def sleepy():
    while time.monotonic() < end: time.sleep(.01)
threads = [threading.Thread(target=work, name="one, two"), threading.Thread(target=work, name='say "hi"'), threading.Thread(target=sleepy)]
[t.start() for t in threads]; [t.join() for t in threads]
"""


@pytest.fixture(scope="module", params=[[], ["--native"]], ids=["python", "native"])
def recording(request, tmp_path_factory):
    """A recording, the time of all its stretches, and of what is work."""
    folder = tmp_path_factory.mktemp("formats")
    path = folder / "a.phlox"
    (folder / "threads.py").write_text(THREADS)
    done = phlox("record", "-r", "500", *request.param, "-o", path, "--", PYTHON, folder / "threads.py")
    assert done.returncode == 0, done.stderr
    wall, cpu, rows = sqlite3.connect(path).execute("select sum(wall_ns), sum(cpu_ns), count(*) from sample").fetchone()
    timed = sqlite3.connect(path).execute("select sum(cpu_ns) from sample where wall_ns > 0").fetchone()[0]
    assert rows > 100
    [[begin]] = sqlite3.connect(path).execute("""select (t.start_ns - m.value) / 1e9 from thread t, meta m
        where m.key = 'start_monotonic_ns' and t.name like 'one%' limit 1""")
    lines = export(path, "collapsed").decode("utf-8", "replace").splitlines()
    return {"path": path, "begin": begin, "wall": wall, "cpu": cpu, "cpu of what took time": timed, "rows": rows, "work": sum(int(line.rsplit(" ", 1)[1]) for line in lines)}


def export(path, kind, *options):
    done = subprocess.run([PHLOX, "export", path, "-f", kind, *options], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_firefox(recording):
    profile = json.loads(gzip.decompress(export(recording["path"], "firefox")))
    wall = cpu = 0
    shared = profile["shared"]
    for table in ("stackTable", "frameTable", "funcTable", "resourceTable", "sources"):
        lengths = {len(column) for column in shared[table].values() if isinstance(column, list)}
        assert lengths == {shared[table]["length"]}, table
    for i, prefix in enumerate(shared["stackTable"]["prefix"]):
        assert prefix is None or prefix < i
    for thread in profile["threads"]:
        samples = thread["samples"]
        assert samples["time"] == sorted(samples["time"])
        assert all(stack is None or stack < shared["stackTable"]["length"] for stack in samples["stack"])
        wall += sum(round(weight * 1e6) for weight in samples["weight"])
        cpu += sum(delta or 0 for delta in samples["threadCPUDelta"])
        names = {shared["stringArray"][name] for name in thread["markers"]["name"]}
        assert "Thread started" in names or thread["isMainThread"]
    assert (wall, cpu) == (recording["wall"], recording["cpu of what took time"])
    assert {"one, two", 'say "hi"'} < {thread["name"] for thread in profile["threads"]}


def test_chrome(recording):
    trace = json.loads(export(recording["path"], "chrome"), parse_float=lambda text: int(text.replace(".", "")))
    total, open_, names = 0, {}, {}
    for event in trace["traceEvents"]:
        stack = open_.setdefault(event["tid"], [])
        if event["ph"] == "M" and event["name"] == "thread_name":
            names[event["tid"]] = event["args"]["name"]
        elif event["ph"] == "B":
            assert not stack or stack[-1] <= event["ts"]
            stack.append(event["ts"])
        elif event["ph"] == "E":
            start = stack.pop()
            total += event["ts"] - start if not stack else 0
    assert not any(open_.values())
    assert total == recording["wall"]
    assert {"one, two", 'say "hi"'} < set(names.values())


def fields(message):
    """The fields of a protobuf message, which does not name them: (number, value) in the order of the bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            value |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                return value

    while at < len(message):
        tag = varint()
        assert tag & 7 in (0, 2), "only numbers and bytes are written"
        value = varint()
        if tag & 7 == 2:
            value, at = message[at:at + value], at + value
        yield tag >> 3, value


def test_perfetto(recording):
    """Tracks, interned names, begins and ends; the numbers are those of protos/perfetto/trace/."""
    total, open_, names, threads = 0, {}, {}, {}
    for _, packet in fields(export(recording["path"], "perfetto")):
        packet = dict(fields(packet))
        for number, entry in fields(packet.get(12, b"")):  # interned_data
            if number == 2:
                entry = dict(fields(entry))
                names[entry[1]] = entry[2]
        if 60 in packet:  # track_descriptor
            track = dict(fields(packet[60]))
            if 4 in track:
                threads[track[1]] = dict(fields(track[4]))[5].decode()
        event = dict(fields(packet.get(11, b"")))  # track_event
        if event.get(11) not in threads:
            continue
        stack = open_.setdefault(event[11], [])
        if event[9] == 1:
            assert event[10] in names
            stack.append(packet[8])
        elif event[9] == 2:
            start = stack.pop()
            total += packet[8] - start if not stack else 0
    assert not any(open_.values())
    assert total == recording["wall"]
    assert {"one, two", 'say "hi"'} < set(threads.values())
    assert b"fib" in names.values()


def test_callgrind(recording, tmp_path):
    file = tmp_path / "a.callgrind"
    file.write_bytes(export(recording["path"], "callgrind"))
    done = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", file], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert f"{recording['work']:,}" in re.search(r"^([\d,]+) .*PROGRAM TOTALS", done.stdout, re.M)[1]
    rows = [int(row.replace(",", "")) for row in re.findall(r"^ *([\d,]+) \([ \d.]+%\)  .*:", done.stdout, re.M)]
    assert sum(rows) == recording["work"]
    assert "fib" in done.stdout


def test_pstats(recording, tmp_path):
    file = tmp_path / "a.pstats"
    file.write_bytes(export(recording["path"], "pstats"))
    # By the interpreter that runs the tests, and by the one that was recorded.
    stats = pstats.Stats(str(file))
    assert round(stats.total_tt * 1e9) == recording["work"]
    for (_, _, name), (calls, _, own, total, callers) in stats.stats.items():
        assert calls == 0 and own <= total <= stats.total_tt + 1e-9, name
        if callers and name != "fib":
            assert round(sum(caller[2] for caller in callers.values()) * 1e9) == round(own * 1e9), name
    done = subprocess.run([PYTHON, "-c", f"import pstats; pstats.Stats({str(file)!r}).sort_stats('cumulative').print_stats(20)"], capture_output=True, text=True)
    assert done.returncode == 0 and "(fib)" in done.stdout, done.stderr


def test_json_lines_and_csv_have_the_same_rows(recording):
    rows = [json.loads(line) for line in export(recording["path"], "jsonl").splitlines()]
    assert (len(rows), sum(r["wall_ns"] for r in rows), sum(r["cpu_ns"] for r in rows)) == (recording["rows"], recording["wall"], recording["cpu"])
    table = list(csv.DictReader(export(recording["path"], "csv").decode().splitlines()))
    assert len(table) == len(rows)
    for row, line in zip(rows, table):
        stack = row.pop("stack")
        assert line.pop("stack").split(";")[-1].startswith(stack[-1][:10].replace("\\", "\\\\") if stack else "")
        as_text = {key: "" if value is None else str(value).lower() if isinstance(value, bool) else str(value) for key, value in row.items()}
        assert as_text == line
    assert {"one, two", 'say "hi"'} < {row["thread"] for row in rows}


@pytest.mark.parametrize("kind", ["firefox", "chrome", "perfetto", "callgrind", "pstats", "jsonl", "csv", "pprof"])
def test_the_choices_of_the_view_hold(recording, kind):
    whole = export(recording["path"], kind)
    begin = recording["begin"]
    part = export(recording["path"], kind, "--thread", "^one", "--time", f"{begin + 0.1:.3f}s..{begin + 0.3:.3f}s")
    assert 0 < len(part) < len(whole)
    for piece in (gzip.decompress(part) if kind in ("firefox", "pprof") else part,):
        assert b"fib" in piece and b"sleepy" not in piece


def test_native_names_are_full_or_short(recording):
    wrong = phlox("export", recording["path"], "-f", "collapsed", "--native-names", "long")
    assert wrong.returncode != 0 and "full" in wrong.stderr
    assert export(recording["path"], "collapsed", "--native-names", "full") == export(recording["path"], "collapsed")
