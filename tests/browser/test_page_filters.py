"""Filters that are set without pointing at a frame, and what frames are coloured by."""
import itertools
import re

import pytest

from pages import add_fork, chips, export, report, settled, weight_words, whole
from pictures import fragment


def test_states_threads_and_languages_are_filtered_from_one_button(open_page, recording):
    page = open_page("#show=everything")
    page.keyboard.press("f")
    page.get_by_role("menuitem", name="Only while in a state…").click()
    page.get_by_role("menuitem", name="only while running", exact=True).click()
    running = report(recording, "--show", "everything", "--state", "running")["total"]
    assert whole(page).startswith(f"{weight_words(running)} of ") and chips(page) == ["only while running"]
    page.get_by_role("button", name="Filter…").click()
    page.get_by_role("menuitem", name="Without a thread…").click()
    page.get_by_role("menuitem").nth(2).click()
    assert fragment(page) == "#show=everything&f=in.state.running&f=out.thread.2"
    page.get_by_role("button", name="Filter…").click()
    page.get_by_role("menuitem", name="Only time spent in a language…").click()
    page.get_by_role("menuitem", name="only time spent in Python").click()
    three = whole(page)
    page.locator(".chips .chip").first.get_by_role("button").click()
    assert len(chips(page)) == 2 and whole(page) != three


def test_a_switch_puts_back_what_forked_children_inherited(open_page, open_picture, recording, tmp_path):
    switch = 'css=[aria-label="Frames that forked children inherited"]'
    assert not settled(open_page()).locator(switch).is_visible()
    path = tmp_path / "forked.phlox"
    path.write_bytes(recording.read_bytes())
    add_fork(path)
    page = settled(open_picture(export(path, tmp_path / "forked.html")))
    page.get_by_role("button", name="From the fork on").and_(page.locator('[aria-pressed="true"]')).wait_for()
    page.get_by_role("button", name="Lines", exact=True).first.click()
    with page.expect_event("load"):
        page.get_by_role("button", name="With inherited frames").click()
    page.get_by_role("button", name="With inherited frames").and_(page.locator('[aria-pressed="true"]')).wait_for()
    assert fragment(settled(page)) == "#by=line&inherited=shown"
    with page.expect_event("load"):
        page.go_back()
    page.get_by_role("button", name="From the fork on").and_(page.locator('[aria-pressed="true"]')).wait_for()


def pixel(page, y):
    return page.evaluate(f"[...document.querySelector('.flame canvas').getContext('2d').getImageData(1150, {y}, 1, 1).data].join()")


def test_colours_are_chosen_explained_and_kept_in_the_address(open_page):
    page = open_page()
    before = pixel(page, 22)
    page.get_by_role("button", name="Language", exact=True).click()
    settled(page)
    assert pixel(page, 22) != before and fragment(page) == "#colour.by=language"
    assert {"Python", "C++"} <= set(page.locator(".flame .legend span").all_inner_texts())
    page.get_by_role("button", name="Self time", exact=True).click()
    assert "the hottest" in settled(page).locator(".flame .legend").inner_text()
    assert open_page("#colour.by=heat").locator(".flame .legend").inner_text() == page.locator(".flame .legend").inner_text()


def linear(text):
    values = [int(text[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    return [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values]


def contrast(a, b):
    one, other = sorted(0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in (linear(a), linear(b)))
    return (other + 0.05) / (one + 0.05)


# Machado, Oliveira and Fernandes 2009, of the full defect.
SIGHT = {
    "all cones": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}


def oklab(rgb):
    long = 0.4122214708 * rgb[0] + 0.5363325363 * rgb[1] + 0.0514459929 * rgb[2]
    medium = 0.2119034982 * rgb[0] + 0.6806995451 * rgb[1] + 0.1073969566 * rgb[2]
    short = 0.0883024619 * rgb[0] + 0.2817188376 * rgb[1] + 0.6299787005 * rgb[2]
    a, b, c = (max(0, value) ** (1 / 3) for value in (long, medium, short))
    return (0.2104542553 * a + 0.793617785 * b - 0.0040720468 * c, 1.9779984951 * a - 2.428592205 * b + 0.4505937099 * c,
            0.0259040371 * a + 0.7827717662 * b - 0.808675766 * c)


def distance(one, other):
    return sum((a - b) ** 2 for a, b in zip(one, other)) ** 0.5


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("family", ["lang", "heat"])
def test_fills_are_readable_and_distinct_without_red_or_green(open_page, dark, family):
    page = open_page(dark=dark)
    names = ["python", "cython", "c", "cpp", "rust", "fortran", "native", "kernel", "other"] if family == "lang" else list("0123456")[:6]
    variable = lambda name: page.evaluate(f"getComputedStyle(document.body).getPropertyValue('{name}').trim()")
    fills = {name: variable(f"--{family}-{name}") for name in names}
    assert all(re.fullmatch("#[0-9a-f]{6}", fill) for fill in fills.values())
    ink = variable("--ink")
    assert min(contrast(fill, ink) for fill in fills.values()) >= 4.5
    least = 0.05 if family == "lang" else 0.02  # heat is an order: neighbours are alike
    for matrix in SIGHT.values():
        seen = {name: oklab([sum(m * v for m, v in zip(row, linear(fill))) for row in matrix]) for name, fill in fills.items()}
        for one, other in itertools.combinations(seen, 2):
            assert distance(seen[one], seen[other]) >= least, (one, other)


# Fills of changes: what grew, what shrank, what may be chance.
CHANGES = """() => Object.fromEntries(['d0', ...[1, 2, 3, 4, 5].flatMap((step) => ['r' + step, 'b' + step])].map((name) => {
    const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg'), rect = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
    rect.setAttribute('class', name);
    svg.append(rect);
    document.body.append(svg);
    const fill = getComputedStyle(rect).fill.match(/\\d+/g).map((part) => Number(part).toString(16).padStart(2, '0')).join('');
    svg.remove();
    return [name, '#' + fill];
}))"""


@pytest.mark.parametrize("dark", [False, True])
def test_growth_and_decrease_are_distinct_without_red_or_green(open_page, dark):
    page = open_page(dark=dark)
    fills = page.evaluate(CHANGES)
    ink = page.evaluate("getComputedStyle(document.body).getPropertyValue('--ink').trim()")
    assert len(set(fills.values())) == 11 and min(contrast(fill, ink) for fill in fills.values()) >= 4.5
    for matrix in SIGHT.values():
        seen = {name: oklab([sum(m * v for m, v in zip(row, linear(fill))) for row in matrix]) for name, fill in fills.items()}
        for step in range(1, 6):
            assert distance(seen[f"r{step}"], seen[f"b{step}"]) >= 0.04, step
            assert min(distance(seen[f"{side}{step}"], seen["d0"]) for side in "rb") >= 0.03, step
