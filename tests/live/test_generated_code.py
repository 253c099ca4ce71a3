"""Machine code that a program generated itself: in any kind of memory, it is JIT code, and a perf map names it."""
import contextlib
import os
import pathlib
import sys
import types

import pytest

from live_support import Target
from test_native import share, stacks

PROGRAM = pathlib.Path(__file__).with_name("programs") / "generated.py"
SYSTEM = types.SimpleNamespace(path=sys.executable)

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="its machine code is x86-64's")


def innermost(record, *arguments):
    with Target(SYSTEM, PROGRAM, *arguments) as target:
        try:
            recording = record(target.pid, 0.8, "--native", "-r", "500", "--max-overhead", "off")
        finally:
            with contextlib.suppress(FileNotFoundError):
                pathlib.Path(f"/tmp/perf-{target.pid}.map").unlink()
    return list(stacks(recording))


@pytest.mark.parametrize("kind", ["memfd", "shared", "private"])
@pytest.mark.parametrize("name", ["(JIT code)", "compiled_spin"])
def test_generated_code_is_no_library(kind, name, record):
    found = innermost(record, kind, *["map"] * (name == "compiled_spin"))
    assert share(found, lambda frames: name in frames) > 0.9, found[:3]


def test_a_library_in_a_memfd_is_one(record):
    found = innermost(record, "library")
    assert share(found, lambda frames: any("jn" in frame or frame.startswith("memfd:library+") for frame in frames)) > 0.9, found[:3]
    assert share(found, lambda frames: "(JIT code)" in frames) == 0
