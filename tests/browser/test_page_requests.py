"""The slowest single requests on the page: the table, and its way to the timeline, in a real browser."""
import sqlite3

import pytest

from pages import CATCH_COPIES, check_leads_to_the_timeline, export, synthetic, table_rows

MS = 1_000_000
TABLES = """
CREATE TABLE task_census (id INTEGER PRIMARY KEY, process INTEGER, times INTEGER, span_ns INTEGER, phlox_cpu_ns INTEGER, tasks INTEGER, unproved INTEGER,
                          ended INTEGER, beyond INTEGER, without_stack INTEGER, problem TEXT);
CREATE TABLE event_loop (id INTEGER PRIMARY KEY, process INTEGER, thread INTEGER, type TEXT);
CREATE TABLE task_stack (id INTEGER PRIMARY KEY, parent INTEGER, frame INTEGER);
CREATE TABLE task_time (id INTEGER PRIMARY KEY, loop INTEGER, stack INTEGER, state INTEGER, kind TEXT, awaited TEXT, time_ns INTEGER, seen INTEGER,
                        longest_ns INTEGER, at_end INTEGER, went_on INTEGER);
CREATE TABLE task_group (id INTEGER PRIMARY KEY, loop INTEGER, frame INTEGER, lasted_ns INTEGER, times INTEGER, first INTEGER, last INTEGER, begun INTEGER,
                         rises INTEGER, gone INTEGER, mean_begin_ns INTEGER, last_begin_ns INTEGER, unobserved INTEGER);
CREATE TABLE ready_tasks (id INTEGER PRIMARY KEY, loop INTEGER, time_ns INTEGER, took_ns INTEGER, tasks INTEGER);
CREATE TABLE request (id INTEGER PRIMARY KEY, loop INTEGER, earliest_begin_ns INTEGER, latest_begin_ns INTEGER, earliest_end_ns INTEGER, latest_end_ns INTEGER,
                      seen INTEGER);
CREATE TABLE request_part (id INTEGER PRIMARY KEY, request INTEGER, task_time INTEGER, awaited INTEGER, time_ns INTEGER);
"""
FASTAPI = "/venv/lib/python3.12/site-packages/fastapi/routing.py"


def add_requests(path):
    """One of 600 ms with a task that it waits for, and one of which the end is not known."""
    db = sqlite3.connect(path)
    db.executescript(TABLES)
    epoch = int(db.execute("SELECT value FROM meta WHERE key = 'sample_epoch_ns'").fetchone()[0])

    def stack(*names):
        parent = None
        for file, name, line in names:
            frame = db.execute("INSERT INTO frame (kind, function, qualified_name, file, first_line, line, address, found_by, role) VALUES (0, ?, ?, ?, 1, ?, 0, '', 0)",
                               (name, name, file, line)).lastrowid
            parent = db.execute("INSERT INTO task_stack (parent, frame) VALUES (?, ?)", (parent, frame)).lastrowid
        return parent

    def time(of, state, kind):
        return db.execute("INSERT INTO task_time (loop, stack, state, kind, time_ns, seen, longest_ns, at_end, went_on) VALUES (1, ?, ?, ?, 0, 1, 0, 0, 0)", (of, state, kind)).lastrowid

    db.execute("INSERT INTO event_loop (process, thread, type) VALUES (1, 1, 'asyncio')")
    handler = stack((FASTAPI, "run_endpoint_function", 9), ("/app/shop.py", "checkout", 12))
    asleep, ready = time(handler, 0, "sleep"), time(handler, 1, None)
    child = time(stack(("/app/shop.py", "price", 30)), 0, "lock")
    for moments in [(100, 150, 750, 800), (500, 520, 1000, None)]:
        db.execute("INSERT INTO request (loop, earliest_begin_ns, latest_begin_ns, earliest_end_ns, latest_end_ns, seen) VALUES (1, ?, ?, ?, ?, 9)",
                   tuple(None if one is None else epoch + one * MS for one in moments))
    for request, of, awaited, ms in [(1, asleep, 0, 450), (1, ready, 0, 120), (1, child, 1, 900), (2, asleep, 0, 480)]:
        db.execute("INSERT INTO request_part (request, task_time, awaited, time_ns) VALUES (?, ?, ?, ?)", (request, of, awaited, ms * MS))
    db.commit()


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("requests") / "app.phlox"
    synthetic.write(path, samples=2000, threads=3, stacks=100, depth=20, seed=6)
    add_requests(path)
    return path


def test_the_table_has_the_requests_the_slowest_first(open_page):
    page = open_page("#view=requests")
    page.evaluate(CATCH_COPIES)
    rows = [{key: row[key] for key in ("Lasted", "Began", "Endpoint", "Its task", "Tasks it waits for")} for row in table_rows(page)]
    assert rows == [
        {"Lasted": "600 ms to 700 ms", "Began": "0.10 to 0.15 s", "Endpoint": "checkout",
         "Its task": "450 ms the end of sleep() in checkout (shop.py:12); 120 ms ready to run in checkout (shop.py:12)", "Tasks it waits for": "900 ms a lock in price (shop.py:30)"},
        {"Lasted": "at least 480 ms", "Began": "0.50 to 0.52 s", "Endpoint": "checkout",
         "Its task": "480 ms the end of sleep() in checkout (shop.py:12)", "Tasks it waits for": ""}]


def test_a_row_shows_its_time_in_the_timeline(open_page):
    page = open_page("#view=requests")
    check_leads_to_the_timeline(page, ".requests .rows .row")


def test_a_recording_without_requests_has_no_such_view(open_page, tmp_path):
    path = tmp_path / "none.phlox"
    synthetic.write(path, samples=500, threads=2, stacks=50, depth=10, seed=7)
    page = open_page(file=export(path, tmp_path / "none.html"))
    assert page.locator("nav.views button", has_text="Waits").count() == 1
    assert page.locator("nav.views button", has_text="Requests").count() == 0
