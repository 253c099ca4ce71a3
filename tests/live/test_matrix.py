"""The checks behind docs/pythons.md: every interpreter's stacks against what is possible, its lines against what the program
says of itself, its cost by the recording's own figures. The run writes the page into the build directory; `make pythons-doc`
brings it to docs/."""
import collections
import os
import re

import pytest

import families
from lines import LINES, lines_of, reported_lines
from live_support import BUILD, INTERPRETERS, ROOT, TARGETS, Target

# The page is written from longer runs (make pythons-doc).
SECONDS = float(os.environ.get("PHLOX_MATRIX_SECONDS", 0.7))
PAGE = ROOT / "docs" / "pythons.md"
TABLE = (ROOT / "src" / "phlox" / "python" / "layout_table.cpp").read_text()
LAYOUTS = re.findall(r'\.name = "([^"]+)"', TABLE)

Row = collections.namedtuple("Row", "found_by looks impossible accepted cost lines lines_right")


def row_of(python):
    """The layout row that an interpreter is read by."""
    return f"{python.major}.{python.minor}" + ("t" if "t" in python.flags else "") + (" debug" if "d" in python.flags else "")


def build_of(python):
    """Who built it: a name of tools/get-pythons.sh without the version."""
    if re.match(r"\d", python.name):  # built from source
        return "built from source" + (", musl" if "musl" in python.name else "")
    return {"system": "this system's", "pyenv": "pyenv", "standalone": "python-build-standalone", "debian": "Debian bullseye",
            "trixie": "Debian trixie", "sid": "Debian sid", "maven": "bytedeco"}.get(python.name.split("-")[0], python.name)


@pytest.fixture(scope="session")
def rows():
    """What this run has found out, by interpreter; becomes the page when all are there."""
    found = {}
    yield found
    if set(found) == {p.name for p in INTERPRETERS}:
        (BUILD / "pythons.md").write_text(page(found))


def test_stacks_and_lines_are_right(python, record, rows, tmp_path):
    with Target(python, TARGETS / "hard.py", 60, 50) as target:
        stacks = record(target.pid, SECONDS, "-r", "1000", "--max-overhead", "off")
    looks, impossible, examples = families.judge(stacks)
    samples = stacks.tally("samples")
    rejected = sum(stacks.tally(f"rejected_{why}") for why in ("moved", "unreadable", "broken"))

    with Target(python, LINES, tmp_path / "lines.json") as target:
        lines = record(target.pid, SECONDS, "-r", "1000", "--max-overhead", "off")
    reported = reported_lines(tmp_path / "lines.json")
    spots, right, wrong = lines_of(lines, reported)

    found_by, = stacks.query("SELECT found_by FROM process")[0]
    rows[python.name] = Row(found_by, looks, impossible, 1 - rejected / samples, stacks.tally("target_time_ns") / samples / 1e3, spots, right)
    assert impossible == 0, examples[:3]
    assert looks > 50
    assert rejected <= 0.02 * samples
    assert right == spots, [stack for stack in wrong if stack not in reported][:2]
    assert spots > 50
    assert len(reported) > 60


