"""phlox report and diff: the words of the command line, and where the text goes. What the numbers mean is tested in tests/report."""
import json
import re

import pytest
from cli_support import PYTHON, phlox

pytestmark = pytest.mark.live

TWO_LOADS = """
import sys, time
def heavy(turns):
    for _ in range(turns): pass
def light(turns):
    for _ in range(turns): pass
share, end = float(sys.argv[1]), time.monotonic() + 1.5
while time.monotonic() < end:
    heavy(int(20000 * share))
    light(int(20000 * (1 - share)))
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Two recordings of a program: heavy takes 90 % in one and 40 % in the other."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "app.py").write_text(TWO_LOADS)
    for name, share in (("before.phlox", 0.9), ("after.phlox", 0.4)):
        done = phlox("record", "-r", "500", "--max-overhead", "off", "-o", folder / name, "--", PYTHON, folder / "app.py", share)
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
    assert "for _ in range(turns): pass" in phlox("report", "--source", recorded / "before.phlox").stdout


def test_the_choices_of_the_view_and_the_length_hold(recorded):
    for words in (["report"], ["report", "--markdown"], ["export"], ["diff", recorded / "before.phlox"]):
        nothing = phlox(*words, "--thread", "^none$", recorded / "before.phlox")
        assert nothing.returncode == 0 and "heavy" not in nothing.stdout
        assert "no sample of the recording passes these choices; its threads: Thread " in nothing.stderr
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


def test_diff_says_what_changed(recorded):
    done = phlox("diff", recorded / "before.phlox", recorded / "after.phlox")
    assert (done.returncode, done.stderr) == (0, "")
    assert "heavy" in done.stdout and "light" in done.stdout


def test_diff_begins_with_the_whole_and_says_which_question_it_answers(recorded):
    text = phlox("diff", "before.phlox", "after.phlox", cwd=recorded).stdout
    assert re.match(r"\d[\d.]+ s became \d[\d.]+ s .*; CPU time ", text), text
    assert "These two recordings differ in " in text and "One recording of each cannot show whether other runs differ too" in text
    assert phlox("diff", "--per", "second", "before.phlox", "after.phlox", cwd=recorded).stdout.startswith("Recordings of ")


def test_runs_of_both_sides_have_a_double_dash_between_them(recorded):
    few = phlox("diff", *["before.phlox"] * 3, "--", *["after.phlox"] * 3, "--fail-if", "total(light) > +10%", cwd=recorded)
    assert few.returncode == 0, few.stderr
    assert "No verdict" in few.stdout and "Record at least 5 of each" in few.stdout and "too few runs" in few.stderr
    enough = phlox("diff", *["before.phlox"] * 5, "--", *["after.phlox"] * 5, "--fail-if", "total(light) > +10%", cwd=recorded)
    assert enough.returncode == 3, enough.stderr
    assert "A test over all runs: " in enough.stdout and re.search(r"0\.0079 +grew +light", enough.stdout), enough.stdout


def test_diff_as_json_markdown_and_picture(recorded):
    both = ("before.phlox", "after.phlox")
    assert json.loads(phlox("diff", "--json", *both, cwd=recorded).stdout)["version"] == 2
    assert "| heavy" in phlox("diff", "--markdown", *both, cwd=recorded).stdout
    done = phlox("diff", *both, "-o", "diff.svg", cwd=recorded)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "heavy" in (recorded / "diff.svg").read_text()


@pytest.mark.parametrize("condition, status", [
    ("total(light) > +10%", 3), ("total(heavy) > +10%", 0), ("total(heavy) > 50%", 0), ("self(heavy) < -5pp", 3),
])
def test_diff_fails_on_a_condition(recorded, condition, status):
    done = phlox("diff", "before.phlox", "after.phlox", "--fail-if", condition, cwd=recorded)
    assert done.returncode == status, done.stderr
    assert done.stderr.startswith("phlox: ")


def test_a_condition_on_an_unknown_function_has_its_own_error(recorded):
    both = ("before.phlox", "after.phlox")
    done = phlox("diff", *both, "--fail-if", "total(hevy) > +10%", cwd=recorded)
    assert done.returncode == 4, done.stderr
    assert "no function hevy in either recording" in done.stderr and "hint: did you mean heavy?" in done.stderr
    done = phlox("diff", *both, "--fail-if", "total(test_*) < 5%", cwd=recorded)
    assert done.returncode == 4 and "functions are named as in phlox report" in done.stderr
    # Whatever else holds.
    for first, second in (("total(nobody) > 1%", "total(light) > +10%"), ("total(light) > +10%", "total(nobody) > 1%")):
        assert phlox("diff", *both, "--fail-if", first, "--fail-if", second, cwd=recorded).returncode == 4


def test_the_quality_line_as_numbers(recorded):
    numbers = json.loads(phlox("report", "--json", recorded / "before.phlox").stdout)["quality"]["numbers"]
    assert numbers["rate_asked_hz"] == 500 and 50 < numbers["rate_reached_hz"] <= 550
    assert numbers["samples"] > 100 and 1e9 < numbers["elapsed_ns"] < 20e9
    assert numbers["rejected"] == sum(numbers["rejected_by_reason"].values())
    assert numbers["modes"] and all(numbers["modes"])
    assert 0 < numbers["taken_from_target_ns"] < numbers["elapsed_ns"] and numbers["recorder_cpu_ns"] > 0
    assert set(numbers["native"].values()) == {0}
    sides = json.loads(phlox("diff", "--json", recorded / "before.phlox", recorded / "after.phlox").stdout)
    assert sides["before"]["quality_numbers"] == numbers
    assert sides["after"]["quality_numbers"]["rate_asked_hz"] == 500


def test_one_of_several_conditions_is_enough(recorded):
    done = phlox("diff", "before.phlox", "after.phlox", "--fail-if", "total(heavy) > +10%", "--fail-if", "total(light) > +10%", cwd=recorded)
    assert done.returncode == 3, done.stderr


@pytest.mark.parametrize("words, status", [
    (["diff"], 2), (["diff", "before.phlox"], 2), (["diff", "before.phlox", "none.phlox"], 118), (["diff", "before.phlox", "after.phlox", "-o", "d.txt"], 2),
    (["diff", "before.phlox", "after.phlox", "after.phlox"], 2), (["diff", "before.phlox", "--"], 2), (["diff", "before.phlox", "after.phlox", "--margin", "x"], 2),
    (["diff", "before.phlox", "before.phlox", "--", "after.phlox", "-o", "d.html"], 2), (["diff", "before.phlox", "after.phlox", "--fail-if", "light is slow"], 2), (["diff", "before.phlox", "after.phlox", "-o", "no/folder/d.svg"], 117),
])
def test_diff_errors(recorded, words, status):
    done = phlox(*words, cwd=recorded)
    assert done.returncode == status, done.stderr
    assert done.stdout == "" and done.stderr.startswith("phlox: ")
