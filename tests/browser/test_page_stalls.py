"""Stalls of event loops on the page: the table, and its way to the timeline, in a real browser."""
import sqlite3

import pytest

from pages import CATCH_COPIES, check_leads_to_the_timeline, synthetic, table_rows

MS = 1_000_000
LIB = "/usr/lib/python3.12/"


def add_loop(path):
    """The first thread becomes an event loop's, which sleeps in a callback for 400 ms, and for 100 ms."""
    db = sqlite3.connect(path)
    db.execute("UPDATE process SET mode = 'in the kernel (BPF)'")
    db.execute("DELETE FROM sample")

    def stack(*names):
        parent = None
        for file, name, line in names:
            frame = db.execute("INSERT INTO frame (kind, function, qualified_name, file, first_line, line, address, found_by, role) VALUES (0, ?, ?, ?, 1, ?, 0, '', 0)",
                               (name, name, file, line)).lastrowid
            parent = db.execute("INSERT INTO stack (parent, frame) VALUES (?, ?)", (parent, frame)).lastrowid
        return parent

    def state(call):
        return db.execute("INSERT INTO state (cpu, gil, collecting, system_call, quality) VALUES (3, 1, 0, ?, 0)", (call,)).lastrowid

    once = (LIB + "asyncio/base_events.py", "_run_once", 9)
    poll = stack(once, (LIB + "selectors.py", "select", 7)), state(232)
    nap = stack(once, (LIB + "asyncio/events.py", "_run", 5), ("/app/stalls.py", "read_config", 28)), state(230)
    at = 0
    for (of, how), wall in [(poll, 300), (nap, 400), (poll, 500), (nap, 100), (poll, 300)]:
        db.execute("INSERT INTO sample (start_us, wall_ns, cpu_ns, samples, thread, stack, state) VALUES (?, ?, 0, 1, 1, ?, ?)", (at * 1000, wall * MS, of, how))
        at += wall
    db.commit()


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("stalls") / "app.phlox"
    synthetic.write(path, samples=2000, threads=3, stacks=100, depth=20, seed=6)
    add_loop(path)
    return path


def test_the_table_has_the_stalls_the_longest_first(open_page):
    page = open_page("#view=stalls")
    page.evaluate(CATCH_COPIES)
    rows = table_rows(page)
    assert [(row["Length"], row["Turns"], row["In"], row["What it did"]) for row in rows] == [
        ("400 ms", "one", "read_config (stalls.py:28)", "asleep"), ("100 ms", "one", "read_config (stalls.py:28)", "asleep")]
    assert "2 stalls of 50 ms or more; the longest 400 ms" in page.locator(".loop-words").first.inner_text()


def test_a_row_shows_its_time_in_the_timeline(open_page):
    page = open_page("#view=stalls")
    check_leads_to_the_timeline(page, ".stalls .rows .row")


def test_a_recording_without_stalls_has_no_such_view(open_page, tmp_path):
    from pages import export
    path = tmp_path / "none.phlox"
    synthetic.write(path, samples=500, threads=2, stacks=50, depth=10, seed=7)
    page = open_page(file=export(path, tmp_path / "none.html"))
    assert page.locator("nav.views button", has_text="Waits").count() == 1
    assert page.locator("nav.views button", has_text="Stalls").count() == 0
