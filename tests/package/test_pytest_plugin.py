"""`pytest --phlox`: real runs of real tests."""
import contextlib
import re
import sqlite3
import subprocess
import sys

import pytest
from package_support import BUSY, PHLOX, run, said

pytestmark = pytest.mark.live

TESTS = BUSY + """
import pytest
@pytest.fixture(scope="module")
def made():
    hot(0.2)
def test_slow(made): hot(0.4)
@pytest.mark.parametrize("n", [1, 2])
def test_some(n): hot(0.2)
def test_fails(): assert False
"""


def run_tests(tmp_path, *words, **options):
    (tmp_path / "test_it.py").write_text(TESTS)
    return run(sys.executable, None, "-m", "pytest", "-p", "phlox.pytest_plugin", "-p", "no:cacheprovider", "-q", *words, cwd=tmp_path, **options)


def weight(path, name, *options):
    """Seconds of a function, with what it calls."""
    done = subprocess.run([PHLOX, "export", path, "-f", "collapsed", "--show", "everything", *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return sum(int(line.rsplit(" ", 1)[1]) for line in done.stdout.splitlines() if re.search(name, line)) / 1e9


def lengths(path):
    """Of the labels, in seconds: how long a test took hangs on what else the machine does."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        return dict(db.execute("SELECT text, (end_ns - start_ns) / 1e9 FROM label ORDER BY id"))


def test_a_test_run_has_its_tests_as_labels(tmp_path):
    done = run_tests(tmp_path, "--phlox")
    assert done.returncode == 1 and "1 failed, 3 passed" in done.stdout, done.stdout + done.stderr
    assert "phlox: 4 tests recorded" in done.stdout
    recording = tmp_path / "pytest.phlox"
    took = lengths(recording)
    slow, one, two, fails = took
    assert (slow, one, two, fails) == ("test_it.py::test_slow", "test_it.py::test_some[1]", "test_it.py::test_some[2]", "test_it.py::test_fails")
    assert took[slow] >= 0.6 and took[one] >= 0.2
    # All of the thread's time is a test's, or none's; set-up is of the first test that asked for it.
    for name in took:
        assert weight(recording, "", "--label", re.escape(name)) == pytest.approx(took[name], abs=0.01)
    assert weight(recording, "test_slow.*hot", "--label", "test_slow") >= 0.5 * 0.4
    assert weight(recording, "made.*hot", "--label", "test_slow") >= 0.5 * 0.2
    assert weight(recording, "hot", "--label", r"test_some\[") >= 0.5 * 0.4
    assert weight(recording, "test_slow|made", "--label", "test_some|test_fails") < 0.05
    # At the root of each stack, and nothing lost or doubled.
    assert weight(recording, r"^test_it\.py::test_slow;", "--by", "label") == pytest.approx(took[slow], abs=0.01)
    assert weight(recording, r"^test_it\.py::test_some\[2\];.*hot", "--by", "label") >= 0.5 * 0.2
    assert weight(recording, "", "--by", "label") == pytest.approx(weight(recording, ""), rel=1e-9)
    found = said(run(sys.executable, f"import phlox, json; print(json.dumps([l.text for l in phlox.load({str(recording)!r}).labels]))"))
    assert found == list(took)


def test_workers_of_xdist_are_in_one_recording(tmp_path):
    pytest.importorskip("xdist")
    done = run_tests(tmp_path, "--phlox=run.phlox", "-n", "2", "--dist", "each", "-p", "xdist")
    assert "6 passed" in done.stdout, done.stdout + done.stderr
    assert [p.name for p in tmp_path.glob("*.phlox")] == ["run.phlox"]
    recording = tmp_path / "run.phlox"
    with contextlib.closing(sqlite3.connect(recording)) as db:
        labels = [row[0].split("\t") for row in db.execute("SELECT text FROM label ORDER BY id")]
        pids = {pid for (pid,) in db.execute("SELECT pid FROM process")}
    assert len(labels) == 8 and {int(pid) for _, pid in labels} < pids
    # Both workers run it, each for as long, and neither is charged with what the other does meanwhile.
    assert weight(recording, "hot", "--label", "test_slow") >= 0.5 * 2 * 0.6
    # (At its edges a label may cut one sample of the other test.)
    assert weight(recording, "test_some", "--label", "test_slow") < 0.05
    assert "8 tests recorded" in done.stdout


def test_what_a_test_starts_is_in_the_recording(tmp_path):
    (tmp_path / "test_child.py").write_text(BUSY + "import multiprocessing\n"
                                            "def test_child():\n"
                                            "    child = multiprocessing.get_context('fork').Process(target=hot, args=(1.5,))\n"
                                            "    child.start(); child.join()\n")
    done = run(sys.executable, None, "-m", "pytest", "-p", "phlox.pytest_plugin", "-p", "no:cacheprovider", "-q", "--phlox=pytest.phlox", "test_child.py",
               cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert weight(tmp_path / "pytest.phlox", "hot", "--label", "test_child") >= 0.5 * 1.5


def test_a_run_without_the_option_is_not_touched(tmp_path):
    done = run_tests(tmp_path)
    assert "phlox" not in done.stdout and not list(tmp_path.glob("*.phlox"))


def test_a_run_that_cannot_be_recorded_says_so_at_once(tmp_path):
    (tmp_path / "nowhere").mkdir()
    done = run_tests(tmp_path, "--phlox=no/such/folder/a.phlox")
    assert done.returncode == 4 and "is the folder there?" in done.stderr + done.stdout
    done = run_tests(tmp_path, "--phlox", "test_it.py")
    assert done.returncode == 4 and "--phlox=pytest.phlox test_it.py" in done.stderr
