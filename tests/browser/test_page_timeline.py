"""The timeline in a real browser: rows, numbers and moments are those of phlox and SQL over the same recording."""
import re
import sqlite3

import pytest

from pages import chips, export, report, settled, share_words, synthetic, weight_words, whole
from pictures import fragment

HEAD, ROW = 66, 20  # as web/src/views/timeline_picture.ts has them


def sql(recording, query, *arguments):
    return sqlite3.connect(recording).execute(query, arguments).fetchall()


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("timeline") / "app.phlox"
    synthetic.write(path, samples=6000, threads=40, stacks=900, depth=60, seed=7)
    db = sqlite3.connect(path)
    (start,) = db.execute("SELECT time_ns FROM event WHERE kind = 0").fetchone()
    db.executemany("INSERT INTO event (kind, time_ns, process, thread, value, text) VALUES (?, ?, ?, NULL, ?, ?)",
                   [(4, start + 400_000_000, 1, 0, "/usr/bin/python3.13"), (9, start + 900_000_000, 1, 61_500, "to stay within --max-overhead"),
                    (8, start + 1_200_000_000, None, 45_000_000, "the ring was full")])
    db.commit()
    return path


@pytest.fixture(scope="module")
def threads(recording):
    """As `report` has them: the busiest first."""
    return report(recording, "--show", "everything")["threads"]


def said(page):
    return settled(page).locator(".spoken").inner_text()


def walk(page, rows):
    """What is said of each row, from the first one."""
    page.keyboard.press("e")
    told = []
    for _ in range(rows):
        page.keyboard.press("ArrowDown")
        told.append(said(page))
    return told


def plot(page):
    """Left edge, width, and top of the rows, in pixels of the window."""
    box = page.locator(".timeline .lanes canvas").bounding_box()
    gutter = round(max(90, min(250, box["width"] * 0.24)))
    return box["x"] + gutter, box["width"] - gutter, box["y"]


def brush(page, from_share, to_share, row=1):
    left, width, top = plot(page)
    y = top + row * ROW + ROW / 2
    page.mouse.move(left + width * from_share, y)
    page.mouse.down()
    page.mouse.move(left + width * (from_share + to_share) / 2, y, steps=3)
    page.mouse.move(left + width * to_share, y)
    page.mouse.up()
    return settled(page)


def time_filter(page):
    return tuple(map(int, re.search(r"f=in\.time\.(-?\d+)-(-?\d+)", fragment(page)).groups()))


def seconds(ns):
    return f"{ns / 1e9:.9f}"


def test_of_stacks_without_times_there_is_no_timeline(open_page, tmp_path):
    (tmp_path / "stacks.txt").write_text("main;work 3\nmain;rest 2\n")
    page = open_page(file=export(tmp_path / "stacks.txt", tmp_path / "stacks.html"))
    assert page.locator(".timeline").is_hidden() and page.locator("h1").inner_text() == "A process that is not known"
    page = open_page()
    assert page.locator(".timeline").is_visible()


# ---- rows -----------------------------------------------------------------------------------------------------------


def test_rows_are_the_threads_of_the_report_by_process_and_the_busiest_is_marked(open_page, recording, threads):
    page = open_page()
    busy = [thread for thread in threads if computing(thread) >= 0.005 * thread["wall_ns"] or thread["tid"] == thread["pid"]]
    by_process = {pid: [thread for thread in busy if thread["pid"] == pid] for pid in (100, 101)}
    groups = sorted(by_process.values(), key=lambda group: -sum(thread["cpu_ns"] for thread in group))
    told = walk(page, sum(len(group) + 1 for group in groups))
    at = 0
    for group in groups:
        assert f"(pid {group[0]['pid']})" in told[at] and told[at].endswith(f"{weight_words(sum(t['cpu_ns'] for t in group))} CPU time")
        for thread in group:
            at += 1
            name = thread["name"].removeprefix("Thread ")
            assert told[at].split(",")[0] in (name, name.split(" (")[0])
            assert f"{weight_words(thread['cpu_ns'])} CPU time, {thread['samples']:,} samples" in told[at]
            assert (", busiest" in told[at]) == (thread is threads[0])
        at += 1
    busiest = page.locator(".timeline .answer").inner_text()
    assert busiest.startswith(f"Busiest thread: {threads[0]['name'].removeprefix('Thread ').split(' (')[0]}")
    assert f"{weight_words(threads[0]['cpu_ns'])} CPU time, " in busiest and " of it in " in busiest


