"""The page of an incident's recording (record --on): the condition in its heading, the moment in the timeline, in a real browser."""
import sqlite3

import pytest

from pages import export, phlox, settled, synthetic

STALL = ("stall", "an event loop in thread MainThread (12), process 12 (app.py): stall of 405 ms in read_config (app.py:28), asleep", "stall of 405 ms")
DEATH = ("death", "SIGSEGV ended process 12 (app.py): bash (3) sent it", "SIGSEGV ended process 12")


def incident(folder, *causes, times=(1.25, 2.5), short=True):
    """The page of a recording with these causes, so many seconds after its start."""
    path = folder / "incident.phlox"
    synthetic.write(path, samples=8000, threads=3, stacks=100, depth=20, seed=8)
    db = sqlite3.connect(path)
    (start,) = db.execute("SELECT time_ns FROM event WHERE kind = 0").fetchone()
    for number, (time, (kind, words, in_short)) in enumerate(zip(times, causes), 1):
        value = "\t".join([str(start + int(time * 1e9)), kind, words, *([in_short] if short else [])])
        db.execute("INSERT INTO meta VALUES (?, ?)", (f"incident.{number}", value))
    db.commit()
    return export(path, folder / "incident.html")


# The colours of the pixels in the middle of the rows, and whether one of them is that of the mark.
MARKED = """() => {
  const canvas = document.querySelector(".timeline .lanes canvas"), pen = canvas.getContext("2d");
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--bad").trim();
  probe.fillRect(0, 0, 1, 1);
  const wanted = probe.getImageData(0, 0, 1, 1).data.slice(0, 3).join();
  const found = [];
  for (let x = 0; x < canvas.width; ++x) {
    let all = true;
    for (let y = 4; y < canvas.height; y += 7) all &&= pen.getImageData(x, y, 1, 1).data.slice(0, 3).join() === wanted;
    if (all) found.push(x);
  }
  return found;
}"""


@pytest.mark.parametrize("cause, heading", [(STALL, "Incident: stall of 405 ms at 1.25 s. "), (DEATH, "Incident: SIGSEGV ended process 12 at 1.25 s. ")])
def test_heading_line_and_mark(open_page, tmp_path, cause, heading):
    page = open_page(file=incident(tmp_path, cause))
    assert page.locator("h1").inner_text().startswith(heading)
    assert page.title().startswith(heading.strip())
    line = page.locator(".head .incident")
    assert line.count() == 1 and line.inner_text() == f"Incident at 1.25 s {cause[0]}: {cause[1]}"
    columns = page.evaluate(MARKED)
    assert len(columns) == 2 and columns[1] == columns[0] + 1
    line.locator("button").click()
    settled(page)
    assert "timeline.zoom=250000000-2250000000" in page.url
    columns = page.evaluate(MARKED)
    gutter = page.evaluate("Math.round(Math.max(90, Math.min(250, document.querySelector('.lanes').clientWidth * 0.24)))")
    width = page.evaluate("document.querySelector('.lanes').clientWidth")
    assert len(columns) == 2 and abs(columns[0] - (gutter + (width - gutter) / 2)) <= 1


def test_several_causes_are_folded_and_all_are_marked(open_page, tmp_path):
    page = open_page(file=incident(tmp_path, DEATH, STALL))
    assert page.locator("h1").inner_text().startswith("Incident: SIGSEGV ended process 12 at 1.25 s, and 1 more. ")
    assert len(page.evaluate(MARKED)) == 4
    assert page.locator(".head details .more").first.inner_text() == "and 1 more"
    page.locator(".head details button").first.click()
    settled(page)
    assert not page.locator(".head details").first.evaluate("one => one.open")  # the button shows the moment
    page.locator(".head details .more").first.click()
    assert page.locator(".head .incident").nth(1).inner_text().startswith("Incident at 2.50 s stall: an event loop")


def test_a_recording_of_before_opens_and_others_have_no_mark(open_page, tmp_path):
    page = open_page(file=incident(tmp_path, STALL, short=False))
    assert page.locator("h1").inner_text().startswith("Incident: stall at 1.25 s. ")
    assert len(page.evaluate(MARKED)) == 2
    page = open_page(file=incident(tmp_path))
    assert page.locator("h1").inner_text().find("Incident") < 0 and page.locator(".head .incident").count() == 0
    assert page.evaluate(MARKED) == []
