"""The flame chart in a real browser: at every moment the stack that SQL finds there."""
import re
import sqlite3

import pytest

from pages import chips, report, settled, synthetic, weight_words
from pictures import fragment

TOP, ROW = 9, 17  # as web/src/views/flame_chart.ts has them


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("chart") / "app.phlox"
    synthetic.write(path, samples=5000, threads=12, stacks=900, depth=60, seed=11)
    return path


@pytest.fixture
def open_page(open_page):
    return lambda fragment="", **how: open_page(f"#view=chart{fragment}", **how)


def rows(recording, thread):
    """(start, wall, functions outermost first) of a thread's stretches that are proved and long enough to be pointed at."""
    db = sqlite3.connect(recording)
    first = db.execute("SELECT time_ns - 5000000000123 FROM event WHERE kind = 0").fetchone()[0]
    found = db.execute("""SELECT start_us * 1000, wall_ns, stack FROM sample JOIN state ON state.id = sample.state
                          WHERE thread = ? AND quality = 0 AND stack IS NOT NULL AND wall_ns > 300000 AND cpu = 1 ORDER BY start_us""", (thread,)).fetchall()
    return [(start - first, wall, stack_of(db, stack)) for start, wall, stack in found]


def stack_of(db, leaf):
    return [name for (name,) in db.execute("""WITH RECURSIVE up (id, depth) AS (SELECT ?, 0 UNION ALL SELECT parent, depth + 1 FROM up JOIN stack USING (id) WHERE parent IS NOT NULL)
        SELECT qualified_name FROM up JOIN stack ON stack.id = up.id JOIN frame ON frame.id = stack.frame ORDER BY depth DESC""", (leaf,))]


def plot(page):
    box = page.locator(".chart .lanes canvas").bounding_box()
    gutter = round(max(90, min(250, box["width"] * 0.24)))
    return box["x"] + gutter, box["width"] - gutter, box["y"]


def busiest(recording):
    return report(recording, "--show", "work")["threads"][0]


def test_a_moment_has_the_stack_of_its_sample(open_page, recording):
    thread = busiest(recording)
    for start, wall, stack in [row for row in rows(recording, thread["tid"] - 1000) if 3 <= len(row[2]) < 20][10:90:30]:
        page = open_page(f"&chart.threads=1&timeline.zoom={start}-{start + wall}")
        left, width, top = plot(page)
        for depth in (0, len(stack) // 2, len(stack) - 1):
            page.mouse.move(left + width / 2, top + TOP + ROW * depth + ROW / 2)
            assert page.locator(".tip .name").inner_text() == stack[depth]
            assert f"thread\t{thread['name'].removeprefix('Thread ').split(' (')[0]}" in page.locator(".tip").inner_text()
        innermost = page.locator(".tip").inner_text()
        assert f"for\t{weight_words(wall)}" in innermost or re.search(r"for\t[\d.]+ ms", innermost)


def test_threads_are_the_busiest_or_the_one_that_is_chosen(open_page, recording):
    told = report(recording, "--show", "everything")["threads"]
    page = open_page("&chart.threads=8&show=everything")
    page.locator(".chart .lanes").focus()
    heard = [said(page, "ArrowDown")]
    while len(heard) < 400 and (again := said(page, "ArrowDown")) != heard[-1]:
        heard.append(again)
    names = list(dict.fromkeys(line.rsplit(", thread ", 1)[1] for line in heard))
    assert len(names) >= 4
    for name, thread in zip(names, told):
        assert thread["name"].removeprefix("Thread ").split(" (")[0] == name.split(" (")[0]
    assert f"The 8 busiest of {len(told)} threads" in page.locator(".chart .notes").inner_text()
    assert chips(open_page("&f=in.thread.3"))[0].startswith("only thread")


def said(page, key):
    page.keyboard.press(key)
    return settled(page).locator(".spoken").inner_text()


def test_it_is_aligned_with_the_timeline_and_a_click_is_a_zoom_of_both(open_page):
    page = open_page("&chart.threads=1")
    timeline = page.locator(".timeline .lanes canvas").bounding_box()
    chart = page.locator(".chart .lanes canvas").bounding_box()
    assert (timeline["x"], timeline["width"]) == (chart["x"], chart["width"])
    left, width, top = plot(page)
    page.mouse.move(left + width * 0.4, top + TOP + ROW / 2)
    name = page.locator(".tip .name").inner_text()
    page.mouse.click(left + width * 0.4, top + TOP + ROW / 2)
    settled(page)
    start, end = map(int, re.search(r"timeline\.zoom=(-?\d+)-(-?\d+)", fragment(page)).groups())
    assert end > start
    page.mouse.move(left + width * 0.5, top + TOP + ROW / 2)
    assert page.locator(".tip .name").inner_text() == name
    # A drag pans, and is one step.
    page.mouse.down()
    page.mouse.move(left + width * 0.4, top + TOP + 9)
    page.mouse.move(left + width * 0.3, top + TOP + 9)
    page.mouse.up()
    page.wait_for_timeout(450)
    moved = tuple(map(int, re.search(r"timeline\.zoom=(-?\d+)-(-?\d+)", fragment(page)).groups()))
    assert abs(moved[0] - start - 0.2 * (end - start)) < 0.02 * (end - start) and abs(moved[1] - moved[0] - (end - start)) <= 2
    page.go_back()
    assert f"{start}-{end}" in fragment(settled(page))
    page.locator(".chart .lanes").focus()
    page.keyboard.press("Home")
    assert "zoom" not in fragment(settled(page))


def test_the_menu_keeps_the_time_of_a_frame(open_page):
    page = open_page("&chart.threads=1")
    page.locator(".chart .lanes").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("m")
    page.get_by_role("menuitem", name="Only this time").click()
    assert len(chips(page)) == 1 and re.search(r"f=in\.time\.\d+-\d+", fragment(page))


def test_what_a_search_finds_is_lit_and_walked_in_the_order_of_time(open_page, recording):
    thread = busiest(recording)
    name = rows(recording, thread["tid"] - 1000)[20][2][-1]
    page = open_page(f"&chart.threads=1&search=^{re.escape(name)}$")
    times = []
    for _ in range(3):
        words = said(page, "n")
        assert words.startswith(name)
        times.append(words)
    assert said(page, "N") == times[1]


def test_dark_and_narrow(open_page):
    page = open_page(dark=True, width=480)
    assert page.evaluate("document.documentElement.scrollWidth") <= 480
    assert page.evaluate("[...document.querySelectorAll('canvas')].every((c) => c.width <= 480 && c.height <= 800)")
