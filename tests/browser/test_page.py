"""The page in a real browser, opened from disk: what it shows is what phlox and SQL say of the same recording."""
import re
import sqlite3

import pytest

from pages import CATCH_COPIES, chips, export, hot_function, parts, phlox, range_words, report, settled, share_words, synthetic, table_rows, weight_words, whole
from pictures import fragment


def hover(page, row, fraction):
    """Moves to the frame in this row of the flame graph; its name, and where it was."""
    box = page.locator(".flame canvas").bounding_box()
    x, y = box["x"] + box["width"] * fraction, box["y"] + row * 18 + 9
    page.mouse.move(x, y)
    return page.locator(".tip .name").inner_text(), x, y


def zoom_to(page, name):
    """By the keyboard: the first frame of that name."""
    page.keyboard.press("/")
    page.keyboard.type(f"^{re.escape(name)}$")
    settled(page)
    page.keyboard.press("Enter")
    assert page.locator(".tip .name").inner_text() == name
    page.locator(".flame .scroller").focus()
    page.keyboard.press("Enter")
    settled(page)
    page.locator("input").fill("")
    settled(page)


# ---- numbers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", ["wall", "cpu", "samples"])
def test_functions_are_those_of_the_report(open_page, recording, weight):
    page = open_page(f"#view=functions&functions.native=1&weight={weight}")
    page.evaluate(CATCH_COPIES)
    told = report(recording, "--weight", weight)
    rows = table_rows(page)
    # The report distinguishes functions of one short name by their arguments, the page by file and line.
    shown = {(row["Function"], row["Place"]): row for row in rows}
    assert len(shown) == len(rows) == told["seen"]["functions"]
    words = weight_words if weight != "samples" else lambda count: f"{count:,} sample{'' if count == 1 else 's'}"
    compared = 0
    for row in told["functions_by_total"]:
        if row["kind"] != "python":
            continue
        seen = shown[(row["name"], f"{row['file']}:{row['line']}")]
        assert (seen["Self time"], seen["Total time"]) == (words(row["self"]["weight"]), words(row["total"]["weight"]))
        assert (seen["Self"], seen["Total"]) == (share_words(row["self"]["weight"], told["total"]), share_words(row["total"]["weight"], told["total"]))
        assert seen["Samples"] == f"{row['samples']:,}" and seen["Module"] == row["module"]
        compared += 1
    assert compared > 50


@pytest.mark.parametrize("weight", ["wall", "cpu", "samples"])
@pytest.mark.parametrize("by", ["function", "line"])
def test_intervals_are_those_of_the_report(open_page, recording, weight, by):
    page = open_page(f"#view=functions&weight={weight}&by={by}")
    page.evaluate(CATCH_COPIES)
    told = report(recording, "--weight", weight)
    rows = told["functions_by_total"] if by == "function" else told["lines"]
    places = [(row["name"], f"{row['file']}:{row['line']}") for row in rows]
    shown = {(row["Function"].rsplit(":", 1)[0] if by == "line" else row["Function"], row["Place"]): row for row in table_rows(page)}
    compared = 0
    for row, place in zip(rows, places):
        if row["file"].endswith(".py") and places.count(place) == 1:
            for side in ["Self", "Total"]:
                estimate = row[side.lower()]
                assert shown[place][f"{side} 99 %"] == range_words(estimate["low"], estimate["high"]), (place, side)
            compared += 1
    assert compared > 50


def test_native_code_that_python_calls_has_rows_when_you_ask_for_them(open_page, recording):
    page = open_page("#view=functions")
    page.evaluate(CATCH_COPIES)
    told = report(recording)
    of_python = {row["Function"] for row in table_rows(page)}
    natives = {row["name"] for row in told["native_functions"]}
    assert natives and not natives & of_python and any(row["Most native time in"] for row in table_rows(page))
    page.locator("button", has_text="Python and native").click()
    assert natives <= {row["Function"] for row in table_rows(page)}


