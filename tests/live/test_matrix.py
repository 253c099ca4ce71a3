"""The checks behind docs/pythons.md, for every interpreter: stacks against what is possible, lines against the program's own
report, cost by the recording's figures. The run writes the page into the build directory; `make pythons-doc`
copies it to docs/."""
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
    """The layout row with which an interpreter is read."""
    return f"{python.major}.{python.minor}" + ("t" if "t" in python.flags else "") + (" debug" if "d" in python.flags else "")


def build_of(python):
    """Where it comes from: a name of tools/get-pythons.sh without the version."""
    if re.match(r"\d", python.name):  # built from source
        return "built from source" + (", musl" if "musl" in python.name else "")
    return {"system": "this system's", "pyenv": "pyenv", "standalone": "python-build-standalone", "debian": "Debian bullseye",
            "trixie": "Debian trixie", "sid": "Debian sid", "maven": "bytedeco"}.get(python.name.split("-")[0], python.name)


@pytest.fixture(scope="session")
def rows():
    """The results of this run by interpreter; written as the page when all are there."""
    found = {}
    yield found
    if set(found) == {p.name for p in INTERPRETERS}:
        (BUILD / "pythons.md").write_text(page(found))


def test_stacks_and_lines_are_right(python, record, rows, tmp_path):
    with Target(python, TARGETS / "hard.py", 60, 50) as target:
        stacks = record(target.pid, SECONDS, "-r", "1000", "--max-overhead", "off")
    looks, impossible, examples = families.judge(stacks)
    samples = stacks.counter("samples")
    rejected = sum(stacks.counter(f"rejected_{why}") for why in ("moved", "unreadable", "broken"))

    with Target(python, LINES, tmp_path / "lines.json") as target:
        lines = record(target.pid, SECONDS, "-r", "1000", "--max-overhead", "off")
    reported = reported_lines(tmp_path / "lines.json")
    spots, right, wrong = lines_of(lines, reported)

    found_by, = stacks.query("SELECT found_by FROM process")[0]
    rows[python.name] = Row(found_by, looks, impossible, 1 - rejected / samples, stacks.counter("target_time_ns") / samples / 1e3, spots, right)
    assert impossible == 0, examples[:3]
    assert looks > 50
    assert rejected <= 0.02 * samples
    assert right == spots, [stack for stack in wrong if stack not in reported][:2]
    assert spots > 50
    assert len(reported) > 60


