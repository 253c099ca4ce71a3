"""The last line of `make test` must not be able to say more than was run."""
import pathlib
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "tools" / "test_totals.py"
CTEST = '<testsuite><testcase name="a" status="run"/><testcase name="b" status="fail"><failure/></testcase>' \
        '<testcase name="c" status="notrun"><skipped/></testcase></testsuite>'
PYTEST = '<testsuites><testsuite><testcase classname="t" name="d"/><testcase classname="t" name="e"/></testsuite></testsuites>'


def totals(tmp_path, *texts, again=()):
    paths = []
    for number, text in enumerate(again):
        (tmp_path / f"again{number}.xml").write_text(text)
    for number, text in enumerate(texts):
        paths.append(tmp_path / f"{number}.xml")
        if text is not None:
            paths[-1].write_text(text)
    done = subprocess.run([sys.executable, PROGRAM, *paths, *(["--again", *tmp_path.glob("again*.xml")] if again else [])],
                          capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()


def test_reports_are_added_up_and_what_failed_or_was_skipped_is_named(tmp_path):
    assert totals(tmp_path, CTEST, PYTEST) == (1, ["skipped: c", "failed: b", "3 passed, 1 failed, 1 skipped"])


def test_all_green_is_two_numbers_and_status_0(tmp_path):
    assert totals(tmp_path, PYTEST) == (0, ["2 passed, 0 failed"])


@pytest.mark.parametrize("text", [None, "", "<testsuite/>", "<testsuite>"], ids=["missing", "empty", "no-test", "cut"])
def test_a_suite_that_did_not_run_is_a_failure(tmp_path, text):
    status, lines = totals(tmp_path, PYTEST, text)
    assert status == 1 and lines[-1] == "2 passed, 1 failed"


def test_what_passed_the_second_time_has_passed_and_is_named(tmp_path):
    again = '<testsuite><testcase name="b" status="run"/></testsuite>'
    assert totals(tmp_path, CTEST, PYTEST, again=[again]) == (
        0, ["skipped: c", "4 passed, 0 failed, 1 skipped; 1 passed only when tried again: b"])


@pytest.mark.parametrize("case", ['<testcase name="b"><failure/></testcase>', '<testcase name="b"/><testcase name="b"><error/></testcase>', ""],
                         ids=["failed", "ended-badly", "not-run"])
def test_what_did_not_pass_the_second_time_has_failed(tmp_path, case):
    status, lines = totals(tmp_path, CTEST, PYTEST, again=[f"<testsuite>{case}</testsuite>"])
    assert status == 1 and lines[-1] == "3 passed, 1 failed, 1 skipped"


def test_what_failed_while_the_host_took_the_cpus_is_not_judged_and_named(tmp_path):
    first = '<testsuite><testcase name="a"><failure message="no"/></testcase><testcase name="b"><failure message="no"/></testcase></testsuite>'
    again = """<testsuite><testcase name="a"><skipped message="Skipped: failed while the host took 40% of our CPUs' time"/></testcase>
        <testcase name="b"><skipped message="not here"/></testcase></testsuite>"""
    status, lines = totals(tmp_path, first, again=[again])
    assert status == 1
    assert lines == ["skipped: a (failed, not judged: the host took our CPUs)", "failed: b", "0 passed, 1 failed, 1 skipped"]
