"""Callers and callees of one function in the page: the shares of `phlox report` and of the stacks through it."""
import re

import pytest

from pages import hot_function, phlox, report, settled, share_words, weight_words
from pictures import fragment


def through(recording, row):
    """Of the stacks through the function: frames outside and inside of its outermost call, and time."""
    name = f"{row['name']} ({row['file']})"
    for line in phlox("export", recording, "-f", "collapsed", "--show", "work").stdout.splitlines():
        stack, weight = line.rsplit(" ", 1)
        frames = stack.split(";")
        if name in frames:
            at = frames.index(name)
            yield frames[:at], frames[at + 1:], int(weight)


@pytest.fixture
def sandwich(open_page, recording):
    """Opened by the menu of a frame; the function's row of the report."""
    row = hot_function(recording)
    page = open_page("#view=functions&functions.sort=-total")
    page.locator(".rows .cell.name", has_text=re.compile(f"^{re.escape(row['name'])}$")).first.click(button="right")
    page.get_by_role("menuitem", name="Callers and callees of").click()
    return settled(page), row


def hover(page, side, row):
    """The tooltip of the frame in the middle of a row, counted from the chosen function."""
    box = page.locator(f".{side} canvas").bounding_box()
    y = box["y"] + (box["height"] - row * 18 - 9 if side == "callers" else row * 18 + 9)
    page.mouse.move(box["x"] + box["width"] * 0.3, y)
    return page.locator(".tip").inner_text()


def test_the_head_says_what_the_report_says(sandwich, recording):
    page, row = sandwich
    total = report(recording)["total"]
    words = page.locator(".chosen").inner_text()
    assert words.startswith(row["name"])
    for told in [f"{share_words(row['total']['weight'], total)} of what is shown, {weight_words(row['total']['weight'])};",
                 f"{weight_words(row['self']['weight'])} of it in its own code, {row['samples']:,} samples"]:
        assert told in words


@pytest.mark.parametrize("side", ["callers", "callees"])
def test_the_frame_next_to_it_has_the_time_of_the_stacks_through_both(sandwich, recording, side):
    page, row = sandwich
    assert row["name"] in hover(page, side, 0)
    told = hover(page, side, 1)
    sums = {}
    for outside, inside, weight in through(recording, row):
        frames = outside[::-1] if side == "callers" else inside
        if frames:
            sums[frames[0]] = sums.get(frames[0], 0) + weight
    name = told.split("\n")[0]
    possible = [weight for frame, weight in sums.items() if frame.rsplit(" (", 1)[0] == name]
    assert any(weight_words(weight) in told and share_words(weight, row["total"]["weight"]) in told for weight in possible)


def test_another_function_is_chosen_by_key_and_kept_in_the_address(sandwich, open_page):
    page, row = sandwich
    page.locator(".choose .table").focus()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    words = settled(page).locator(".chosen").inner_text()
    assert not words.startswith(row["name"])
    assert re.search(r"sandwich\.of=\d+", fragment(page))
    assert open_page(fragment(page)).locator(".chosen").inner_text() == words
    page.go_back()
    assert settled(page).locator(".chosen").inner_text().startswith(row["name"])


@pytest.mark.parametrize("side", ["callers", "callees"])
def test_the_keyboard_zooms_in_either_half(sandwich, recording, side):
    page, row = sandwich
    beyond = any(outside if side == "callers" else inside for outside, inside, _ in through(recording, row))
    if side == "callers":
        page.keyboard.press("o")
    outward = "ArrowUp" if side == "callers" else "ArrowDown"
    page.keyboard.press(outward)
    page.keyboard.press(outward)
    page.keyboard.press("Enter")
    assert bool(re.search(rf"sandwich\.{side}=\d+", fragment(page))) == beyond
    page.keyboard.press("Home")
    assert f"sandwich.{side}" not in fragment(page)


def test_filters_hold_here_too(sandwich):
    page, row = sandwich
    before = page.locator(".chosen").inner_text()
    page.get_by_role("button", name="Everything").click()
    assert settled(page).locator(".chosen").inner_text() != before


def test_narrow_and_dark(open_page):
    page = open_page("#view=sandwich", dark=True, width=480)
    assert page.evaluate("document.documentElement.scrollWidth") <= 480
    assert page.locator(".callees canvas").bounding_box()["width"] > 300
