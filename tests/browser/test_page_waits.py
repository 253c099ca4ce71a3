"""The view of waits, and waits in the tooltips of frames and moments, in a real browser."""
import re

import pytest

from pages import CATCH_COPIES, add_waits, chips, export, report, settled, share_words, synthetic, table_rows, weight_words


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("waits") / "app.phlox"
    synthetic.write(path, samples=3000, threads=8, stacks=300, depth=30, seed=4)
    add_waits(path)
    return path


@pytest.fixture
def waits(open_page):
    def open_(fragment="", **how):
        page = open_page(f"#view=waits{fragment}", **how)
        page.evaluate(CATCH_COPIES)
        return page

    return open_


def held(row):
    return row["Ended by"].startswith("held by ")


def test_the_table_has_the_waits_of_the_report(waits, recording):
    page = waits()
    rows = table_rows(page)
    times = [row["Time"] for row in rows]
    whole = sum(row["wall_ns"] for row in report(recording, "--show", "everything")["threads"])
    for row in report(recording)["ended_waits"][:10]:
        place = re.compile(rf"{re.escape(row['name'])} \(.*:{row['line']}\)")
        assert any(found["Time"] == weight_words(row["wall_ns"]) and found["Share"] == share_words(row["wall_ns"], whole) and found["Threads"] == str(row["threads"])
                   and row["wait_target"] in found["Waits for"] and found["Waits for"].endswith(f"({row['for']})") and place.fullmatch(found["Where"])
                   and found["Which was in"].startswith(row["ended_in"]) for found in rows), row
    assert any(held(row) for row in rows) and any(row["Waits for"] == "a CPU" for row in rows)
    assert len(times) == len(rows) > 50
    words = page.locator(".waits .status").inner_text()
    assert re.fullmatch(rf"Threads waited .* of {re.escape(weight_words(whole))}, all that the filters let pass\.( Grey: .*)?", words)


def test_it_follows_the_filters_and_not_what_is_shown_elsewhere(waits, recording):
    rows = table_rows(waits("&show=computing"))
    assert rows == table_rows(waits("&show=everything"))
    one = table_rows(waits("&f=in.thread.4"))
    assert {row["Threads"] for row in one} == {"1"} and 0 < len(one) < len(rows)
    early = waits("&f=in.time.0-1")
    assert early.locator(".waits .status").inner_text().startswith(("In nothing that", "Threads waited"))


def test_a_row_leads_to_the_stacks_and_to_the_waker(waits):
    page = waits("&f=in.state.gil-waits")
    row = page.locator(".waits .rows .row", has=page.locator(".cell.whom", has_text="held by")).first
    row.click(button="right")
    page.get_by_role("menuitem", name=re.compile("^Only thread .*, which held it$")).click()
    assert len(chips(page)) == 2 and "hread" in chips(page)[1]


def test_times_from_sampling_are_not_shown_as_exact(waits):
    assert waits().locator(".waits .notes").inner_text() == "From samples: waits between two samples are not known. Only a recording of --mode kernel knows what ended a wait."


def test_the_tooltip_of_a_frame_lists_its_wait_targets(open_page):
    page = open_page("#view=flame&show=everything")
    box = page.locator(".flames").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 9)
    page.locator(".tip .waited li").first.wait_for()
    words = settled(page).locator(".tip").inner_text()
    assert re.search(r"Waits for\n.+, [\d.]+ (s|ms)\n(.*\n)*and \d+ more, ", words)


def test_the_tooltip_of_a_moment_has_the_wait_target(open_page):
    page = open_page()
    canvas = page.locator(".timeline .lanes canvas").bounding_box()
    told = set()
    for row in range(1, 8):
        page.mouse.move(canvas["x"] + canvas["width"] / 2 + row, canvas["y"] + row * 20 + 10)
        told.update(settled(page).locator(".tip .waited b").all_inner_texts())
    assert told


def test_a_merged_page_has_no_gil_holders(waits, recording, tmp_path):
    small = export(recording, tmp_path / "small.html")
    size = small.stat().st_size
    merged = export(recording, tmp_path / "merged.html", "--max-page-size", f"{(size - 15000) / 1e6:.6f}")
    page = waits(file=merged)
    rows = [row for row in table_rows(page) if row["Waits for"] == "the GIL"]
    assert rows and all(row["Ended by"] == "" for row in rows)
    assert page.locator(".waits .notes").inner_text().endswith("Which thread held the GIL is not known: the page was merged to fit.")