def page(found):
    out = [
        "# Pythons", "",
        "What Phlox reads, and how well: written by the test run on a machine with every interpreter that",
        "`tools/get-pythons.sh` brings (`make pythons-doc`), and on every machine the tests hold what it says.", "",
        "- *Stacks right*: looks accepted of those taken, at a program whose 50 calls deep stack is replaced every few",
        "  microseconds, 1,000 looks a second. Looks that are not accepted are counted and shown, never guessed.",
        "- *Impossible stacks*: among the accepted ones, stacks that cannot have been: two families of functions mixed, a call",
        "  left out, another order.",
        "- *Lines right*: looks in which every function, file, first line and line of the stack is one that the program itself",
        "  reported (`sys._getframe`), over awkward code: decorators, calls over several lines, comprehensions, generators,",
        "  coroutines, `match`, exceptions and groups of them, calls from C, `eval` and `exec`, lines that go backwards, lines past",
        "  65,535, odd names.",
        "- *µs a sample*: CPU time taken from the target for one look, by the recording's own figures, wake-ups included. One",
        "  run on a busy two-core machine, caches cold: to compare rows, not to promise.",
        "  Up to 3.10 a frame is an object of its own, anywhere on the heap: 50 calls are fifty places to copy, from 3.11 on a",
        "  page. Measured longer, both against what is true and for what it takes: [benchmarks.md](benchmarks.md).",
        "",
        "| version | build | by | found by | stacks right | impossible stacks | lines right | µs a sample |",
        "| --- | --- | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    kinds = {"-": "default", "t": "free-threaded", "d": "debug", "td": "free-threaded debug"}
    for python in sorted(INTERPRETERS, key=lambda p: (p.major, p.minor, p.flags, build_of(p), p.name)):
        r = found[python.name]
        found_by = re.sub(r" in .*/", " in ", r.found_by)
        out.append(f"| {python.major}.{python.minor} | {kinds[python.flags]} | {build_of(python)} | {found_by} | {100 * r.accepted:.2f} % "
                   f"| {r.impossible} of {r.looks:,} | {r.lines_right:,} of {r.lines:,} | {r.cost:.1f} |")
    out += ["", "## Rows", "",
            "One row of the version table ([adding-a-python.md](adding-a-python.md)) reads every patch level of a version and",
            "build. Every row is tested on an interpreter made up of that row's own layout; those that could be had, live.", "",
            "| row | live |", "| --- | --- |"]
    for layout in LAYOUTS:
        live = sorted({build_of(p) for p in INTERPRETERS if row_of(p) == layout})
        out.append(f"| {layout} | {', '.join(live) or 'made-up interpreter only'} |")
    return "\n".join(out + ["", ODD])


ODD = """## Where a Python may live

Tested each time: embedded in a C program (`Py_RunMain`, `Py_Initialize`; shared, static, static and stripped, static
without its own section), in uWSGI, in Apache's mod_wsgi (main and subinterpreter), frozen by PyInstaller; a renamed
executable, a relocated prefix (as conda's are), one that is moved while it runs, a stripped one, one changed by patchelf, one
started through `ld.so`, one that was never a file (`memfd_create`); the executable deleted, replaced or overtaken by a new file
while it runs, `libpython` likewise; two `libpython` in one process (the one that is up is read; where both are, one of them and a
warning), or the same one twice (`dlmopen`); the JIT switched on (`PYTHON_JIT=1`); in a root of its own (`chroot`). Builds on musl are
tried by hand (`tools/get-pythons.sh musl`).

Subinterpreters: all of them, each thread named, from 3.8 on. Until 3.9 nothing in the process says which of its threads
runs a subinterpreter: looks at such a thread state are marked *unproved*.

## What is refused, by name

| | why |
| --- | --- |
| PyPy, GraalPy, MicroPython, CircuitPython | other interpreters: their frames are not CPython's |
| builds with `Py_TRACE_REFS` (before 3.8 every debug build) | two more words in front of every object |
| 32-bit programs | run a 64-bit Python |
| versions before 2.7, 3.0 to 3.5 | no row |

A version newer than the table is read through what it states of itself (`_Py_DebugOffsets`, 3.13 and later), with a warning.

When a Python is not found, `phlox -v dump -p PID` says what was tried and why it failed.
"""


def test_the_page_covers_every_row_and_interpreter():
    text = PAGE.read_text()
    for layout in LAYOUTS:
        assert f"\n| {layout} | " in text, f"docs/pythons.md: no row {layout}; make pythons-doc"
    kinds = {"-": "default", "t": "free-threaded", "d": "debug", "td": "free-threaded debug"}
    for python in INTERPRETERS:
        start = f"\n| {python.major}.{python.minor} | {kinds[python.flags]} | "
        assert start in text, f"docs/pythons.md does not know {python.name}; make pythons-doc"
    assert ODD in text, "docs/pythons.md: make pythons-doc"
    # What it says is what was held.
    for stacks, impossible, lines in re.findall(r"\| ([\d.]+) % \| (\d+) of [\d,]+ \| ([\d,]+ of [\d,]+) \|", text):
        assert float(stacks) >= 98 and impossible == "0" and len(set(lines.split(" of "))) == 1
