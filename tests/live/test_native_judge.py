"""Merged stacks of stopped processes, judged by gdb (judge.py): deep re-entry on every version, and the builds and callers that a
merge could stumble over."""
import collections
import subprocess
import sys

from judge import Case, judge
from live_support import INTERPRETERS, since

# Sorting, reducing, substituting, a ctypes callback, an attribute, an import and a generator: each leads from C into Python.
NESTED = ["<module>", "key_of", "add_up", "replaced", "callback", "__getattr__", "_find_and_load", "<module>", "generator"]

Python = collections.namedtuple("Python", "name path major minor")
# The environment that the tests run in: it holds packages with code in Rust and C (tools/requirements-test.txt).
VENV = Python("venv", sys.executable, *sys.version_info[:2])


def asked(python, code):
    return subprocess.run([python.path, "-c", code], capture_output=True, text=True, check=True).stdout.strip().split("\n")


@since(3, 8)
def test_nine_evaluations_deep(python, tmp_path):
    judge(Case(python, tmp_path), NESTED)


# ---- builds ---------------------------------------------------------------------------------------------------

def test_builds_whose_loop_is_made_of_tail_calls(tmp_path):
    those = [python for python in INTERPRETERS if (python.major, python.minor) >= (3, 14)
             and "tail-call-interp" in asked(python, "import sysconfig; print(sysconfig.get_config_var('CONFIG_ARGS'))")[0]]
    assert those, "none of the interpreters here is such a build"
    for python in those:
        found = judge(Case(python, tmp_path), NESTED)
        assert found


# ---- callers --------------------------------------------------------------------------------------------------

def test_rust_calls_python(tmp_path):
    judge(Case(VENV, tmp_path, script="from_rust.py"), ["<module>", "checked", "written"])