def test_functions_are_those_of_sql(open_page, recording):
    page = open_page("#view=functions&show=everything")
    page.evaluate(CATCH_COPIES)
    shown = {(row["Function"], row["Place"]): row for row in table_rows(page)}
    rows = sqlite3.connect(recording).execute(
        "SELECT qualified_name, file, first_line, wall_s, samples FROM function_total WHERE file LIKE '%.py'").fetchall()
    assert len(rows) > 50
    for name, file, line, wall, samples in rows:
        seen = shown[(name, f"{file}:{line}")]
        assert seen["Total time"] == weight_words(round(wall * 1e9)) and seen["Samples"] == f"{samples:,}"


def test_lines_are_those_of_the_report(open_page, recording):
    page = open_page("#view=functions&by=line")
    page.evaluate(CATCH_COPIES)
    shown = {row["Place"]: row for row in table_rows(page) if row["Place"].split(":")[0].endswith(".py")}
    told = [row for row in report(recording)["lines"] if row["file"].endswith(".py")]
    places = [f"{row['file']}:{row['line']}" for row in told]
    once = [(row, place) for row, place in zip(told, places) if places.count(place) == 1]
    assert len(once) > 50
    for row, place in once:
        assert shown[place]["Self time"] == weight_words(row["self"]["weight"])


def test_of_what_everything_is_the_whole(open_page, recording):
    told = report(recording)
    everything = report(recording, "--show", "everything")
    share = share_words(told["total"], everything["total"])
    assert told["total"] < everything["total"]
    page = open_page()
    assert whole(page) == (f"{weight_words(told['total'])} of {weight_words(everything['total'])}: {share} of the recording, "
                           f"{told['samples']:,} samples")
    assert page.locator(".left-out").inner_text().startswith("Not shown: ")
    page.get_by_role("button", name="Everything").click()
    assert whole(page) == f"{weight_words(everything['total'])} wall time of all threads, {everything['samples']:,} samples"
    assert page.locator(".left-out").is_hidden() and fragment(page) == "#show=everything"
    running = report(recording, "--state", "running", "--weight", "cpu")
    words = whole(open_page("#f=in.state.running&weight=cpu"))
    assert words.startswith(weight_words(running["total"])) and f"{running['samples']:,} samples" in words


# ---- the flame graph ------------------------------------------------------------------------------------------------


def test_a_frame_shows_its_share_time_and_samples_and_zooms(open_page, recording):
    page = open_page()
    name, x, y = hover(page, 1, 0.7)
    beneath = [(weight, looks) for stack, (weight, looks) in outermost(recording).items() if stack == name]
    (weight, looks), total = beneath[0], report(recording)["total"]
    tip = page.locator(".tip").inner_text()
    for words in [share_words(weight, total), weight_words(weight), f"{looks:,}", ".py:", "share of what is shown"]:
        assert words in tip
    page.mouse.click(x, y)
    assert f"Zoomed into {name}: {share_words(weight, total)} of what is shown, {weight_words(weight)}" in settled(page).locator(".zoomed").inner_text()
    assert hover(page, 1, 0.01)[0] == hover(page, 1, 0.99)[0] == name
    assert re.fullmatch(r"#flame\.zoom=\d+(\.\d+)*", fragment(page))
    again = open_page(fragment(page))
    assert again.locator(".zoomed").inner_text() == page.locator(".zoomed").inner_text()
    page.get_by_role("button", name="Reset zoom").click()
    assert settled(page).locator(".zoomed").inner_text() == "" and fragment(page) == ""
    page.go_back()
    assert name in settled(page).locator(".zoomed").inner_text()


def outermost(recording):
    """Time and samples below each outermost function, by its name."""
    sums = {}
    for weight in ["wall", "samples"]:
        for line in phlox("export", recording, "-f", "collapsed", "--show", "work", "--weight", weight).stdout.splitlines():
            stack, value = line.rsplit(" ", 1)
            name = stack.split(";")[0].rsplit(" (", 1)[0]
            entry = sums.setdefault(name, [0, 0])
            entry[weight == "samples"] += int(value)
    return sums


def test_zoom_stays_on_its_frame_under_another_filter(open_page, recording):
    row = hot_function(recording)
    page = open_page()
    zoom_to(page, row["name"])
    unfiltered = page.locator(".zoomed").inner_text()
    assert unfiltered.startswith(f"Zoomed into {row['name']}:")
    filtered = open_page(fragment(page) + "&f=in.thread.0").locator(".zoomed").inner_text()
    assert filtered.startswith(f"Zoomed into {row['name']}:") and filtered != unfiltered


