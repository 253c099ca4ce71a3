"""The slowest requests that phlox record keeps, compared with what the server itself measured: each is one of the server's, none
is longer or shorter, and no fast ones look like a slow one. On every interpreter, on asyncio and trio, and with uvicorn and Tornado themselves."""
import collections
import json
import os
import pathlib
import subprocess
import sys
import types

import pytest

from live_support import PHLOX, SLOWER, Recording, Target, has, once_a_version, since

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))
from harness import services  # noqa: E402

PROGRAM = pathlib.Path(__file__).with_name("programs") / "requests.py"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "phlox"
ROUNDING = 1e-6
SECONDS = 5


def record(python, path, server):
    """-> (the recording, [(before it began, after, before it ended, after, what)] as the server measured them)"""
    log = path.with_name("log")
    program = PROGRAM.with_name("trio_requests.py") if server.startswith("trio") else PROGRAM
    with Target(python, program, log, (SECONDS + 3) * SLOWER, server) as target:
        subprocess.run([PHLOX, "record", "-q", "-d", str(SECONDS * SLOWER), "-o", path, "--max-overhead", "10", "-p", str(target.pid)], check=True, timeout=120 * SLOWER)
        target.process.wait(60 * SLOWER)
    lines = [line.split() for line in log.read_text().splitlines()]
    return Recording(path), [(*(int(moment) * 1e-9 for moment in line[:4]), line[4]) for line in lines]


def is_of(row, measured):
    earliest_begin, latest_begin, earliest_end, latest_end = row
    before, begun, ending, ended, _ = measured
    return ((earliest_begin is None or earliest_begin <= begun + ROUNDING) and before <= latest_begin + ROUNDING
            and earliest_end <= ended + ROUNDING and (latest_end is None or ending <= latest_end + ROUNDING))


def pairs(rows, measured, fits):
    """-> {row: the request that it is}, each of another one: requests of one length may begin at the same time."""
    row_of = {}

    def find(row, tried):
        for index, one in enumerate(measured):
            if index in tried or not fits(row, one):
                continue
            tried.add(index)
            if index not in row_of or find(row_of[index], tried):
                row_of[index] = row
                return True
        return False

    for row in rows:
        assert find(row, set()), (row, [one for one in measured if fits(row, one)], rows)
    return {row: index for index, row in row_of.items()}


def check(recording, measured):
    seconds = "earliest_begin_ns * 1e-9, latest_begin_ns * 1e-9, earliest_end_ns * 1e-9, latest_end_ns * 1e-9"
    rows = dict((row[0], row[1:]) for row in recording.query(f"SELECT id, {seconds} FROM request"))
    parts = collections.defaultdict(collections.Counter)
    for request, awaited, duration, kind in recording.query(
            "SELECT request, p.awaited, p.time_ns * 1e-9, kind FROM request_part p JOIN task_time t ON t.id = p.task_time"):
        parts[request][awaited, kind] += duration
    has_tasks = {request: any(awaited for awaited, _ in parts[request]) for request in rows}
    found = pairs(rows, measured, lambda request, one: is_of(rows[request], one) and (one[4] == "fan") == has_tasks[request])
    for request, row in rows.items():
        least = row[2] - row[1]
        if least < 0.2:
            continue
        kinds = ("gather", "nursery") if has_tasks[request] else ("sleep",)
        own = sum(parts[request][0, kind] for kind in kinds)
        most = row[3] - row[0] if row[0] and row[3] else None
        assert 0.8 * least <= own and (most is None or own <= most + ROUNDING), (row, parts[request])
        # Two tasks sleep, and one waits for one of these.
        asleep = parts[request][1, "sleep"]
        assert (1.6 * own <= asleep <= 2.01 * own) if has_tasks[request] else asleep == 0, (row, parts[request])
    # All that were surely seen twice are there.
    begin, end = recording.query("SELECT min(time_ns) * 1e-9, max(time_ns) * 1e-9 FROM event WHERE kind IN (0, 1)")[0]
    left = [one for index, one in enumerate(measured) if index not in found.values()]
    sure = [one for one in measured if one[2] - one[1] > 0.6 and one[0] > begin + 0.3 and one[3] < end - 0.3]
    assert sure and not [one for one in sure if one in left], ([one for one in sure if one in left], rows)


@once_a_version
@since(3, 8)
def test_each_slow_request_is_one_of_the_program(python, tmp_path):
    check(*record(python, tmp_path / "a.phlox", "alone"))


def running_in(recording, request):
    """-> Counter of the functions in which the request's own task ran, by time"""
    functions = collections.Counter()
    for function, duration in recording.query(f"""SELECT f.function, p.time_ns FROM request_part p
            JOIN task_time t ON t.id = p.task_time JOIN task_stack s ON s.id = t.stack JOIN frame f ON f.id = s.frame
            WHERE request = {request} AND t.state = 2 AND NOT p.awaited"""):
        functions[function] += duration * 1e-9
    return functions


def needs_trio(python):
    if not has(python, "trio"):
        pytest.skip("this interpreter has no trio")


@once_a_version
@since(3, 10)
def test_each_slow_request_on_trio_is_one_of_the_program(python, tmp_path, loops):
    needs_trio(python)
    check(*record(python, tmp_path / "a.phlox", "trio"))


def check_functions(recording, measured):
    seconds = "earliest_begin_ns * 1e-9, latest_begin_ns * 1e-9, earliest_end_ns * 1e-9, latest_end_ns * 1e-9"
    rows = {row[0]: row[1:] for row in recording.query(f"SELECT id, {seconds} FROM request")}
    assert len(rows) >= 5, rows
    known = 0.0
    for request, row in rows.items():
        functions = running_in(recording, request)
        of = {one[4] for one in measured if is_of(row, one)}
        # Never the function of another request. What is not proved has the server's alone. note() is serve()'s, and
        # Event.set() of trio's one.
        assert set(functions) - {"run_asgi", "_handle", "serve", "answer", "note", "set", "reschedule"} <= of, (request, row, functions, of)
        known += sum(functions[function] for function in of)
    assert known >= 0.6 * sum(row[2] - row[1] for row in rows.values()), (known, rows)


@once_a_version
@since(3, 8)
def test_a_request_that_lets_no_other_task_run_has_its_function(python, tmp_path):
    check_functions(*record(python, tmp_path / "a.phlox", "blocked"))


@once_a_version
@since(3, 10)
def test_a_request_on_trio_that_lets_no_other_task_run_has_its_function(python, tmp_path, loops):
    needs_trio(python)
    check_functions(*record(python, tmp_path / "a.phlox", "trio-blocked"))


@pytest.mark.parametrize("server", ["uvicorn", "tornado"])
def test_each_slow_request_of_a_server_is_one_that_it_had(server, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(CACHE / "mcp-client"))
    python = types.SimpleNamespace(path=services.python_of())
    if not has(python, server):
        pytest.skip(f"no {server} here (tools/install-test-deps.sh)")
    check(*record(python, tmp_path / "a.phlox", server))
    done = subprocess.run([PHLOX, "report", "--json", tmp_path / "a.phlox"], check=True, stdout=subprocess.PIPE)
    requests = json.loads(done.stdout)["requests"]
    assert requests and all(row["pid"] > 0 and row["parts"] for row in requests), requests
    text = subprocess.run([PHLOX, "report", "--by", "endpoint", tmp_path / "a.phlox"], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert "Slowest requests" in text and "the end of sleep()" in text, text
