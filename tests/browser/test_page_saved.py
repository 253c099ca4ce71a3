"""What is shown, saved from the page: the files are those of `phlox export` of the same choice, a picture is what is drawn."""
import json
import pathlib
import re
import sqlite3
import xml.etree.ElementTree as ElementTree

import pytest

from pages import phlox, settled, synthetic
from pictures import fragment

SVG = "{http://www.w3.org/2000/svg}"
REJECTED = "(rejected: could not be read)"


def save(page, item):
    """The file that an entry of the menu gives: its name and its text."""
    settled(page)
    page.get_by_role("button", name="Save…").click()
    with page.expect_download() as waited:
        page.get_by_role("menuitem", name=item).click()
    return waited.value.suggested_filename, pathlib.Path(waited.value.path()).read_text()


def choices(recording):
    (end,) = sqlite3.connect(recording).execute("SELECT max(start_us * 1000 + wall_ns) FROM sample").fetchone()
    start, stop = end // 5 + 123, end // 2 + 4567
    return [
        ("", ["--show", "work"]),
        ("show=everything&weight=cpu", ["--show", "everything", "--weight", "cpu"]),
        ("show=computing&weight=samples&by=line", ["--show", "computing", "--weight", "samples", "--by", "line"]),
        (f"show=everything&f=in.time.{start}-{stop}&f=in.process.0&f=in.state.running,gil-waits",
         ["--time", f"{start}ns..{stop}ns", "--state", "running,gil-waits", "--pid", "100"]),
    ]


@pytest.mark.parametrize("number", range(4))
def test_collapsed_stacks_are_those_of_the_export_line_by_line(open_page, recording, number):
    address, told = choices(recording)[number]
    name, text = save(open_page(f"#{address}"), "Collapsed stacks")
    expected = phlox("export", recording, "-f", "collapsed", *told).stdout
    assert len(text.splitlines()) > 20
    assert sorted(text.splitlines()) == sorted(expected.splitlines())
    assert name.endswith(".collapsed.txt") and ("cpu" in name) == ("cpu" in address) and ("by-line" in name) == ("by=line" in address)


def profiles(file):
    """(title of the thread, unit, [(stack, weight)]) of a speedscope file; a frame is all that it says."""
    frames = [tuple(frame.get(key) for key in ["name", "file", "line"]) for frame in file["shared"]["frames"]]
    for profile in file["profiles"]:
        assert sum(profile["weights"]) == profile["endValue"] and len(profile["weights"]) == len(profile["samples"])
        yield profile["name"], profile["unit"], [(tuple(frames[i] for i in stack), weight) for stack, weight in zip(profile["samples"], profile["weights"])]


@pytest.mark.parametrize("number", range(4))
def test_a_file_for_speedscope_is_that_of_the_export(open_page, recording, tmp_path, number):
    address, told = choices(recording)[number]
    name, text = save(open_page(f"#{address}"), "for speedscope")
    mine, theirs = json.loads(text), json.loads(phlox("export", recording, "-f", "speedscope", *told).stdout)
    for key in ["$schema", "name", "exporter", "activeProfileIndex"]:
        assert mine.get(key) == theirs.get(key), key
    seen = 0
    for (title, unit, stacks), (expected_title, expected_unit, expected) in zip(profiles(mine), profiles(theirs), strict=True):
        assert (title, unit, len(stacks)) == (expected_title, expected_unit, len(expected))
        for one, other in zip(stacks, expected):
            # The page does not show why a sample was rejected.
            assert one == other or (one[0] == ((REJECTED, None, None),) and one[1] == other[1])
            seen += one == other
    assert seen > 50
    # Another reader: our own importer.
    file = tmp_path / name
    file.write_text(text)
    assert name.endswith(".speedscope.json")
    assert phlox("report", "--json", "--show", "everything", file).stdout


def shapes(text):
    root = ElementTree.fromstring(text)
    assert not root.findall(f".//{SVG}image") and not root.findall(f".//{SVG}script")
    return root, ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]


def test_a_saved_flame_graph_has_the_frames_and_says_what_it_is_of(open_page, recording):
    page = open_page("#weight=cpu&search=parse")
    name, text = save(page, "Picture of the flame graph")
    root, words = shapes(text)
    assert name.endswith("-flame-graph-cpu.svg")
    whole = settled(page).locator(".whole").inner_text()
    said = " ".join(words)
    assert whole in said and "Search “parse”" in said and page.locator(".found").inner_text() in said
    assert page.locator("h1").inner_text() == words[0]
    # Every box has its name, share and time, as the page shows them for the frame under the keyboard cursor.
    titles = [node.text for node in root.iter(f"{SVG}title")]
    assert len(titles) > 200 and titles[1].startswith("all, 100.0 %, ")
    page.keyboard.press("Escape")
    page.locator(".flames").focus()
    for key in ["ArrowDown", "ArrowDown", "ArrowDown"]:
        page.keyboard.press(key)
        assert page.locator(".spoken").inner_text() in titles