def test_the_keyboard_alone_walks_zooms_filters_and_comes_back(open_page):
    page = open_page()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    said = page.locator(".spoken").inner_text()
    name = said.rsplit(", ", 2)[0]
    assert "%" in said and page.locator(".tip .name").inner_text() == name
    page.keyboard.press("Enter")
    assert name in settled(page).locator(".zoomed").inner_text()
    page.keyboard.press("m")
    assert page.locator(".menu").is_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert chips(page) == [f"only stacks through {name}"]
    assert not page.locator(".menu").is_visible()
    page.keyboard.press("Escape")
    assert settled(page).locator(".zoomed").inner_text() == ""
    page.keyboard.press("?")
    assert "move from frame to frame" in page.locator(".help").inner_text()
    page.keyboard.press("2")
    assert settled(page).locator("section.functions").is_visible()


def test_the_whole_page_can_be_reached_by_tab(open_page):
    page = open_page("#f=in.thread.0")
    reached = set()
    for _ in range(50):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.textContent"))
    assert {"Search", "CPU time", "Lines", "Functions"} <= reached and any(text.startswith("Take back:") for text in reached)
    assert any(text.startswith("Flame graph.") for text in reached)


# ---- filters --------------------------------------------------------------------------------------------------------


def test_filters_from_the_menu_are_a_trail_that_is_taken_back_in_any_order(open_page, recording):
    page = open_page("#view=functions&functions.sort=-total")
    row = hot_function(recording)
    everything = whole(page)
    name = page.locator(".rows .cell.name", has_text=row["name"]).first
    name.click(button="right")
    page.get_by_role("menuitem", name=f"Only stacks through {row['name']}").click()
    assert whole(page).startswith(f"{weight_words(row['total']['weight'])} of ")
    through = whole(page)
    name.click(button="right")
    page.get_by_role("menuitem", name="Without stacks through module").click()
    assert len(chips(page)) == 2 and whole(page) != through
    page.locator(".chips .chip").first.get_by_role("button").click()
    assert len(chips(page)) == 1 and chips(page)[0].startswith("without stacks through module")
    page.go_back()
    assert len(chips(page)) == 2
    page.go_back()
    assert whole(page) == through
    page.go_forward()
    page.get_by_role("button", name="Take all back").click()
    assert whole(page) == everything


def test_a_function_and_its_opposite_are_everything(open_page, recording):
    row = hot_function(recording)
    page = open_page("#view=functions&functions.sort=-total")
    page.locator(".rows .cell.name", has_text=row["name"]).first.click(button="right")
    page.get_by_role("menuitem", name=f"Without stacks through {row['name']}").click()
    everything, total = report(recording, "--show", "everything")["total"], report(recording)["total"]
    assert whole(page).startswith(f"{weight_words(total - row['total']['weight'])} of {weight_words(everything)}")


def test_search_counts_nested_hits_once_and_lights_rows(open_page, recording):
    page = open_page("#view=functions&show=everything")
    page.locator("input").fill("file:^/srv/app/")
    words = settled(page).locator(".found").inner_text()
    (expected,) = sqlite3.connect(recording).execute(
        """WITH RECURSIVE up (leaf, stack) AS (SELECT DISTINCT stack, stack FROM sample WHERE stack IS NOT NULL UNION ALL
             SELECT leaf, parent FROM up JOIN stack ON stack.id = up.stack WHERE parent IS NOT NULL),
           hit AS (SELECT DISTINCT leaf FROM up JOIN stack ON stack.id = up.stack JOIN frame ON frame.id = stack.frame
                   WHERE file LIKE '/srv/app/%')
           SELECT sum(wall_ns) FROM sample WHERE stack IN (SELECT leaf FROM hit)""").fetchone()
    assert f"Matched {share_words(expected, report(recording, '--show', 'everything')['total'])}, {weight_words(expected)}, in " in words
    page.locator("input").fill("(")
    assert settled(page).locator(".found").inner_text() == "Not a regular expression"
    page.locator("input").fill("^Order")
    assert settled(page).locator(".rows .row.hit").count() > 0
    assert all(name.startswith("Order") for name in page.locator(".rows .row.hit .name").all_inner_texts())


