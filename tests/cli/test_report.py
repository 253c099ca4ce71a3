"""phlox report and diff: the words of the command line, and where the text goes. What the numbers mean is tested in tests/report."""
import json
import os

import pytest
from conftest import PYTHON, phlox

TWO_LOADS = """
import sys, time
def heavy(until):
    while time.monotonic() < until: sum(i * i for i in range(300))
def light(until):
    while time.monotonic() < until: sum(i * i for i in range(300))
now = time.monotonic()
heavy(now + float(sys.argv[1]))
light(now + 1)
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Two recordings of a program: heavy takes 90 % in one and 40 % in the other."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "app.py").write_text(TWO_LOADS)
    for name, share in (("before.phlox", 0.9), ("after.phlox", 0.4)):
        done = phlox("record", "-o", folder / name, "--", PYTHON, folder / "app.py", share)
        assert done.returncode == 0, done.stderr
    return folder


def test_record_ends_with_the_first_lines_of_the_report(tmp_path):
    (tmp_path / "app.py").write_text(TWO_LOADS)
    done = phlox("record", "-o", tmp_path / "a.phlox", "--", PYTHON, tmp_path / "app.py", "0.9")
    assert " heavy " in done.stderr
    assert done.stdout == ""


def test_the_report_names_the_hot_function(recorded):
    done = phlox("report", recorded / "before.phlox")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Hot functions" in done.stdout and "heavy" in done.stdout


def test_the_report_as_json_markdown_and_source(recorded):
    assert json.loads(phlox("report", "--json", recorded / "before.phlox").stdout)["version"] == 1
    assert phlox("report", "--markdown", recorded / "before.phlox").stdout.startswith("# ")
    assert "    while time.monotonic() < until" in phlox("report", "--source", recorded / "before.phlox").stdout


def test_the_choices_of_the_view_and_the_length_hold(recorded):
    assert "heavy" not in phlox("report", "--thread", "^none$", recorded / "before.phlox").stdout
    whole = phlox("report", recorded / "before.phlox").stdout
    assert len(phlox("report", "--top", "1", recorded / "before.phlox").stdout) < len(whole)


@pytest.mark.parametrize("words, status", [
    ("report", 2), ("report none.phlox", 118), ("report --json --markdown before.phlox", 2), ("report --top 0 before.phlox", 2),
    ("report --weight gold before.phlox", 2),
])
def test_report_errors(recorded, words, status):
    done = phlox(*words.split(), cwd=recorded)
    assert done.returncode == status, done.stderr
    assert done.stdout == "" and done.stderr.startswith("phlox: ")
