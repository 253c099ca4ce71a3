"""What the page's model makes of a page's data is what phlox makes of the recording: two programs, one truth."""
import collections
import json
import random
import sqlite3
import subprocess

import pytest

from pages import add_fork, add_waits, export, parts, phlox, report, synthetic
from pictures import BUILD, ROOT


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    made = []
    for seed in range(3):
        path = folder / f"r{seed}.phlox"
        synthetic.write(path, samples=3000, threads=9, stacks=700, depth=60, seed=seed)
        made.append(path)
    return made


@pytest.fixture(scope="module")
def reader(browser, tmp_path_factory):
    """The model, in the browser that it is for."""
    bundle = tmp_path_factory.mktemp("reader") / "reader.js"
    subprocess.run(["esbuild", ROOT / "web" / "test" / "page_reader.ts", "--bundle", "--format=iife", "--target=es2019",
                    "--charset=utf8", "--log-level=warning", f"--outfile={bundle}"], check=True)
    page = browser.new_page()
    page.set_content("<!DOCTYPE html><meta charset=utf-8>")
    page.add_script_tag(content=bundle.read_text())

    def ask(question, path, *arguments):
        texts, _ = parts(path)
        return page.evaluate(f"(given) => {question}(...given)", [json.loads(texts["phlox-head"]), texts["phlox-columns"], *arguments])

    yield ask
    page.close()


@pytest.fixture(scope="module")
def read(reader):
    """read(page, fragment, weight, by): the model's stacks."""
    return lambda path, fragment="", weight="wall", by="function": reader("collapsed", path, fragment, weight, by)


def collapsed(recording, *choices, show="everything"):
    """As `phlox export` says it: the reference. A stack that differs in a function's first line only is one line there."""
    stacks = {}
    for line in phlox("export", recording, "-f", "collapsed", "--show", show, *choices).stdout.splitlines():
        stack, weight = line.rsplit(" ", 1)
        stacks[stack] = stacks.get(stack, 0) + int(weight)
    return stacks


@pytest.mark.parametrize("choices", [[], ["--weight", "cpu"], ["--weight", "samples"], ["--by", "line"]], ids=" ".join)
def test_stacks_and_their_weights_are_those_of_the_exporter(recordings, read, tmp_path, choices):
    weight = choices[1] if "--weight" in choices else "wall"
    by = "line" if "--by" in choices else "function"
    for recording in recordings:
        page = export(recording, tmp_path / "page.html")
        expected = collapsed(recording, *choices)
        assert len(expected) > 200
        assert read(page, "show=everything", weight, by) == expected


@pytest.mark.parametrize("by", ["function", "line"])
@pytest.mark.parametrize("weight", ["wall", "cpu"])
def test_native_code_beneath_python_is_what_the_report_says(recordings, reader, tmp_path, by, weight):
    for recording in recordings:
        seen = {(row["name"], row["file"], row["line"]): (row["native"], pytest.approx(row["share"]))
                for row in reader("native", export(recording, tmp_path / "page.html"), "show=everything", weight, by)}
        told = report(recording, "--show", "everything", "--weight", weight)["functions" if by == "function" else "lines"]
        expected = {(row["name"], row["file"], row["line"]): (row["native"]["name"], row["native"]["share"])
                    for row in told if row.get("native") and row["self"]["weight"] > 0}
        assert len(expected) > 10
        assert {key: seen.get(key) for key in expected} == expected


