"""One endpoint in the page: the numbers of `--endpoint`, in threads' time and in await time, and in the link."""
import re
import sqlite3

import pytest

from pages import CATCH_COPIES, chips, export, phlox, report, settled, synthetic, table_rows, weight_words, whole
from pictures import fragment
from test_page_await import add_tasks


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Frames that are called in many stacks become Flask's dispatcher, so what they call are endpoints."""
    path = tmp_path_factory.mktemp("endpoints") / "app.phlox"
    synthetic.write(path, samples=3000, threads=4, stacks=300, depth=20, seed=9)
    add_tasks(path)
    db = sqlite3.connect(path)
    (of_threads,) = db.execute("SELECT above.frame FROM stack JOIN stack AS above ON above.id = stack.parent JOIN frame ON frame.id = above.frame WHERE kind = 0 AND above.parent IS NOT NULL"
                               " GROUP BY above.frame ORDER BY count(DISTINCT stack.frame) DESC LIMIT 1").fetchone()
    (of_tasks,) = db.execute("SELECT above.frame FROM task_stack JOIN task_stack AS above ON above.id = task_stack.parent WHERE above.frame <> ?"
                             " GROUP BY above.frame ORDER BY count(*) DESC LIMIT 1", (of_threads,)).fetchone()
    db.execute("UPDATE frame SET function = 'dispatch_request', qualified_name = 'Flask.dispatch_request', file = '/venv/site-packages/flask/app.py' WHERE id IN (?, ?)", (of_threads, of_tasks))
    db.commit()
    return path


@pytest.fixture(scope="module")
def endpoints(recording):
    """The label of each: "read_item (app.py:12)" """
    rows = [row for row in report(recording, "--show", "everything")["endpoints"] if row["kind"] == "endpoint"]
    assert len(rows) > 1 and any(row["await_ns"] for row in rows) and any(row["total"]["weight"] for row in rows)
    return [(f"{row['name']} ({row['file'].rsplit('/', 1)[-1]}:{row['line']})", row) for row in rows]


def choose(page, label, mode="Only one endpoint…"):
    settled(page).get_by_role("button", name="Filter…").click()
    page.get_by_role("menuitem", name=mode).click()
    page.get_by_role("menuitem", name=f"{'only' if mode.startswith('Only') else 'without'} endpoint {label}", exact=True).click()


def test_one_endpoint_is_chosen_with_the_numbers_of_the_command_line(open_page, recording, endpoints):
    label, row = max(endpoints, key=lambda one: one[1]["total"]["weight"])
    page = open_page("#show=everything&view=functions")
    choose(page, label)
    assert chips(page) == [f"only endpoint {label}"]
    only = report(recording, "--show", "everything", "--endpoint", f"^{re.escape(label)}$")
    assert only["total"] == row["total"]["weight"]
    assert whole(page).startswith(f"{weight_words(only['total'])} of ")
    page.evaluate(CATCH_COPIES)
    found = {(one["Function"], one["Place"]): one["Total time"] for one in table_rows(page)}
    expected = {(one["name"], f"{one['file']}:{one['line']}"): weight_words(one["total"]["weight"]) for one in only["functions_by_total"]}
    assert {place: found[place] for place in expected} == expected
    # The report does not list what all stacks go through: the endpoint and what calls it.
    assert {found[place] for place in set(found) - set(expected)} <= {weight_words(only["total"])}
    # The link holds it.
    again = open_page(fragment(page))
    assert chips(again) == [f"only endpoint {label}"] and whole(again) == whole(page)
    page.locator(".chips .chip").first.get_by_role("button").click()
    choose(page, label, "Without an endpoint…")
    rest = sum(one["total"]["weight"] for one in report(recording, "--show", "everything")["endpoints"]) - only["total"]
    assert whole(page).startswith(f"{weight_words(rest)} of ")


def test_await_time_of_one_endpoint(open_page, recording, endpoints):
    label, row = max(endpoints, key=lambda one: one[1]["await_ns"])
    page = open_page("#weight=event1&view=functions")
    choose(page, label)
    lines = phlox("export", recording, "--weight", "await", "-f", "collapsed", "--endpoint", f"^{re.escape(label)}$").stdout.splitlines()
    awaited = sum(int(line.rsplit(" ", 1)[1]) for line in lines)
    assert awaited == row["await_ns"] > 0
    assert whole(page).startswith(f"{weight_words(awaited)} of ")
    page.evaluate(CATCH_COPIES)
    functions = {line.rsplit(" ", 1)[0].split(";")[-2].split(" (")[0] for line in lines}
    assert functions <= {one["Function"].rsplit(".", 1)[-1] for one in table_rows(page)} | {one["Function"] for one in table_rows(page)}


def test_a_page_without_endpoints_offers_none(open_picture, tmp_path):
    path = tmp_path / "none.phlox"
    synthetic.write(path, samples=300, threads=2, stacks=30, depth=8, seed=4)
    page = settled(open_picture(export(path, tmp_path / "none.html")))
    page.get_by_role("button", name="Filter…").click()
    page.get_by_role("menuitem").first.wait_for()
    assert page.get_by_role("menuitem", name="endpoint").count() == 0


def test_a_page_of_a_difference_has_the_endpoints_of_both(open_picture, recording, endpoints, tmp_path):
    phlox("diff", recording, recording, "-o", tmp_path / "d.html")
    label, row = max(endpoints, key=lambda one: one[1]["total"]["weight"])
    page = settled(open_picture(tmp_path / "d.html", "#show=everything&view=functions"))
    choose(page, label)
    assert whole(page).startswith(f"{weight_words(2 * row['total']['weight'])} of ")
