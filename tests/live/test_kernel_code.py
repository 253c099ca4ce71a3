"""The library in which a line spends its time, in a recording without --native (--mode kernel)."""
import json
import pathlib
import subprocess

import pytest

from live_support import PHLOX, Target, once_a_version, since
from test_kernel import MODE, possible

PROGRAMS = pathlib.Path(__file__).parent / "programs"
pytestmark = pytest.mark.skipif(not possible(), reason="phlox doctor: --mode kernel cannot be had here")


@since(3, 8)
@once_a_version
def test_c_code_of_a_library_is_named_and_the_interpreters_own_is_not(python, record):
    with Target(python, PROGRAMS / "in_c.py") as target:
        recording = record(target.pid, 3, *MODE)
    said = json.loads(subprocess.run([PHLOX, "report", "--json", recording.path], capture_output=True, text=True, check=True).stdout)
    functions = {row["name"]: row for row in said["functions"]}
    assert functions["squeeze"]["samples"] > 50 and functions["count"]["samples"] > 50
    maps = subprocess.run([python.path, "-c", "import zlib; print(open('/proc/self/maps').read())"], capture_output=True, text=True, check=True).stdout
    if "/libz." not in maps and "/zlib." not in maps:
        assert "c_code" not in functions["squeeze"], "it is in the program itself, which is not named"
        return
    library = functions["squeeze"]["c_code"]
    assert library["module"].startswith(("libz", "zlib")) and library["share"] > 0.8, library
    assert "c_code" not in functions["count"]
    line = next(row for row in said["lines"] if row["name"] == "squeeze")
    assert line["c_code"]["module"] == library["module"] and line["c_code"]["share"] > 0.8
    (text,) = [one["text"] for one in said["findings"] if one["kind"] == "hot_function" and "squeeze" in one["text"]]
    assert "% of the CPU time on this line is in C code of " + library["module"] + ": --native shows it" in text