def page(found):
    out = [
        HEAD,
        "| version | build | by | found by | stacks right | impossible stacks | lines right | µs a sample |",
        "| --- | --- | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    kinds = {"-": "default", "t": "free-threaded", "d": "debug", "td": "free-threaded debug"}
    for python in sorted(INTERPRETERS, key=lambda p: (p.major, p.minor, p.flags, build_of(p), p.name)):
        r = found[python.name]
        found_by = re.sub(r" in .*/", " in ", r.found_by)
        out.append(f"| {python.major}.{python.minor} | {kinds[python.flags]} | {build_of(python)} | {found_by} | {100 * r.accepted:.2f} % "
                   f"| {r.impossible} of {r.looks:,} | {r.lines_right:,} of {r.lines:,} | {r.cost:.1f} |")
    out += ["", ROWS, "| row | live |", "| --- | --- |"]
    for layout in LAYOUTS:
        live = sorted({build_of(p) for p in INTERPRETERS if row_of(p) == layout})
        out.append(f"| {layout} | {', '.join(live) or 'made-up interpreter only'} |")
    return "\n".join(out + ["", ODD])


HEAD = """# Pythons

This page says which Pythons phlox reads, and how well. `make pythons-doc` writes it, on a machine
with every interpreter that `tools/get-pythons.sh` fetches. The tests check on every machine that it
is true.

- *Stacks right*: the share of samples that were accepted. The program replaces its stack, 50 calls
  deep, every few microseconds, and phlox takes 1,000 samples a second. Samples that are not
  accepted are counted and shown; phlox never guesses.
- *Impossible stacks*: accepted samples with a stack that cannot have existed: it mixes two families
  of functions, leaves a call out, or has another order.
- *Lines right*: samples in which every function, file, first line and line of the stack is one that
  the program itself reported (`sys._getframe`). The code is awkward: decorators, calls over several
  lines, comprehensions, generators, coroutines, `match`, exceptions and groups of them, calls from
  C, `eval` and `exec`, lines that go backwards, lines past 65,535, odd names.
- *µs a sample*: CPU time that a sample takes from the target, by the recording's own figures,
  wake-ups included. It is from one run on a busy two-core machine with cold caches: use it to
  compare rows, not as a promise. Up to 3.10 a frame is an object of its own, anywhere on the heap,
  so 50 calls are fifty places to copy; from 3.11 on they are on one page.

[benchmarks.md](benchmarks.md) has longer measurements, both against what is true and of the cost.
"""

ROWS = """## Rows

One row of the version table ([adding-a-python.md](adding-a-python.md)) reads every patch level of a
version and build. Every row is tested on a made-up interpreter with that row's layout. Rows for
which an interpreter could be had are tested live, too.
"""

ODD = """## Where a Python may be

These are tested each time:

- embedded in a C program (`Py_RunMain`, `Py_Initialize`): shared, static, static and stripped, or
  static without its own section;
- in uWSGI, and in Apache's mod_wsgi (main interpreter and subinterpreter);
- frozen by PyInstaller;
- an executable that was renamed, stripped, changed by patchelf, or started through `ld.so`;
- an executable that was never a file (`memfd_create`);
- a relocated prefix (as conda's are), and one that is moved while it runs;
- an executable that is deleted, replaced or overtaken by a new file while it runs, and `libpython`
  likewise;
- two `libpython` in one process: phlox reads the one that has an interpreter; if both have one, it
  reads one of them and warns;
- the same `libpython` twice (`dlmopen`);
- the JIT switched on (`PYTHON_JIT=1`);
- a root of its own (`chroot`).

Builds on musl are tried by hand (`tools/get-pythons.sh musl`).

From 3.8 on, phlox reads all subinterpreters of a process and names each thread. Before 3.10,
nothing in the process says which of its threads runs a subinterpreter: samples of such a thread
state are marked *unproved*.

## What phlox refuses, by name

| | why |
| --- | --- |
| PyPy, GraalPy, MicroPython, CircuitPython | other interpreters: their frames are not CPython's |
| builds with `Py_TRACE_REFS` (before 3.8 every debug build) | two more words in front of every object |
| 32-bit programs | run a 64-bit Python |
| versions before 2.7, 3.0 to 3.5 | no row |

phlox reads a version newer than the table by what that version says about itself
(`_Py_DebugOffsets`, 3.13 and later), with a warning.

When phlox does not find a Python, `phlox -v dump -p PID` says what was tried and why it failed.
"""


def test_the_page_covers_every_row_and_interpreter():
    text = PAGE.read_text()
    for layout in LAYOUTS:
        assert f"\n| {layout} | " in text, f"docs/pythons.md: no row {layout}; make pythons-doc"
    kinds = {"-": "default", "t": "free-threaded", "d": "debug", "td": "free-threaded debug"}
    for python in INTERPRETERS:
        start = f"\n| {python.major}.{python.minor} | {kinds[python.flags]} | "
        assert start in text, f"docs/pythons.md does not know {python.name}; make pythons-doc"
    for words in (HEAD, ROWS, ODD):
        assert words in text, "docs/pythons.md: make pythons-doc"
    # The page says what was proved.
    for stacks, impossible, lines in re.findall(r"\| ([\d.]+) % \| (\d+) of [\d,]+ \| ([\d,]+ of [\d,]+) \|", text):
        assert float(stacks) >= 98 and impossible == "0" and len(set(lines.split(" of "))) == 1
