"""Await time in the page: the numbers of `phlox export --weight await`, and what cannot be said of it."""
import random
import re
import sqlite3

import pytest

from pages import CATCH_COPIES, export, phlox, settled, synthetic, table_rows, weight_words, whole
from pictures import ROOT

SPAN = 20_000_000_000  # ns


def add_tasks(recording, seed=3):
    """Tasks of two loops, of which one's thread is not known, with chains of frames that threads have, too."""
    source = random.Random(seed)
    db = sqlite3.connect(recording)
    schema = (ROOT / "src" / "phlox" / "recording" / "schema.h").read_text()
    for statement in re.findall(r"CREATE TABLE (?:task_census|event_loop|task_stack|task_time) \(.*?\);", schema, re.S):
        db.execute(statement)
    frames = [row[0] for row in db.execute("SELECT id FROM frame WHERE kind = 0 ORDER BY id LIMIT 40")]
    db.execute("INSERT INTO task_census (id, process, times, span_ns, phlox_cpu_ns, tasks, unproved, ended, beyond, without_stack) VALUES (1, 1, 200, ?, 0, 100, 0, 0, 0, 0)", (SPAN,))
    db.executemany("INSERT INTO event_loop (id, process, thread, type) VALUES (?, 1, ?, ?)", [(1, 1, "_UnixSelectorEventLoop"), (2, None, "Loop")])
    db.executemany("INSERT INTO task_stack (id, parent, frame) VALUES (?, ?, ?)",
                   [(i, None if i < 8 else source.randrange(1, i), source.choice(frames)) for i in range(1, 60)])
    rows = [(i, source.randint(1, 2), source.randint(1, 59), source.choice([0, 0, 0, 1]), *source.choice([("lock", "Lock"), ("sleep", None), ("queue_item", None)]),
             source.randint(1, 10 * SPAN)) for i in range(1, 200)]
    db.executemany("INSERT INTO task_time (id, loop, stack, state, kind, awaited, time_ns, seen, longest_ns) VALUES (?, ?, ?, ?, ?, ?, ?, 2, 0)", rows)
    db.commit()


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("await") / "app.phlox"
    synthetic.write(path, samples=3000, threads=4, stacks=300, depth=20, seed=9)
    add_tasks(path)
    return path


def awaited(recording, *choices):
    lines = phlox("export", recording, "--weight", "await", "-f", "collapsed", *choices).stdout.splitlines()
    return dict((line.rsplit(" ", 1)[0], int(line.rsplit(" ", 1)[1])) for line in lines)


def test_await_time_is_a_weight_with_the_sums_of_the_export(open_page, recording):
    page = open_page()
    before = whole(page)
    page.get_by_role("button", name="Await time").click()
    stacks = awaited(recording)
    (all_ns,), = sqlite3.connect(recording).execute("SELECT sum(time_ns) FROM task_time WHERE state = 0")
    assert sum(stacks.values()) == all_ns
    assert whole(page) == f"{weight_words(all_ns)} await time of all tasks"
    assert page.locator(".left-out").inner_text().startswith("How long the tasks of event loops waited")
    page.get_by_role("button", name="Functions and lines").click()
    page.evaluate(CATCH_COPIES)
    totals = {}
    for stack, time in stacks.items():
        for frame in set(stack.split(";")[:-1]):
            totals[frame] = totals.get(frame, 0) + time
    rows = table_rows(page)
    assert {f"{row['Function']} ({row['Place'].rsplit(':', 1)[0]})": row["Total time"] for row in rows} == {frame: weight_words(time) for frame, time in totals.items()}
    assert {row[column] for row in rows for column in ("Samples", "Self 99 %", "Total 99 %")} == {"-"}, "what is not known of it"
    page.get_by_role("button", name="Wall time").click()
    assert whole(page) == before, "the threads' time is what it was"


def test_no_part_of_it_is_in_a_range_of_time(open_page, recording):
    words = whole(open_page("#weight=event1&f=in.time.0-1000000000"))
    assert words.startswith("0 s of "), words


def test_the_words_say_why(open_page):
    page = open_page("#weight=event1&f=in.time.0-1000000000")
    assert "not for a part of it" in page.locator(".left-out").inner_text()


def test_filters_by_thread_hold(open_page, recording):
    page = open_page("#weight=event1&f=in.thread.0")
    (of_loop,), = sqlite3.connect(recording).execute("SELECT sum(time_ns) FROM task_time WHERE state = 0 AND loop = 1")
    assert whole(page).startswith(f"{weight_words(of_loop)} of "), whole(page)


def test_a_page_can_begin_with_it(open_picture, recording, tmp_path):
    page = settled(open_picture(export(recording, tmp_path / "a.html", "--weight", "await")))
    assert "await time of all tasks" in whole(page)


def test_a_part_of_the_recording_has_none(open_picture, recording, tmp_path):
    page = settled(open_picture(export(recording, tmp_path / "a.html", "--time", "..1s")))
    assert page.get_by_role("button", name="Await time").count() == 0