def test_sorting_is_kept_in_the_address(open_page):
    page = open_page("#view=functions")
    page.evaluate(CATCH_COPIES)
    page.get_by_role("columnheader", name="Samples").get_by_role("button").click()
    counts = [int(row["Samples"].replace(",", "")) for row in table_rows(page)]
    assert counts == sorted(counts, reverse=True) and "functions.sort=-samples" in fragment(page)
    again = open_page(fragment(page))
    again.evaluate(CATCH_COPIES)
    assert [int(row["Samples"].replace(",", "")) for row in table_rows(again)] == counts


# ---- the page itself ------------------------------------------------------------------------------------------------


def test_the_policy_forbids_every_request_and_every_other_script(browser, page_file):
    _, metas = parts(page_file)
    assert "default-src 'none'" in metas["Content-Security-Policy"]
    context = browser.new_context()
    page = context.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"file://{page_file}")
    settled(page)
    assert [url for url in asked if not url.startswith(("file:", "blob:", "data:"))] == []
    refused = page.evaluate("""async () => {
      const refused = [];
      addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
      await fetch("http://127.0.0.1:9/").catch(() => {});
      const image = new Image(); image.src = "http://127.0.0.1:9/i.png";
      const script = document.createElement("script"); script.textContent = "window.owned = 1"; document.body.append(script);
      await new Promise((done) => setTimeout(done, 300));
      return [refused, window.owned];
    }""")
    context.close()
    assert {"connect-src", "img-src", "script-src-elem"} <= set(refused[0]) and refused[1] is None


def test_the_model_runs_in_a_worker_from_disk_or_on_the_page_if_that_is_refused(browser, page_file):
    words = []
    for refuse in [False, True]:
        context = browser.new_context()
        if refuse:
            context.add_init_script("window.Worker = function () { throw new Error('refused') }")
        page = context.new_page()
        page.goto(f"file://{page_file}#f=in.thread.0")
        words.append(whole(page))
        assert len(page.workers) == (0 if refuse else 1)
        context.close()
    assert words[0] == words[1]


HOSTILE = ["<script>document.title='owned'</script>", "</script><script>document.title='owned'</script>", "<!-- &amp; \" '", "\u202egnp.exe",
           "</title><img src=x onerror=document.title='owned'>", "tab\tand\nline", "x" * 5000, "👩‍💻", "__proto__", "constructor"]


def test_hostile_names_are_only_names(open_page, tmp_path):
    path = tmp_path / "hostile.phlox"
    synthetic.write(path, samples=300, threads=3, stacks=60, depth=5)
    db = sqlite3.connect(path)
    used = db.execute("""SELECT DISTINCT frame.id FROM sample JOIN stack ON stack.id = sample.stack JOIN frame ON frame.id = stack.frame
                         WHERE kind = 0 ORDER BY frame.id""").fetchall()
    assert len(used) >= len(HOSTILE)
    for (frame,), name in zip(used, HOSTILE):
        db.execute("UPDATE frame SET function = ?, qualified_name = ?, file = ? WHERE id = ?", (name, name, name, frame))
    db.execute("UPDATE thread SET name = ?", (HOSTILE[1],))
    db.execute("UPDATE process SET command_line = ?", (HOSTILE[4],))
    db.execute("INSERT INTO meta VALUES (?, ?)", (HOSTILE[1], HOSTILE[1]))
    db.commit()
    page = open_page("#view=functions&f=in.thread.0,1,2", file=export(path, tmp_path / "hostile.html"))
    assert page.title().startswith("</title><img src=x") and page.locator("img").count() == 0
    page.evaluate(CATCH_COPIES)
    shown = {row["Function"] for row in table_rows(page)}
    assert {HOSTILE[0], HOSTILE[1], "\\u202egnp.exe", "__proto__", "constructor"} <= shown
    assert HOSTILE[1] in chips(page)[0]
    page.locator("input").fill("__proto__")
    assert "in 1 function" in settled(page).locator(".found").inner_text()


