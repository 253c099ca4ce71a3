"""Traces on the page: the table, a trace alone in every view, its times in the timeline, in a real browser."""
import sqlite3

import pytest

from pages import CATCH_COPIES, chips, export, phlox, report, settled, synthetic, table_rows, whole
from test_page_data import collapsed, read, reader  # noqa: F401
from test_page_timeline import ROW, plot

MS = 1_000_000
FIRST, SECOND, SHORT = "4bf92f3577b34da6a3ce929d0e0e4736", "00" + "ab" * 15, "ff" * 16
SCHEMA = ("CREATE TABLE IF NOT EXISTS trace_time (id INTEGER PRIMARY KEY, thread INTEGER NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, "
          "trace TEXT NOT NULL, span TEXT NOT NULL)")
# Thread, from and to in ms, trace, span.
TIMES = [(1, 100, 500, FIRST, "1" * 16), (1, 500, 700, FIRST, "2" * 16), (2, 400, 900, FIRST, "3" * 16), (2, 900, 1000, SECOND, "4" * 16),
         (1, 1200, 1500, SECOND, "5" * 16), (3, 100, 130, SHORT, "6" * 16)]


def add_traces(path):
    db = sqlite3.connect(path)
    db.execute(SCHEMA)
    epoch = int(db.execute("SELECT value FROM meta WHERE key = 'sample_epoch_ns'").fetchone()[0])
    db.executemany("INSERT INTO trace_time VALUES (NULL, ?, ?, ?, ?, ?)", [(thread, epoch + start * MS, epoch + end * MS, trace, span) for thread, start, end, trace, span in TIMES])
    db.commit()
    return path


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("traces") / "app.phlox"
    synthetic.write(path, samples=4000, threads=4, stacks=200, depth=30, seed=11)
    return add_traces(path)


def test_the_table_is_that_of_the_report(open_page, recording):
    page = open_page("#view=traces")
    page.evaluate(CATCH_COPIES)
    rows = table_rows(page)
    told = report(recording, "--show", "everything")["traces"]
    assert [row["Trace"] for row in rows] == [row["trace"] for row in told["longest"]] == [FIRST, SECOND, SHORT]
    assert [int(row["Threads"]) for row in rows] == [row["threads"] for row in told["longest"]] == [2, 2, 1]
    assert [row["Mostly in"].split(" (")[0] for row in rows] == [row["name"] for row in told["longest"]]
    assert rows[0]["Lasted"] == "800 ms"
    assert "3 traces" in page.locator(".traces .status").inner_text()


def test_a_row_shows_its_trace_alone(open_page, recording):
    page = open_page("#view=traces&show=everything")
    before = whole(page)
    page.locator(".traces .rows .row", has_text=FIRST).click()
    settled(page)
    page.wait_for_function("location.hash.includes('f=in.trace')")
    assert chips(page) == [f"only trace {FIRST}"]
    assert "timeline.zoom" in page.url
    assert whole(page) != before
    # Another one takes its place.
    page.locator(".traces .rows .row", has_text=SECOND).click()
    settled(page)
    page.wait_for_function(f"location.hash.includes('{SECOND}')")
    assert chips(page) == [f"only trace {SECOND}"]
    page.go_back()
    page.go_back()
    assert chips(page) == []


@pytest.mark.parametrize("by", ["function", "line"])
@pytest.mark.parametrize("trace", [FIRST, SECOND])
def test_what_a_trace_leaves_is_what_the_exporter_says(recording, read, tmp_path, trace, by):  # noqa: F811
    page = export(recording, tmp_path / "page.html")
    shown = read(page, f"show=everything&f=in.trace.{trace}", "wall", by)
    expected = collapsed(recording, "--trace", trace, "--by", by)
    assert len(expected) > 20
    # Starts are in microseconds: each interval may lack one.
    assert {stack: pytest.approx(weight, abs=200_000, rel=0.01) for stack, weight in expected.items()} == shown
    assert sum(shown.values()) == pytest.approx(sum(expected.values()), rel=1e-4)
    rest = read(page, f"show=everything&f=out.trace.{trace}", "wall", by)
    assert sum(rest.values()) + sum(shown.values()) == pytest.approx(sum(collapsed(recording).values()), rel=1e-4)