@pytest.mark.parametrize("by", ["function", "line"])
def test_the_library_that_ran_is_what_the_report_says(recordings, reader, tmp_path, by):
    path = tmp_path / "app.phlox"
    path.write_bytes(recordings[0].read_bytes())
    db = sqlite3.connect(path)
    db.execute("INSERT INTO module SELECT max(id) + 1, '/usr/lib/libblas.so.3', '', 0 FROM module")
    db.execute("INSERT INTO module SELECT max(id) + 1, '/venv/_umath.so', '', 0 FROM module")
    (last,) = db.execute("SELECT max(id) FROM module").fetchone()
    db.execute("UPDATE state SET code_file = CASE WHEN id % 5 = 0 THEN NULL WHEN id % 5 = 1 THEN ? ELSE ? END WHERE cpu = 1", (last, last - 1))
    db.execute("UPDATE frame SET kind = 0, module = NULL WHERE kind = 1")  # no native frames
    db.commit()
    seen = {(row["name"], row["file"], row["line"]): (row["library"], pytest.approx(row["share"]))
            for row in reader("native", export(path, tmp_path / "page.html"), "show=everything&f=in.thread.2,3,4", "wall", by)}
    told = report(path, "--show", "everything", "--thread", "worker-[3-5]$")["functions" if by == "function" else "lines"]
    expected = {(row["name"], row["file"], row["line"]): (row["c_code"]["module"], row["c_code"]["share"]) for row in told if row.get("c_code")}
    assert len(expected) > 5
    assert {key: seen.get(key) for key in expected} == expected


def test_frames_that_children_inherited_are_there_when_they_are_asked_for(recordings, read, tmp_path):
    path = tmp_path / "app.phlox"
    path.write_bytes(recordings[0].read_bytes())
    add_fork(path)
    own, inherited = collapsed(path), collapsed(path, "--inherited-frames")
    assert own != inherited and any("(forked here)" in stack for stack in own)
    page = export(path, tmp_path / "page.html")
    assert read(page, "show=everything") == own
    assert read(page, "show=everything&inherited=shown") == inherited
    # Who asks for them begins with them.
    page = export(path, tmp_path / "page.html", "--inherited-frames", "--force")
    assert read(page, "show=everything") == inherited
    assert read(page, "show=everything&inherited=hidden") == own


def test_what_is_shown_is_what_the_command_line_shows(recordings, read, tmp_path):
    for recording in recordings:
        page = export(recording, tmp_path / "page.html")
        seen = {show: read(page, f"show={show}") for show in ["work", "computing", "waiting", "everything"]}
        for show, stacks in seen.items():
            assert stacks == collapsed(recording, show=show), show
        assert totals(seen["computing"]) < totals(seen["work"]) < totals(seen["everything"])
        assert read(page) == seen["work"]  # what it begins with
        assert read(export(recording, tmp_path / "waiting.html", "--show", "waiting")) == seen["waiting"]