def test_a_zoomed_flame_graph_is_saved_as_it_is_zoomed(open_page):
    page = settled(open_page())
    page.locator(".flames").focus()
    for key in ["ArrowDown", "ArrowDown", "ArrowDown", "Enter"]:
        page.keyboard.press(key)
    assert "flame.zoom" in fragment(settled(page))
    _, words = shapes(save(page, "Picture of the flame graph")[1])
    assert settled(page).locator(".zoomed").inner_text() in " ".join(words)



# The colours of an SVG file where `points` are, as a browser draws it.
DRAWN = """([svg, points]) => new Promise((done) => {
    const image = new Image();
    image.onload = () => {
        const canvas = document.createElement('canvas');
        [canvas.width, canvas.height] = [image.width, image.height];
        const pen = canvas.getContext('2d');
        pen.drawImage(image, 0, 0);
        done(points.map(([x, y]) => [...pen.getImageData(x, y, 1, 1).data.slice(0, 3)].join()));
    };
    image.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(svg);
})"""
# Of a canvas of the page, on paper.
SHOWN = """([selector, points]) => {
    const pen = document.querySelector(selector).getContext('2d');
    const paper = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number);
    return points.map(([x, y]) => {
        const { data } = pen.getImageData(x, y, 1, 1);
        return paper.map((under, i) => Math.round((data[i] * data[3] + under * (255 - data[3])) / 255)).join();
    });
}"""


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("view, item, selector, above", [
    ("flame", "Picture of the flame graph", ".flames canvas", 0),
    ("flame", "Picture of the timeline", ".timeline .lanes canvas", 66),
    ("chart", "Picture of the flame chart", ".chart canvas", 0),
])
def test_saved_pictures_look_as_the_page_does(open_page, browser, dark, view, item, selector, above):
    page = settled(open_page(f"#view={view}", width=1000, height=900, dark=dark))
    _, text = save(page, item)
    root, _ = shapes(text)
    wide, high = page.evaluate("(selector) => { const c = document.querySelector(selector); return [c.clientWidth, c.clientHeight]; }", selector)
    left, top, *_ = map(float, root.get("data-picture").split())
    points = [(x, y) for y in range(1, int(high) - 1, 3) for x in range(3, int(wide) - 3, 11)]
    shown = page.evaluate(SHOWN, [selector, points])
    blank = browser.new_page()
    drawn = blank.evaluate(DRAWN, [text, [(x + left, y + top + above) for x, y in points]])
    blank.close()
    near = lambda one, other: all(abs(int(a) - int(b)) <= 3 for a, b in zip(one.split(","), other.split(",")))
    alike = sum(near(one, other) for one, other in zip(shown, drawn)) / len(points)
    assert len(set(shown)) > 5 and alike > 0.9, alike  # letters' edges are drawn a little otherwise


def test_everything_is_saved_by_keys_alone(open_page):
    page = settled(open_page("#view=functions"))
    page.keyboard.press("S")
    items = page.get_by_role("menuitem").all_inner_texts()
    assert items == ["Picture of the timeline (SVG)", "Collapsed stacks, for flame graph scripts", "Threads in the order of time, for speedscope"]
    page.keyboard.press("ArrowDown")
    with page.expect_download() as waited:
        page.keyboard.press("Enter")
    assert waited.value.suggested_filename.endswith(".collapsed.txt")
    page.keyboard.press("?")
    assert "save what is shown" in page.locator(".help").inner_text()


def weights(text):
    """By stack, of names without their places."""
    sums = {}
    for line in text.splitlines():
        stack, weight = line.rsplit(" ", 1)
        names = tuple(re.sub(r" \([^()]*\)$", "", frame) for frame in stack.split(";"))
        sums[names] = sums.get(names, 0) + int(weight)
    assert len(sums) > 20
    return sums


def test_of_two_recordings_each_is_saved_by_itself(open_page, tmp_path):
    paths = []
    for name, seed in [("before", 3), ("after", 4)]:
        paths.append(tmp_path / f"{name}.phlox")
        synthetic.write(paths[-1], samples=2000, threads=5, stacks=200, depth=30, seed=seed)
    file = tmp_path / "diff.html"
    phlox("diff", *paths, "-o", file)
    page = open_page("#show=everything&difference.as=merged", file=file)
    for path in paths:
        name, text = save(page, f"Collapsed stacks of {path.stem}")
        expected = phlox("export", path, "-f", "collapsed", "--show", "everything").stdout
        # What is matched across the two, by its name and its file's, is one function in the page.
        assert weights(text) == weights(expected)
        assert f"only-{path.stem}" in name
    _, words = shapes(save(page, "Picture of the difference")[1])
    assert {"more time", "less", "not seen to differ"} <= set(words)


def test_hostile_names_stay_text_in_a_saved_picture(open_page, tmp_path):
    path = tmp_path / "hostile.phlox"
    synthetic.write(path, samples=500, threads=2, stacks=40, depth=6, seed=1)
    db = sqlite3.connect(path)
    evil = "</text><script>alert(1)</script>&\"'\x00\x07"
    db.execute("UPDATE frame SET function = ?, qualified_name = ?", (evil, evil))
    db.commit()
    file = tmp_path / "hostile.html"
    phlox("export", path, "-o", file)
    _, text = save(open_page("#show=everything", file=file), "Picture of the flame graph")
    root, words = shapes(text)
    assert any("<script>" in word for word in words)