def computing(thread):
    states = thread["states_ns"]
    return thread["wall_ns"] - (states["blocked"] - states["gil_waits"]) - states["rejected"]


def test_threads_that_never_ran_are_one_row_that_says_how_many_and_where(open_page, recording, threads):
    never = [row for row in sql(recording, """SELECT sample.thread, sum(wall_ns), sum((cpu != 3 OR gil = 3) * wall_ns) FROM sample JOIN state ON state.id = sample.state
                                              GROUP BY 1""") if row[2] < 0.005 * row[1]]
    assert len(never) >= 4
    ran = "hardly" if any(row[2] for row in never) else "never"
    page = open_page()
    words = page.locator(".timeline .answer").inner_text()
    assert f"{len(never)} threads {ran} ran: " in words and re.search(r": \d+ in \w+", words)
    before = rows_height(page)
    told = walk(page, len(threads) + 3 - len(never))
    assert told[-1].startswith(f"{len(never)} threads {ran} ran: ")
    page.keyboard.press("Enter")
    settled(page)
    assert rows_height(page) == before + len(never) * ROW and "timeline.idle=open" in fragment(page)


def rows_height(page):
    return page.evaluate("document.querySelector('.timeline .spacer').offsetHeight")


def test_a_thread_shows_the_same_states_as_the_report(open_page, threads):
    page = open_page()
    left, _, top = plot(page)
    page.mouse.move(left - 60, top + ROW * 1.5)
    tip = settled(page).locator(".tip").inner_text()
    thread = threads[0]
    states = thread["states_ns"]
    assert ", the busiest" in tip and f"CPU time\t{weight_words(thread['cpu_ns'])}" in tip and f"Samples\t{thread['samples']:,}" in tip
    for words, ns in [("Waiting for a CPU", states["runnable"]), ("Waiting for the GIL", states["gil_waits"]), ("Collecting garbage", states["collecting"])]:
        assert f"{words}\t{weight_words(ns)}\t{share_words(ns, thread['wall_ns'])}" in tip


def test_the_legend_has_every_state_and_filters_by_it(open_page, recording):
    page = open_page()
    (waiting, everything) = sql(recording, "SELECT sum((gil = 3) * wall_ns), sum(wall_ns) FROM sample JOIN state ON state.id = sample.state")[0]
    entry = page.locator(".legend button", has_text="waiting for the GIL")
    assert entry.get_attribute("title") == f"{weight_words(waiting)}, {share_words(waiting, everything)} of all threads' time"
    entry.click()
    page.get_by_role("menuitem", name="Only while waiting for the GIL").click()
    assert chips(page) == ["only while waiting for the GIL"]
    assert whole(page).startswith(weight_words(waiting))
    assert page.locator(".legend button").all_inner_texts() == ["waiting for the GIL"]


# ---- moments --------------------------------------------------------------------------------------------------------


