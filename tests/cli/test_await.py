"""Await time in what phlox writes: the sums are the recording's, for the programs that read it, too."""
import gzip
import json
import pstats
import shutil
import sqlite3

import pytest
from cli_support import PYTHON, phlox
from test_consumers import EXACT, PPROFS, TOP_ROW, consumer, run

PROGRAM = """
import asyncio, sys; FUTURES = []
async def fetch(lock):
    async with lock: await asyncio.sleep(0.02)
async def handle(lock):
    while True: await fetch(lock)
async def forgotten(): FUTURES.append(asyncio.get_running_loop().create_future()); await FUTURES[-1]
async def main():
    lock = asyncio.Lock()
    keep = [asyncio.ensure_future(one) for one in (handle(lock), handle(lock), forgotten())]
    await asyncio.sleep(float(sys.argv[1]))
asyncio.run(main())
"""


def record(folder, name, seconds=1.5):
    (folder / "app.py").write_text(PROGRAM)
    done = phlox("record", "-o", folder / name, "--", PYTHON, folder / "app.py", str(seconds))
    assert done.returncode == 0, done.stderr
    return folder / name


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    return record(tmp_path_factory.mktemp("await"), "a.phlox")


@pytest.fixture(scope="module")
def awaited(recording):
    """The nanoseconds of all its waiting tasks."""
    (time,), = sqlite3.connect(recording).execute("select sum(time_ns) from task_time where state = 0")
    assert time > 3e9
    return time


def export(recording, kind, folder, *options):
    out = folder / f"a.{kind}"
    done = phlox("export", recording, "-f", kind, *options, "-o", out)
    assert done.returncode == 0, done.stderr
    return out


def stacks(text):
    return dict((line.rsplit(" ", 1)[0], int(line.rsplit(" ", 1)[1])) for line in text.splitlines())


def test_collapsed_stacks_are_coroutines_and_what_they_await(recording, awaited, tmp_path):
    found = stacks(export(recording, "collapsed", tmp_path, "--weight", "await", "--by", "line,thread").read_text())
    assert sum(found.values()) == awaited
    assert all(stack.startswith("Thread MainThread (") for stack in found)
    app = recording.parent / "app.py"
    (sleeps,) = [stack.split(";")[1:] for stack in found if "fetch" in stack and stack.endswith(";(awaits the end of sleep())")]
    assert sleeps[:2] == [f"handle ({app}:6)", f"fetch ({app}:4)"] and sleeps[2].startswith("sleep (")
    assert any(f";forgotten ({app}:7);(awaits a future)" in stack for stack in found)


def test_speedscope_is_read_back_with_the_same_sum(recording, awaited, tmp_path):
    file = export(recording, "speedscope", tmp_path, "--weight", "await")
    profiles = json.loads(file.read_text())["profiles"]
    assert [sum(profile["weights"]) for profile in profiles] == [awaited] and profiles[0]["unit"] == "nanoseconds"
    done = phlox("export", file, "-f", "collapsed", "--show", "everything")
    assert done.returncode == 0, done.stderr
    assert sum(stacks(done.stdout).values()) == awaited


@pytest.mark.parametrize("program", PPROFS)
def test_pprof_has_it_as_a_sample_type(recording, awaited, tmp_path, program):
    def pprof(*options):
        return run(consumer(program[0]), *program[1:], *EXACT, *options)

    file = export(recording, "pprof", tmp_path, "--show", "everything")
    top = pprof("-top", "-sample_index=await", file)
    assert f"Total samples = {awaited}ns" in top
    rows = {name: int(own) for own, name in TOP_ROW.findall(top)}
    assert sum(rows.values()) == awaited and rows["(awaits a future)"] > 1e9
    (wall,), = sqlite3.connect(recording).execute("select sum(wall_ns) from sample")
    assert f"Total samples = {wall}ns" in pprof("-top", file), "what is shown first is the threads' time"
    assert f"Total samples = {awaited}ns" in pprof("-top", export(recording, "pprof", tmp_path, "--weight", "await"))


def test_pprof_leaves_it_out_where_a_part_of_the_time_is_asked_for(recording, tmp_path):
    assert b"await" in gzip.decompress(export(recording, "pprof", tmp_path).read_bytes())
    assert b"(awaits " not in gzip.decompress(export(recording, "pprof", tmp_path, "--time", "..1s").read_bytes())