def test_the_timeline_names_the_trace_of_a_moment(open_page, recording):
    page = open_page()
    left, width, top = plot(page)
    (length,) = sqlite3.connect(recording).execute("SELECT max(start_us * 1000 + wall_ns) - min(start_us) * 1000 FROM sample").fetchone()
    rows = page.evaluate("document.querySelector('.timeline .lanes').scrollHeight") // ROW
    found = set()
    for row in range(rows):
        page.mouse.move(left + width * 300 * MS / length, top + row * ROW + ROW / 2)
        settled(page)
        page.wait_for_timeout(200)
        text = page.locator(".tip").inner_text() if page.locator(".tip").count() else ""
        found |= {trace for trace in (FIRST, SECOND, SHORT) if trace in text}
    assert found == {FIRST}


def test_the_timeline_marks_the_times_of_a_trace(open_page, recording):
    plain = open_page("#show=everything")
    marked = open_page(f"#show=everything&f=in.trace.{FIRST}")
    (length,) = sqlite3.connect(recording).execute("SELECT max(start_us * 1000 + wall_ns) - min(start_us) * 1000 FROM sample").fetchone()
    # How many pixels of a line of the canvas, 3 above the end of each row, have the colour of a mark. The first ones mark the busiest thread.
    count = """(row) => {
      const canvas = document.querySelector('.timeline .lanes canvas');
      const scale = window.devicePixelRatio;
      const line = canvas.getContext('2d').getImageData(0, (row * 20 + 17) * scale, canvas.width, 1).data;
      const probe = document.createElement('canvas').getContext('2d');
      probe.fillStyle = getComputedStyle(document.body).getPropertyValue('--accent');
      probe.fillRect(0, 0, 1, 1);
      const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
      let pixels = 0;
      for (let i = 40 * scale; i < line.length; i += 4) pixels += line[i] === r && line[i + 1] === g && line[i + 2] === b;
      return pixels;
    }"""
    width = plot(marked)[1]
    rows = range(plain.evaluate("document.querySelector('.timeline .lanes').scrollHeight") // ROW)
    assert [plain.evaluate(count, row) for row in rows] == [0] * len(rows)
    pixels = [marked.evaluate(count, row) for row in rows]
    # Two threads, 600 ms and 500 ms, and rows of their processes.
    for expected in (600, 500):
        assert any(abs(one - width * expected * MS / length) <= 3 for one in pixels), (pixels, width * expected * MS / length)
    assert pixels.count(0) >= len(rows) - 4


def test_a_recording_without_traces_has_no_such_view(open_page, tmp_path):
    path = tmp_path / "none.phlox"
    synthetic.write(path, samples=500, threads=2, stacks=50, depth=10, seed=7)
    page = open_page(file=export(path, tmp_path / "none.html"))
    assert page.locator("nav.views button", has_text="Traces").count() == 0
    assert '"traces":{"count":0' in (tmp_path / "none.html").read_text()


def test_ids_and_times_make_the_page_hardly_larger(recording, tmp_path):
    db = sqlite3.connect(tmp_path / "many.phlox")
    sqlite3.connect(recording).backup(db)
    db.execute("DELETE FROM trace_time")
    bare = export(tmp_path / "many.phlox", tmp_path / "bare.html").stat().st_size
    epoch = int(db.execute("SELECT value FROM meta WHERE key = 'sample_epoch_ns'").fetchone()[0])
    db.executemany("INSERT INTO trace_time VALUES (?, 1, ?, ?, lower(hex(randomblob(16))), lower(hex(randomblob(8))))",
                   [(i, epoch + i * 50_000, epoch + i * 50_000 + 20_000 + i % 7 * 1000) for i in range(1, 10_001)])
    db.commit()
    large = export(tmp_path / "many.phlox", tmp_path / "many.html").stat().st_size
    # An id has 16 bytes that do not pack, and base64 makes 22 of them.
    assert large - bare < 10_000 * 30 + 60_000
    phlox("report", tmp_path / "many.phlox")
