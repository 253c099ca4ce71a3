"""The program's source in the page, with the times of `phlox report`, and only where it was asked for."""
import sqlite3

import pytest

from pages import CATCH_COPIES, export, phlox, report, settled, share_words, synthetic, table_rows, weight_words
from pictures import fragment


@pytest.fixture(scope="module")
def with_source(tmp_path_factory):
    """A recording whose hottest .py file is there, one that is no source by its name, and the page with the source in it."""
    folder = tmp_path_factory.mktemp("source")
    # If a recording does not say who may read its sources, root shows only what all users may read.
    for place in [folder, *folder.parents]:
        if "pytest-" in str(place):
            place.chmod(0o755)
    path = folder / "app.phlox"
    synthetic.write(path, samples=3000, threads=6, stacks=300, depth=30, seed=8)
    lines = [row for row in report(path)["lines"] if row["file"].endswith(".py")]
    hot, secret = lines[0]["file"], next(row["file"] for row in lines if row["file"] != lines[0]["file"])
    longest = max(row["line"] for row in lines if row["file"] == hot)
    text = "".join(f"\tline_{i} = '</script><b>{i}\u202e'\n" for i in range(1, longest + 1))
    (folder / "hot.py").write_text(text)
    (folder / "secret.txt").write_text("never to be shown")
    db = sqlite3.connect(path)
    for old, new in [(hot, folder / "hot.py"), (secret, folder / "secret.txt")]:
        db.execute("UPDATE frame SET file = ? WHERE file = ?", (str(new), old))
    db.commit()
    plain = export(path, folder / "plain.html")
    done = phlox("export", path, "-o", folder / "page.html", "--source")
    return path, folder, plain, folder / "page.html", done.stderr


def test_lines_have_the_times_of_the_report_next_to_their_text(open_page, with_source):
    path, folder, _, file, _ = with_source
    page = open_page(f"#view=source&source.file={folder}/hot.py", file=file)
    page.evaluate(CATCH_COPIES)
    page.keyboard.press("t")
    head, *lines = settled(page).evaluate("window.copied").split("\n")
    rows = [dict(zip(head.split("\t"), line.split("\t"))) for line in lines]
    told = report(path)
    times = {}
    for row in told["lines"]:
        if row["file"] == f"{folder}/hot.py":
            times[row["line"]] = times.get(row["line"], 0) + row["self"]["weight"]
    assert len(rows) >= max(times)
    for number, weight in times.items():
        row = rows[number - 1]
        assert row["Line"] == str(number) and row["Source"].strip() == f"line_{number} = '</script><b>{number}\\u202e'"
        assert row["Self"] == (share_words(weight, told["total"]) if weight else "")
        assert row["Self time"] == (weight_words(weight) if weight else "")


def test_nothing_is_embedded_unless_requested_and_the_size_is_reported(open_page, with_source):
    path, folder, plain, file, said = with_source
    assert "the source of 1 file is in the page: " in said
    assert "line_1 =" not in phlox("export", path, "-f", "collapsed").stdout
    page = open_page(f"#view=source&source.file={folder}/hot.py", file=plain)
    assert "not in this page (phlox view --source puts it in)" in page.locator(".source .chosen").inner_text()
    assert file.stat().st_size > plain.stat().st_size
    page = open_page(f"#view=source&source.file={folder}/secret.txt", file=file)
    assert "could not be read" in page.locator(".source .chosen").inner_text()
    assert "never to be shown" not in page.locator(".source").inner_text()


def test_the_menu_of_a_frame_leads_to_its_line(open_page, with_source):
    page = open_page("#view=functions&by=line", file=with_source[3])
    page.locator(".rows .cell.place", has_text=".py:").first.click(button="right")
    page.get_by_role("menuitem", name="Source of").click()
    settled(page)
    assert "view=source" in fragment(page) and "source.line=" in fragment(page)
    line = fragment(page).split("source.line=")[1].split("&")[0]
    assert page.locator(".source .text .row.current .cell.line").inner_text() == line


def test_source_is_for_a_page_only(with_source):
    import subprocess
    from pictures import BUILD
    done = subprocess.run([BUILD / "phlox", "export", with_source[0], "-f", "collapsed", "--source"], capture_output=True, text=True)
    assert done.returncode == 2 and "--source is for a page" in done.stderr


def test_source_is_narrow_and_dark(open_page, with_source):
    page = open_page("#view=source", file=with_source[3], dark=True, width=480)
    assert page.evaluate("document.documentElement.scrollWidth") <= 480