def test_callgrind_and_pstats_have_it(recording, awaited, tmp_path):
    text = export(recording, "callgrind", tmp_path, "--show", "everything").read_text()
    (wall,), = sqlite3.connect(recording).execute("select sum(wall_ns) from sample")
    assert f"events: Wall_ns Await_ns\nsummary: {wall} {awaited}\n" in text
    assert f"events: Await_ns\nsummary: {awaited}\n" in export(recording, "callgrind", tmp_path, "--weight", "await").read_text()
    file = export(recording, "pstats", tmp_path, "--weight", "await")
    assert sum(row[2] for row in pstats.Stats(str(file)).stats.values()) == pytest.approx(awaited * 1e-9, abs=1e-6)


def test_the_flame_graph_says_what_its_widths_are(recording, tmp_path):
    picture = export(recording, "svg", tmp_path, "--weight", "await").read_text()
    assert "Widths: await time." in picture and "(awaits a future)" in picture and "left out" not in picture.lower().split("<script")[0]


def test_record_writes_it_at_once(tmp_path):
    (tmp_path / "app.py").write_text(PROGRAM)
    done = phlox("record", "--weight", "await", "-o", tmp_path / "a.svg", "--", PYTHON, tmp_path / "app.py", "1.2")
    assert done.returncode == 0, done.stderr
    assert "Widths: await time." in (tmp_path / "a.svg").read_text()
    assert "of wall time in 1 thread" in done.stderr, "the summary is of the threads"


@pytest.fixture(scope="module")
def other(recording, tmp_path_factory):
    return record(tmp_path_factory.mktemp("other"), "b.phlox")


def test_diff_says_how_many_tasks_wait_before_and_after(recording, other, tmp_path):
    # Of the other one's tasks a twentieth more waited for the future.
    db = sqlite3.connect(other)
    db.execute("UPDATE task_time SET time_ns = 21 * time_ns / 20 WHERE kind = 'future'")
    db.commit()
    done = phlox("diff", "--json", recording, other)
    assert done.returncode == 0, done.stderr
    awaits = json.loads(done.stdout)["awaits"]
    groups = {(group["name"], group["kind"]): group for group in awaits["groups"]}
    future = groups["forgotten", "future"]
    assert future["before_tasks"] == pytest.approx(1, abs=0.1) and future["after_tasks"] == pytest.approx(1.05, abs=0.1)
    assert future["line"] == 7 and future["file"] == str(other.parent / "app.py")
    text = phlox("diff", recording, other).stdout
    assert "What tasks await: how many wait at a time" in text and "a future" in text
    # Of some tens of censuses, this difference is not certain.
    assert future["low"] < 0 < future["high"] and awaits["judged"] and awaits["groups_differ"] == 0, future
    assert "| inconclusive | a future |" in phlox("diff", "--markdown", recording, other).stdout
    done = phlox("diff", recording, other, "-o", tmp_path / "d.html")
    assert done.returncode == 0 and '"awaits":true' in (tmp_path / "d.html").read_text(), done.stderr