def filters(recording, seed):
    """A choice of the view, in the words of the command line and of the page's address."""
    source = random.Random(seed)
    (end,) = sqlite3.connect(recording).execute("SELECT max(start_us * 1000 + wall_ns) FROM sample").fetchone()
    start = source.randrange(end // 2)
    stop = start + source.randrange(1, end // 2)
    return [
        (["--thread", "^1002$"], "f=in.thread.1"),
        (["--pid", "101"], "f=in.process.1"),
        (["--state", "running,gil-waits"], "f=in.state.running,gil-waits"),
        (["--state", "idle"], "f=in.state.idle"),
        (["--time", f"{start}ns..{stop}ns"], f"f=in.time.{start}-{stop}"),
        (["--time", f"{start}ns..{stop}ns", "--state", "runnable,gil-holds", "--pid", "100"],
         f"f=in.time.{start}-{stop}&f=in.process.0&f=in.state.runnable,gil-holds"),
    ]


def test_filters_of_the_page_are_the_choices_of_the_command_line(recordings, read, tmp_path):
    for seed, recording in enumerate(recordings):
        page = export(recording, tmp_path / "page.html")
        for choices, fragment in filters(recording, seed):
            for weight in ["wall", "cpu", "samples"]:
                expected = collapsed(recording, *choices, "--weight", weight)
                assert expected or weight == "cpu", choices  # who sleeps uses none
                assert read(page, f"{fragment}&show=everything", weight) == expected, (choices, weight)


def test_choices_of_the_command_line_say_what_goes_in(recordings, read, tmp_path):
    for seed, recording in enumerate(recordings):
        for choices, _ in filters(recording, seed):
            page = export(recording, tmp_path / "page.html", *choices)
            assert read(page, "show=everything") == collapsed(recording, *choices), choices


def totals(stacks):
    return sum(stacks.values())


def test_a_page_that_is_too_large_is_merged_and_loses_no_time(recordings, read, tmp_path):
    recording = recordings[0]
    small = export(recording, tmp_path / "small.html")
    whole = collapsed(recording, "--by", "line")  # what is cut is cut by line
    limit = small.stat().st_size
    merged, cut = {}, None
    while cut is None:
        limit -= 2000
        path = tmp_path / "merged.html"
        done = subprocess.run([BUILD / "phlox", "export", recording, "-o", path, "--max-page-size", str(limit / 1e6)],
                              capture_output=True, text=True)
        if done.returncode != 0:
            assert "too large even with everything merged" in done.stderr and "--max-page-size" in done.stderr
            break
        head = json.loads(parts(path)[0]["phlox-head"])
        assert path.stat().st_size <= limit and "merged" in head and "the order of what a thread did is lost" in done.stderr
        stacks = read(path, "show=everything", by="line")
        assert totals(stacks) == totals(whole)
        if head["merged"]["rareShare"] == 0:
            assert stacks == whole  # every stack has what it had
            merged = head["merged"]
        else:
            cut = head["merged"]
            assert any("(frames left out to fit the page)" in stack for stack in stacks)
            # Whatever is left whole has what it had.
            assert all(whole[stack] == weight for stack, weight in stacks.items() if "left out" not in stack)
            assert cut["cutWall"] == sum(weight for stack, weight in whole.items() if stack not in stacks)
    assert merged["stretchesAfter"] < merged["stretchesBefore"] == 3000


@pytest.fixture(scope="module", params=range(3))
def waiting(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("waits") / "app.phlox"
    synthetic.write(path, samples=4000, threads=9, stacks=300, depth=40, seed=request.param)
    add_waits(path, request.param)
    return path


def whose(row):
    """What identifies a row of waits, as report names it: of several wakers it names one or the other."""
    return row["words"].rsplit(" (", 1)[-1].rstrip(")"), *row["where"], *row["byWhere"], row["by"] if row["more"] == 0 else row["more"]


@pytest.mark.parametrize("choices, fragment", [([], ""), (["--pid", "101"], "f=in.process.1"), (["--thread", "worker-5"], "f=in.thread.4")])
def test_wakers_are_those_of_the_report(waiting, reader, tmp_path, choices, fragment):
    seen = reader("waits", export(waiting, tmp_path / "page.html"), fragment)
    told = report(waiting, *choices)["ended_waits"]
    assert len(told) > 20
    expected = collections.Counter((row["for"], row["name"], row["file"], row["line"], row["ended_in"], row["ended_in_file"], row["ended_in_line"],
                                    row["ended_by"] if row["ended_by_threads"] <= 1 else row["ended_by_threads"] - 1, row["wall_ns"], row["threads"]) for row in told)
    # The page has the beginning of a wait too, where that was for something else than its end.
    assert expected - collections.Counter((*whose(row), row["wall"], row["threads"]) for row in seen if row["whom"] == "ended") == collections.Counter()


def test_gil_holders_are_those_of_the_report(waiting, reader, tmp_path):
    page = export(waiting, tmp_path / "page.html")
    (waiters,) = [report(waiting)["gil_waits"]]
    assert len(waiters) >= 2
    for waiter in waiters:
        (number,) = sqlite3.connect(waiting).execute("SELECT id FROM thread WHERE tid = ?", (waiter["tid"],)).fetchone()
        rows = [row for row in reader("waits", page, f"f=in.thread.{number - 1}") if row["words"] == "the GIL"]
        assert sum(row["wall"] for row in rows) == waiter["wall_ns"]
        assert sum(row["wall"] for row in rows if row["whom"] in ("free", "unseen")) == waiter["unseen_ns"]
        held = {}
        for row in rows:
            if row["whom"] == "held":
                held[tuple(row["byWhere"])] = held.get(tuple(row["byWhere"]), 0) + row["wall"]
        for holder in waiter["holders"]:
            assert held[holder["name"], holder["file"], holder["line"]] == holder["wall_ns"]
