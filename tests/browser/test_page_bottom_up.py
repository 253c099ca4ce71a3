"""Bottom-up in the page: every stack turned round, with the numbers of `phlox export`."""
import pytest

from pages import CATCH_COPIES, phlox, settled, share_words, table_rows, weight_words
from pictures import fragment


def stacks(recording):
    """Functions root first, and their time, as `phlox export` has them."""
    for line in phlox("export", recording, "-f", "collapsed", "--show", "work").stdout.splitlines():
        stack, weight = line.rsplit(" ", 1)
        yield stack.split(";"), int(weight)


def short(frame):
    return frame.rsplit(" (", 1)[0]


@pytest.fixture
def bottom_up(open_page):
    def open_(fragment="", **how):
        page = open_page(f"#view=bottom-up{fragment}", **how)
        page.evaluate(CATCH_COPIES)
        return page

    return open_


def test_rows_are_what_ends_in_each_function_and_beneath_it_its_callers(bottom_up, recording):
    page = bottom_up()
    selfs, callers, total = {}, {}, 0
    for frames, weight in stacks(recording):
        leaf = frames[-1]
        total += weight
        selfs[leaf] = selfs.get(leaf, 0) + weight
        if len(frames) > 1:
            callers[leaf, frames[-2]] = callers.get((leaf, frames[-2]), 0) + weight
    hottest = max((leaf for leaf in selfs if leaf.endswith(")")), key=selfs.get)
    rows = table_rows(page)
    assert rows[0]["Function, and beneath it its callers"] == short(hottest)
    assert (rows[0]["Self"], rows[0]["Time"]) == (share_words(selfs[hottest], total), weight_words(selfs[hottest]))
    before = len(rows)
    page.locator(".rows .turn").first.click()
    rows = table_rows(page)
    opened = rows[1:1 + len(rows) - before]
    expected = sorted(((weight, short(caller)) for (leaf, caller), weight in callers.items() if leaf == hottest), reverse=True)
    assert [(row["Time"], row["Of the row above"]) for row in opened] == [
        (weight_words(weight), share_words(weight, selfs[hottest])) for weight, _ in expected]
    assert {row["Function, and beneath it its callers"] for row in opened} == {name for _, name in expected}


def test_rare_paths_are_grown_when_they_are_opened(bottom_up):
    page = bottom_up()
    page.locator(".table").focus()
    page.keyboard.press("End")
    before = len(table_rows(page))
    page.locator(".table").focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")
    rows = table_rows(page)
    assert len(rows) > before
    # What came through its callers is what it has.
    assert rows[-1]["Of the row above"].endswith(" %")


def test_the_keyboard_opens_closes_and_the_address_keeps_it(bottom_up, open_page):
    page = bottom_up()
    page.keyboard.press("x")
    settled(page)
    levels = page.locator(".rows .row").evaluate_all("rows => rows.map(row => Number(row.getAttribute('aria-level')))")
    assert max(levels) > 1
    again = open_page(fragment(page))
    assert again.locator(".rows .row").evaluate_all("rows => rows.map(row => Number(row.getAttribute('aria-level')))") == levels
    page.locator(".table").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    settled(page)
    assert page.locator(".rows .row").first.get_attribute("aria-expanded") == "false"
    page.keyboard.press("ArrowRight")
    settled(page)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert page.locator(".row.current").get_attribute("aria-level") == "1"


def test_the_path_of_a_row_is_copied_outermost_first(bottom_up):
    page = bottom_up()
    page.keyboard.press("x")
    settled(page)
    row = page.locator(".rows .row[aria-level='2']").first
    caller, callee = row.locator(".name").inner_text(), page.locator(".rows .row").first.locator(".name").inner_text()
    row.locator(".name").click(button="right")
    page.get_by_role("menuitem", name="Copy this path").click()
    lines = page.evaluate("window.copied").split("\n")
    assert len(lines) == 2 and lines[0].startswith(caller.strip("▸▾")) and lines[1].startswith(callee.strip("▸▾"))