SERVICE = """
import asyncio, random, sys, time
random.seed(sys.argv[1]); DATABASE = float(sys.argv[2])
async def query():
    await asyncio.sleep(DATABASE * random.uniform(0.5, 1.5))
async def render():
    await asyncio.sleep(0.03 * random.uniform(0.5, 1.5))
async def handle():
    while True:
        await query()
        await render()
async def main():
    keep = [asyncio.ensure_future(handle()) for _ in range(8)]
    await asyncio.sleep(8)
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def services(tmp_path_factory):
    """-> recordings of equal runs, and of one whose query takes four times as long"""
    folder = tmp_path_factory.mktemp("services")
    (folder / "service.py").write_text(SERVICE)
    names = []
    for name, seed, database in (("a", "1", "0.02"), ("b", "2", "0.02"), ("slow", "3", "0.08")):
        done = phlox("record", "-q", "-o", folder / f"{name}.phlox", "--", PYTHON, folder / "service.py", seed, database)
        assert done.returncode == 0, done.stderr
        names.append(folder / f"{name}.phlox")
    return names


def diff(*words):
    done = phlox("diff", "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


CERTAIN = {"grew", "shrank", "new", "vanished"}


def test_diff_by_await_time_finds_the_await_that_got_longer(services):
    a, _, slow = services
    made = diff("--weight", "await", a, slow)
    assert made["weight"] == "await" and made["unit"] == "ns"
    rows = {row["name"]: row for row in made["functions"]}
    # Of eight tasks, each awaits the query in 0.02 of 0.05 s, then in 0.08 of 0.11 s.
    query = rows["query"]["total"]
    assert query["verdict"] == "grew" and rows["render"]["total"]["verdict"] == "shrank"
    assert made["per"] == "run", "both recordings are of whole runs"
    before, after = (query[side] / 8e9 for side in ("before_amount", "after_amount"))
    assert before == pytest.approx(8 * 0.02 / 0.05, rel=0.2) and after == pytest.approx(8 * 0.08 / 0.11, rel=0.2), query
    assert query["low"] <= query["difference"] <= query["high"]
    assert rows["handle"]["total"]["verdict"] in ("same", "inconclusive"), "all its time is awaited both times"
    (line,) = [row for row in made["lines"] if row["name"] == "handle" and row["line"] == 10]
    assert line["total"]["verdict"] == "grew"
    groups = {(group["name"], group["line"]): group for group in made["awaits"]["groups"]}
    assert made["awaits"]["judged"] and groups["handle", 10]["verdict"] == "grew" and groups["handle", 11]["verdict"] == "shrank"
    text = phlox("diff", "--weight", "await", a, slow).stdout
    assert "Lines whose await time differs, with all that they await" in text and "censuses" in text and "service.py:10" in text
    assert "| grew | the end of sleep\\(\\) | handle |" in phlox("diff", "--markdown", a, slow).stdout
    done = phlox("diff", "--weight", "await", "-q", a, slow, "--fail-if", "total(query) > +10%")
    assert done.returncode == 3, done.stderr


def test_diff_of_equal_runs_claims_no_change_of_what_tasks_await(services):
    a, b, _ = services
    made = diff("--weight", "await", a, b)
    assert made["functions_differ"] == 0, [row for row in made["functions"] if {row["self"]["verdict"], row["total"]["verdict"]} & CERTAIN]
    for one in (made, diff(a, b)):
        assert one["awaits"]["judged"] and one["awaits"]["groups_differ"] == 0, one["awaits"]


def test_diff_by_await_time_says_what_helps_where_it_cannot_compare(services, tmp_path):
    a, b, _ = services
    done = phlox("diff", "--weight", "await", a, b, "-o", tmp_path / "d.svg")
    assert done.returncode == 2 and "-o diff.html has await time" in done.stderr, done.stderr
    (tmp_path / "busy.py").write_text("sum(range(10**7))")
    phlox("record", "-q", "-o", tmp_path / "busy.phlox", "--", PYTHON, tmp_path / "busy.py")
    done = phlox("diff", "--weight", "await", a, tmp_path / "busy.phlox")
    assert done.returncode == 2 and "busy.phlox has no await time" in done.stderr, done.stderr
    shutil.copy(b, tmp_path / "old.phlox")
    db = sqlite3.connect(tmp_path / "old.phlox")
    db.execute("ALTER TABLE task_time DROP COLUMN changes")
    db.commit()
    db.close()
    done = phlox("diff", "--weight", "await", a, tmp_path / "old.phlox")
    assert done.returncode == 2 and "older version of Phlox made" in done.stderr and "without a verdict" in done.stderr, done.stderr
    assert diff(a, tmp_path / "old.phlox")["awaits"]["judged"] is False
    done = phlox("diff", "--weight", "await", a, b, "-o", tmp_path / "d.html")
    assert done.returncode == 0 and '"weight":"event1"' in (tmp_path / "d.html").read_text(), done.stderr


def test_a_report_on_several_has_the_tables_of_each(recording, other):
    loops = [json.loads(phlox("report", "--json", one).stdout)["awaits"][0] for one in (recording, other)]
    both = json.loads(phlox("report", "--json", recording, other).stdout)["awaits"]
    by_time = lambda loop: loop["waiting_ns"]  # noqa: E731
    assert sorted(both, key=by_time) == sorted(loops, key=by_time)
    assert phlox("report", recording, other).stdout.count("What tasks await: Thread MainThread") == 2


def test_what_is_not_available_is_reported(recording, tmp_path):
    for words, told in (
        (["-f", "csv"], "csv shows what happened when"), (["-f", "firefox"], "firefox shows what happened when"),
        (["-f", "svg", "--time", "..1s"], "of the whole recording"), (["-f", "svg", "--by", "label"], "of the whole recording")):
        done = phlox("export", recording, "--weight", "await", *words, "-o", tmp_path / "x")
        assert done.returncode == 2 and told in done.stderr and not (tmp_path / "x").exists(), done.stderr
    (tmp_path / "busy.py").write_text("sum(range(10**7))")
    phlox("record", "-o", tmp_path / "busy.phlox", "--", PYTHON, tmp_path / "busy.py")
    done = phlox("export", tmp_path / "busy.phlox", "--weight", "await")
    assert done.returncode == 2 and "has no await time" in done.stderr, done.stderr
    done = phlox("record", "--no-async", "--weight", "await", "-o", tmp_path / "x.svg", "--", PYTHON, "-c", "")
    assert done.returncode == 2 and "--weight await shows what --no-async leaves out" in done.stderr, done.stderr
    done = phlox("report", recording, "--weight", "await")
    assert done.returncode == 2 and "tables of its own" in done.stderr, done.stderr