def test_one_sample_is_found_at_its_moment_with_its_state_and_stack(open_page, recording):
    (first,) = sql(recording, "SELECT time_ns - 5000000000123 FROM event WHERE kind = 0")[0]
    rows = sql(recording, """SELECT start_us * 1000, wall_ns, qualified_name, cpu FROM sample JOIN state ON state.id = sample.state JOIN stack ON stack.id = sample.stack
                             JOIN frame ON frame.id = stack.frame WHERE thread = 1 AND kind = 0 AND cpu = 1 AND gil = 2 AND collecting = 0 AND quality = 0 AND wall_ns > 500000
                             ORDER BY start_us LIMIT 3 OFFSET 50""")
    for start, wall, name, _ in rows:
        start -= first
        page = open_page(f"#timeline.zoom={start}-{start + wall}&f=in.thread.0")
        left, width, top = plot(page)
        page.mouse.move(left + width / 2, top + ROW / 2)
        page.wait_for_selector(".tip:not([hidden]) .stack")
        tip = settled(page).locator(".tip").inner_text()
        assert f", for {weight_words(wall)}" in tip
        told = float(re.search(r"from ([\d.]+) (?:s|ms)", tip).group(1)) * (1e9 if re.search(r"from [\d.]+ s", tip) else 1e6)
        assert abs(told - start) <= wall / 10 and "State\tPython" in tip
        assert page.locator(".tip .stack li").first.inner_text().startswith(name)
        pixel = page.evaluate("""([x, y]) => { const c = document.querySelector('.timeline .lanes canvas');
          return [...c.getContext('2d').getImageData(x, y, 1, 1).data].slice(0, 3).map((v) => v.toString(16).padStart(2, '0')).join('') }""",
                              [round(left - page.locator(".timeline .lanes canvas").bounding_box()["x"] + width / 2), ROW // 2])
        assert f"#{pixel}" == page.evaluate("getComputedStyle(document.body).getPropertyValue('--python').trim()")


def test_events_have_their_text_at_their_moment(open_page):
    page = open_page()
    canvas = page.locator(".timeline .overview").bounding_box()
    left, width, _ = plot(page)
    length = float(page.evaluate("performance.now()")) and page_length(page)
    for at, words in [(0.4e9, "The process 100 becomes another program (exec): /usr/bin/python3.13"),
                      (0.9e9, "From here on 61.5 samples a second, to stay within --max-overhead"), (1.2e9, "45.0 ms without samples: the ring was full")]:
        page.mouse.move(left + width * at / length, canvas["y"] + 57)
        assert words in settled(page).locator(".tip").inner_text()


def page_length(page):
    """Of the recording in ns, as the page opens: from the address of a zoom to its second half."""
    page.keyboard.press("w")
    page.wait_for_timeout(400)
    start, end = map(int, re.search(r"timeline\.zoom=(-?\d+)-(-?\d+)", fragment(page)).groups())
    page.go_back()
    settled(page)
    return (end - start) / 0.7


def test_rows_of_cpus_are_those_that_were_run_on(open_page, recording):
    numbers = [n for (n,) in sql(recording, "SELECT DISTINCT cpu_number FROM sample JOIN state ON state.id = sample.state WHERE cpu_number >= 0 ORDER BY 1")]
    page = open_page()
    page.get_by_role("button", name="By CPU").click()
    assert rows_height(settled(page)) == len(numbers) * ROW and fragment(page) == "#timeline.rows=cpus"
    assert walk(page, 3) == [f"CPU {n}" for n in numbers[:3]]


# ---- filters --------------------------------------------------------------------------------------------------------


def test_a_drag_is_a_range_of_time_that_filters_everything(open_page, recording):
    page = brush(open_page("#show=everything"), 0.3, 0.5)
    start, end = time_filter(page)
    length = page_length(page)
    assert abs(start - 0.3 * length) < 0.005 * length and abs(end - 0.5 * length) < 0.005 * length
    told = report(recording, "--show", "everything", "--time", f"{seconds(start)}..{seconds(end)}")
    assert whole(page).startswith(f"{weight_words(told['total'])} of ") and f"{told['samples']:,} samples" in whole(page)
    assert chips(page) == [f"only {weight_words(start)} to {weight_words(end)}"]
    busiest = next(thread for thread in told["threads"] if thread["tid"] == report(recording, "--show", "everything")["threads"][0]["tid"])
    assert f"{weight_words(busiest['cpu_ns'])} CPU time" in page.locator(".timeline .answer").inner_text()
    # Another one takes its place, and an edge can be dragged.
    assert time_filter(brush(page, 0.6, 0.8)) != (start, end) and len(chips(page)) == 1
    start, end = time_filter(page)
    brush(page, 0.8, 0.9)
    assert time_filter(page)[0] == start and time_filter(page)[1] > end
    page.go_back()
    assert time_filter(settled(page)) == (start, end)
    page.get_by_role("button", name="Zoom to the range").click()
    assert "timeline.zoom=" in fragment(settled(page))


def test_a_thread_is_kept_or_left_out_from_menu_and_button(open_page, recording, threads):
    page = open_page()
    left, width, top = plot(page)
    name = threads[0]["name"].removeprefix("Thread ").split(" (")[0]
    page.mouse.click(left + width / 2, top + ROW * 1.5, button="right")
    page.get_by_role("menuitem", name=f"Without thread {name}").click()
    everything = report(recording, "--show", "everything")
    without = everything["total"] - threads[0]["wall_ns"]
    assert chips(page)[0].startswith("without thread ")
    assert "1 thread is filtered out" in page.locator(".timeline .answer").inner_text()
    page.get_by_role("button", name="Everything").click()
    assert whole(page).startswith(f"{weight_words(without)} of ")
    page.go_back()
    page.go_back()
    settled(page)
    page.mouse.click(left - 100, top + ROW * 1.5)
    page.locator(".timeline .toolbar").get_by_role("button", name=re.compile("^Only thread")).click()
    page.get_by_role("button", name="Everything").click()
    assert whole(page).startswith(f"{weight_words(threads[0]['wall_ns'])} of ") and rows_height(page) == ROW


def test_threads_that_only_wait_are_left_out_with_one_click(open_page):
    page = open_page()
    count = int(re.search(r"(\d+) threads (never|hardly) ran", page.locator(".timeline .answer").inner_text()).group(1))
    page.keyboard.press("e")
    page.keyboard.press("PageDown")
    for _ in range(60):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("m")
    page.get_by_role("menuitem", name=f"Without these {count} threads").click()
    assert f"{count} threads are filtered out" in settled(page).locator(".timeline .answer").inner_text()


def test_two_ranges_are_compared_from_the_menu(open_page):
    page = brush(open_page(), 0.1, 0.2)
    first = time_filter(page)
    choose(page, "Compare: the range is the first of two")
    assert chips(page) == [] and f"difference.a=in.time.{first[0]}-{first[1]}" in fragment(page) and "view=difference" in fragment(page)
    assert f"difference.b=in.time.{first[1]}-" in fragment(page)  # the longer rest
    second = time_filter(brush(page, 0.6, 0.8))
    choose(page, "Compare: the range is the second of two")
    assert fragment(page) == f"#view=difference&difference.a=in.time.{first[0]}-{first[1]}&difference.b=in.time.{second[0]}-{second[1]}"
    fields = settled(page).locator(".sides input").evaluate_all("fields => fields.map((field) => Number(field.value))")
    assert fields == [round(ns / 1e9, 3) for ns in (*first, *second)]


def choose(page, text):
    left, width, top = plot(page)
    page.mouse.click(left + width / 2, top + ROW * 1.5, button="right")
    page.get_by_role("menuitem", name=text).click()
    settled(page)


# ---- zoom -----------------------------------------------------------------------------------------------------------


def sight(page):
    page.wait_for_timeout(450)  # the address follows a wheel three times a second
    found = re.search(r"timeline\.zoom=(-?\d+)-(-?\d+)", fragment(settled(page)))
    return tuple(map(int, found.groups())) if found else None


def test_wheel_drag_and_keys_zoom_and_pan_and_all_of_it_can_be_taken_back(open_page):
    page = open_page()
    left, width, top = plot(page)
    page.mouse.move(left + width / 4, top + 5)
    page.keyboard.down("Control")
    for _ in range(6):
        page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    near = sight(page)
    length = near[1] - near[0]
    page.wait_for_timeout(900)
    page.keyboard.down("Shift")
    page.mouse.wheel(0, 100)
    page.keyboard.up("Shift")
    panned = sight(page)
    assert panned[0] > near[0] and panned[1] - panned[0] == length
    page.go_back()
    assert sight(page) == near  # a gesture is one step
    page.go_back()
    assert sight(page) is None
    page.keyboard.press("w")
    closer = sight(page)
    page.keyboard.press("d")
    assert sight(page)[0] > closer[0]
    page.keyboard.press("e")
    page.keyboard.press("Home")
    assert sight(page) is None
    page.keyboard.press("Escape")
    assert sight(page)[0] > closer[0]
    again = open_page(fragment(page))
    assert sight(again) == sight(page)
    # On the strip: a drag is what will be seen.
    canvas = again.locator(".timeline .overview").bounding_box()
    again.keyboard.press("e")
    again.keyboard.press("Home")
    settled(again)
    again.mouse.move(left + width * 0.5, canvas["y"] + 15)
    again.mouse.down()
    again.mouse.move(left + width * 0.6, canvas["y"] + 15, steps=3)
    again.mouse.up()
    start, end = sight(again)
    assert abs((end - start) / (end + start) * 11 - 1) < 0.05


def test_the_keyboard_alone_chooses_a_range_and_hears_a_moment(open_page):
    page = open_page()
    page.keyboard.press("e")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert re.search(r"^.+ at [\d.]+ \w+: (Python|native code|kernel|waiting|blocked|collecting)", said(page))
    for _ in range(5):
        page.keyboard.press("Shift+ArrowRight")
    assert said(page).endswith(" chosen")
    page.keyboard.press("Enter")
    start, end = time_filter(settled(page))
    assert end > start and len(chips(page)) == 1
    page.keyboard.press("m")
    page.get_by_role("menuitem", name=re.compile("^Without .* to ")).click()
    assert chips(page)[0].startswith("without ")


# ---- the page -------------------------------------------------------------------------------------------------------


def test_dark_narrow_hidden_and_no_larger_than_the_window(open_page):
    dark = open_page(dark=True, width=480)
    assert dark.evaluate("document.documentElement.scrollWidth") <= 480
    light = open_page()
    pixel = "(() => { const c = document.querySelector('.timeline .lanes canvas'); return [...c.getContext('2d').getImageData(c.width - 300, 30, 1, 1).data].join() })()"
    assert light.evaluate(pixel) != dark.evaluate(pixel)
    before = light.evaluate("document.querySelector('main').offsetHeight")
    light.get_by_role("button", name="Timeline").click()
    assert settled(light).locator(".timeline .lanes").is_hidden() and fragment(light) == "#timeline.hidden=yes"
    assert light.evaluate("document.querySelector('main').offsetHeight") > before


def test_rows_are_repainted_when_it_becomes_dark(open_page):
    rows = "document.querySelector('.timeline .lanes canvas').toDataURL()"
    dark = open_page(dark=True).evaluate(rows)
    page = open_page()
    assert page.evaluate(rows) != dark
    page.emulate_media(color_scheme="dark")
    painted = f"""async (dark) => {{
        for (const until = performance.now() + 10_000; {rows} !== dark && performance.now() < until;) await new Promise(requestAnimationFrame);
        return {rows} === dark;
    }}"""
    assert page.evaluate(painted, dark)


def test_an_empty_recording_has_a_timeline_without_rows(open_page, tmp_path):
    path = tmp_path / "empty.phlox"
    synthetic.write(path, samples=10, threads=2, stacks=20, depth=3)
    db = sqlite3.connect(path)
    db.execute("DELETE FROM sample")
    db.commit()
    page = open_page(file=export(path, tmp_path / "empty.html"))
    assert page.locator(".timeline .overview").is_visible() and rows_height(page) == 0