def test_an_empty_recording_is_a_page_too(open_page, tmp_path):
    path = tmp_path / "empty.phlox"
    synthetic.write(path, samples=10, threads=2, stacks=20, depth=3)
    db = sqlite3.connect(path)
    db.execute("DELETE FROM sample")
    db.commit()
    page = open_page(file=export(path, tmp_path / "empty.html"))
    assert whole(page).startswith("0 s")
    page.keyboard.press("2")
    assert settled(page).locator(".rows .row").count() == 0


def test_a_merged_page_says_what_and_how_much(open_page, recording, page_file, tmp_path):
    merged = export(recording, tmp_path / "merged.html", "--max-page-size", str(page_file.stat().st_size * 0.93 / 1e6))
    page = open_page(file=merged)
    words = page.locator(".merged").inner_text()
    assert "the order is lost" in words and "4,000 intervals became" in words
    assert whole(page) == whole(open_page())


def test_dark_and_narrow(open_page):
    light, dark = open_page(), open_page(dark=True, width=480)
    paper = "getComputedStyle(document.body).backgroundColor"
    assert light.evaluate(paper) != dark.evaluate(paper)
    assert dark.evaluate("document.documentElement.scrollWidth") <= 480
    pixel = "(() => { const c = document.querySelector('canvas'); return [...c.getContext('2d').getImageData(5, 5, 1, 1).data].join() })()"
    assert light.evaluate(pixel) != dark.evaluate(pixel)


def test_a_narrow_window_scrolls_and_has_room_for_the_view(open_page):
    page = open_page(width=480, height=800)
    assert page.locator(".flame canvas").evaluate("canvas => canvas.clientHeight") > 300
    page.locator(".flame canvas").scroll_into_view_if_needed()
    assert page.locator(".flame canvas").bounding_box()["y"] < 500


def test_a_tooltip_disappears_with_its_view(open_page):
    page = settled(open_page())
    for key in ["ArrowDown", "ArrowDown"]:
        page.keyboard.press(key)
    assert page.locator(".tip").is_visible()
    page.keyboard.press("2")
    assert not settled(page).locator(".tip").is_visible()


# What they go on with may come later: what a frame waited for is asked when it is pointed at.
SLOW_ANSWERS = """() => {
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (...all) { setTimeout(() => post.apply(this, all), 300); };
}"""


@pytest.mark.parametrize("view", ["flame", "chart"])
def test_words_that_come_late_stay_away_from_another_view(open_page, view):
    page = settled(open_page(f"#view={view}"))
    page.evaluate(SLOW_ANSWERS)
    page.locator(".flames, .chart .lanes").focus()
    for key in ["ArrowDown", "ArrowDown"]:
        page.keyboard.press(key)
    assert page.locator(".tip").is_visible()
    page.keyboard.press("2")
    assert not settled(page).locator(".tip").is_visible()


def test_late_text_of_a_moment_is_not_shown_after_leaving_the_timeline(open_page):
    page = settled(open_page())
    page.evaluate(SLOW_ANSWERS)
    page.keyboard.press("e")
    for key in ["ArrowDown", "ArrowDown", "ArrowRight", "Tab"]:
        page.keyboard.press(key)
    assert not settled(page).locator(".tip").is_visible()


def test_lines_are_found_from_the_table(open_page):
    page = settled(open_page("#view=functions"))
    page.locator("section.functions").get_by_role("button", name="Lines").click()
    settled(page)
    assert "by=line" in fragment(page)
    assert page.locator(".rows .cell.name").first.inner_text().rsplit(":", 1)[-1].isdigit()


def test_a_canvas_is_never_larger_than_the_window(open_page):
    page = open_page(height=500)
    size = page.evaluate("[...document.querySelectorAll('canvas')].map(c => [c.width, c.height])")
    assert all(width <= 1200 and height <= 500 for width, height in size)
    # The deepest stack is below the window: it is scrolled to.
    page.evaluate("document.querySelector('.scroller').scrollTop = 1e6")
    assert page.evaluate("document.querySelector('.scroller').scrollTop") > 500
