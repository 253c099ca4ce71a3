"""What differs, in the page: of two recordings the numbers of `phlox diff`, of two parts of one those of its reports."""
import json
import re
import sqlite3

import pytest

from pages import CATCH_COPIES, export, percent_digits, phlox, report, settled, share_words, synthetic, table_rows, weight_words
from pictures import fragment


def points_words(change):
    """As web/src/words.ts has it."""
    points = change * 100
    return "±0 points" if abs(points) < 0.005 else f"{'+' if points > 0 else '−'}{percent_digits(abs(points))} points"


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Before, after, and their page: much is the same, something new, something gone, and paths and lines are others."""
    folder = tmp_path_factory.mktemp("pair")
    paths = []
    for name, seed in [("before", 3), ("after", 4)]:
        path = folder / f"{name}.phlox"
        synthetic.write(path, samples=3000, threads=6, stacks=300, depth=30, seed=seed)
        paths.append(path)
    db = sqlite3.connect(paths[1])
    db.execute("UPDATE frame SET first_line = first_line + 7, line = line + 7, file = replace(file, '/srv/app/', '/srv/release-2/') WHERE first_line > 0")
    db.commit()
    page = folder / "diff.html"
    done = phlox("diff", *paths, "-o", page)
    assert "wrote" in done.stderr
    return *paths, page


def told(before, after, *choices):
    return json.loads(phlox("diff", "--json", "--top", 1000000, *choices, before, after).stdout)


def amount_words(value, per, weight):
    """As web/src/views/difference.ts has it."""
    size = abs(value)
    words = (f"{size:,.0f} sample{'' if round(size) == 1 else 's'}" if weight == "samples" else weight_words(size * (1e9 if per == "second" else 1)))
    return ("+" if value > 0 else "−" if value < 0 else "") + words + ("/s" if per == "second" else "")


@pytest.mark.parametrize("weight", ["wall", "samples"])
@pytest.mark.parametrize("by", ["functions", "lines"])
@pytest.mark.parametrize("part", ["total", "self"])
def test_two_recordings_differ_as_phlox_diff_says(open_page, pair, weight, by, part):
    before, after, file = pair
    page = open_page(f"#weight={weight}&by={by[:-1]}&difference.part={part}", file=file)
    page.evaluate(CATCH_COPIES)
    rows = table_rows(page)
    expected = told(before, after, "--weight", weight)
    assert expected["before"]["total"] > 0
    places = [(row["name"], row["file"], row["line"]) for row in expected[by]]
    shown = {}
    for row in rows:
        shown.setdefault((re.sub(r":\d+$", "", row["Function"]) if by == "lines" else row["Function"], row["Place"]), []).append(row)
    words = weight_words if weight != "samples" else lambda count: f"{count:,} sample{'' if count == 1 else 's'}"
    compared, verdicts = 0, set()
    for row, place in zip(expected[by], places):
        seen = shown.get((row["name"], f"{row['file']}:{row['line']}"), [])
        if not row["file"].endswith(".py") or len(seen) != 1 or sum(other[0] == place[0] and other[1] == place[1] for other in places) > 1 and by == "functions":
            continue
        change = row[part]
        if weight == "wall":  # of fractions of samples the words round differently
            assert seen[0]["Change"] == amount_words(change["difference"], expected["per"], weight), place
            assert seen[0]["99 %"] == f"{amount_words(change['low'], expected['per'], weight)} to {amount_words(change['high'], expected['per'], weight)}"
        assert (seen[0]["Before"], seen[0]["After"]) == tuple(share_words(change[side]["share"], 1) for side in ["before", "after"])
        times = [value for key, value in seen[0].items() if key == "Time"]
        assert times == [words(change["after"]["weight"])]  # of two columns of one name the last
        assert seen[0]["Verdict"] == change["verdict"], place
        verdicts.add(seen[0]["Verdict"])
        compared += 1
    assert compared > 30
    if by == "functions" and part == "total" and weight == "wall":
        assert len(verdicts & {"new", "vanished", "grew", "shrank"}) > 1 and len(verdicts & {"same", "inconclusive"}) > 0


def test_the_head_counts_what_changed(open_page, pair):
    before, after, file = pair
    expected = told(before, after)
    words = open_page(file=file).locator(".counts").inner_text()
    assert f"{expected['functions_differ']} functions differ" in words
    for side in ["before", "after"]:
        assert f"{side.capitalize()}: {weight_words(expected[side]['total'])}, {expected[side]['samples']:,} samples" in words


def test_what_may_be_chance_is_grey_and_can_be_left_out(open_page, pair):
    page = open_page(file=pair[2])
    page.evaluate(CATCH_COPIES)
    everything = table_rows(page)
    assert {row["Verdict"] for row in everything} & {"same", "inconclusive"}
    page.locator(".table").focus()
    page.keyboard.press("End")
    assert page.locator(".row.dim").count() > 0
    page.get_by_role("button", name="What changed").click()
    assert len(table_rows(page)) < len(everything)
    page.get_by_role("button", name="Vanished").click()
    assert {(row["Verdict"], row["After"]) for row in table_rows(page)} == {("vanished", "0 %")}
    assert "difference.rows=vanished" in fragment(page)


def test_both_recordings_are_in_every_view_and_either_can_be_chosen(open_page, pair):
    before, after, file = pair
    both = report(before, "--show", "everything")["total"], report(after, "--show", "everything")["total"]
    page = open_page("#view=functions&show=everything", file=file)
    assert settled(page).locator(".whole").inner_text().startswith(weight_words(sum(both)))
    page = open_page("#view=functions&show=everything&f=in.recording.1", file=file)
    assert settled(page).locator(".whole").inner_text().startswith(f"{weight_words(both[1])} of {weight_words(sum(both))}")
    assert page.locator(".chip span").inner_text() == "only after"


def tip(page, canvas, row, fraction):
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] * fraction, box["y"] + row * 18 + 9)
    return page.locator(".tip").inner_text()


def test_flame_graphs_merged_and_side_by_side_say_both_shares(open_page, pair):
    before, after, file = pair
    page = open_page("#difference.as=beside", file=file)
    canvases = page.locator(".difference canvas")
    assert canvases.count() == 2
    for i in range(2):
        words = tip(page, canvases.nth(i), 0, 0.5)
        for recording in (before, after):
            assert weight_words(report(recording)["total"]) in words
    name = tip(page, canvases.nth(1), 1, 0.9).split("\n")[0]
    page.mouse.click(*[canvases.nth(1).bounding_box()[key] + add for key, add in [("x", canvases.nth(1).bounding_box()["width"] * 0.9), ("y", 27)]])
    assert tip(settled(page), canvases.nth(1), 1, 0.5).split("\n")[0] == name
    page.keyboard.press("Home")
    page.keyboard.press("v")
    page.keyboard.press("v")
    assert settled(page).locator(".difference canvas").count() == 1 and "difference.as=merged" in fragment(page)
    page.keyboard.press("b")
    assert "difference.widths=before" in fragment(page)


def test_two_threads_and_two_times_of_one_recording_differ_as_their_reports(open_page, recording):
    threads = open_page("#view=difference&show=everything&difference.a=in.thread.0&difference.b=in.thread.1")
    threads.evaluate(CATCH_COPIES)
    db = sqlite3.connect(recording)
    names = db.execute("SELECT tid FROM thread ORDER BY id LIMIT 2").fetchall()
    compare(threads, [report(recording, "--show", "everything", "--thread", f"^{tid}$") for tid, in names])
    times = open_page("#view=difference&show=everything&difference.a=in.time.0-400000000&difference.b=in.time.400000000-900000000")
    times.evaluate(CATCH_COPIES)
    compare(times, [report(recording, "--show", "everything", "--time", span) for span in ["0ms..400ms", "400ms..900ms"]])


def compare(page, reports):
    rows = {(row["Function"], row["Place"]): row for row in table_rows(page)}
    for side, told in zip(["First", "Second"], reports):
        compared = 0
        for row in told["functions_by_total"]:
            if row["file"].endswith(".py"):
                assert rows[row["name"], f"{row['file']}:{row['line']}"][side] == share_words(row["total"]["weight"], told["total"])
                compared += 1
        assert compared > 20


def test_sides_are_chosen_in_the_page_and_kept_in_the_address(open_page):
    page = open_page("#view=difference")
    page.get_by_role("button", name="Threads", exact=True).click()
    settled(page)
    page.get_by_label("Second").select_option("3")
    assert settled(page) and "difference.b=in.thread.3" in fragment(page)
    page.get_by_role("button", name="Swap").click()
    assert "difference.a=in.thread.3" in fragment(settled(page))
    page.get_by_role("button", name="Times").click()
    settled(page)
    page.get_by_label("First, to second").fill("0.25")
    page.keyboard.press("Tab")
    assert "difference.a=in.time." in fragment(settled(page)) and "-250000000" in fragment(page)


def test_a_difference_is_narrow_and_dark(open_page, pair):
    page = open_page("#difference.as=beside", file=pair[2], dark=True, width=480)
    assert page.evaluate("document.documentElement.scrollWidth") <= 480
