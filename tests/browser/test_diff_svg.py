"""The differential flame graph in a real browser."""
import re

import pytest

from pictures import Picture, box, boxes, names, tip


def release():
    """parse got faster, render is new, legacy vanished, wait stayed (almost) as it was."""
    picture = Picture(title="before → after")
    picture.stack(5000, "main", "parse", samples=5000)
    picture.stack(3000, "main", "legacy", "old", samples=3000)
    picture.stack(2000, "main", "wait", samples=2000)
    picture.lines.append("before")
    picture.stack(1000, "main", "parse", samples=1000)
    picture.stack(5870, "main", "render", samples=5870)
    picture.stack(1900, "main", "wait", samples=1900)
    return picture


def fills(page):
    return {entry["text"]: entry["fill"] for entry in boxes(page)}


@pytest.mark.parametrize("script", [True, False])
def test_red_grew_blue_shrank_grey_may_be_chance(open_picture, tmp_path, script):
    if script:
        found = fills(open_picture(release()))
    else:
        text = release().write(tmp_path / "diff.svg").read_text()
        found = {name: fill for fill, name in re.findall(r'<rect class="(\w+)"[^>]*/><text[^>]*>(\w+)</text>', text)}
    assert found["render"] == "r5"
    assert found["parse"].startswith("b")
    # A larger share of a shorter run is no growth; all of main took less.
    assert found["wait"] == "d0" and found["main"].startswith("b") and found["all"] == "m"


def test_vanished_frames_are_named_and_shown_by_the_widths_of_before(open_picture):
    page = open_picture(release())
    assert "legacy" not in names(page)
    assert "Vanished since: 2 frames (30.0 % of before)" in page.locator(".left-out").inner_text()
    page.locator("button.widths").click()
    widths = {entry["text"]: entry["width"] + 0.5 for entry in boxes(page)}
    assert widths["legacy"] == pytest.approx(1180 * 0.3, abs=0.1) and "render" not in widths
    assert fills(page)["legacy"].startswith("b")
    assert page.evaluate("location.hash") == "#widths=before"
    page.keyboard.press("w")
    assert "render" in names(page)


def test_hover_shows_both_recordings(open_picture):
    page = open_picture(release())
    box(page, "parse").hover()
    words = re.sub(r"\s+", " ", tip(page))
    assert "before after" in words
    assert "share of all 50.0 % 11.4 %" in words
    assert "samples 5,000 1,000" in words
    assert "change −38.6 points" in words
    box(page, "wait").hover()
    assert "not seen to differ" in tip(page)


def test_search_measures_the_widths_that_are_shown(open_picture):
    page = open_picture(release(), "#search=parse")
    assert "11.4 %" in page.locator(".found").inner_text()
    page.keyboard.press("w")
    assert "50.0 %" in page.locator(".found").inner_text()


def test_frame_without_a_place_in_these_widths_is_not_zoomed_into_nothing(open_picture):
    page = open_picture(release(), "#widths=before")
    box(page, "legacy").click()
    page.keyboard.press("w")
    assert "render" in names(page)
