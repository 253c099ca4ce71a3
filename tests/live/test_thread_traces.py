"""The spans that threads work for, as a process publishes them (OpenTelemetry's thread context): a sample of a function that is named
after a span has that span, and one of nothing() has none."""
import bisect
import collections
import pathlib
import platform
import subprocess

import pytest

from live_support import PHLOX, SLOWER, Python, Recording, Target, once_a_version, since
from programs import embedded
from test_kernel import possible

PROGRAMS = pathlib.Path(__file__).parent / "programs"
SYSTEM = Python("system", "/usr/bin/python3", 3, 11, "-")
MODES = (["kernel"] if possible() else []) + ["no-kernel"]
each_mode = pytest.mark.parametrize("mode", MODES)
DESCRIPTORS = "-mtls-dialect=gnu2" if platform.machine() == "x86_64" else "-mtls-dialect=desc"
BY_CALL = "-mtls-dialect=gnu" if platform.machine() == "x86_64" else "-mtls-dialect=trad"
# What the compiler makes of the variable. In a large block it is not next to the thread pointer.
KINDS = {
    "descriptor": [DESCRIPTORS, "-DPAD=4096"],
    "descriptor-static": [DESCRIPTORS],
    "call": [BY_CALL, "-DPAD=4096"],
    "offset": ["-ftls-model=initial-exec"],
    "own-module": [DESCRIPTORS, "-DPAD=4096", "-Wl,-Bsymbolic"],
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    made = {}

    def library_(kind):
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp("traces") / f"{kind}.so"
            subprocess.run(["gcc", "-O1", "-shared", "-fPIC", *KINDS[kind], PROGRAMS / "thread_context.c", "-o", made[kind]], check=True)
        return made[kind]

    return library_


def record(target, path, *more, seconds=3):
    subprocess.run([PHLOX, "record", "-q", "-d", str(seconds * SLOWER), "-o", path, *more, "-p", str(target.pid)], check=True, timeout=120)
    return Recording(path)


def spans_of_functions(recording, states=(1, 2, 3)):
    """-> {(thread, function): {(trace, span) or None: nanoseconds}}; `states`: of the samples (docs/recording.md, state.cpu)"""
    times = collections.defaultdict(list)
    for thread, start, end, trace, span in recording.query("SELECT thread, start_ns, end_ns, trace, span FROM trace_time ORDER BY thread, start_ns"):
        assert not times[thread] or times[thread][-1][1] <= start, "times of a thread overlap"
        times[thread].append((start, end, trace, span))
    begins = {thread: [row[0] for row in rows] for thread, rows in times.items()}
    ((epoch,),) = recording.query("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'sample_epoch_ns'")
    found = collections.defaultdict(collections.Counter)
    for thread, name, start, wall, stack in recording.query(f"SELECT thread, name, start_us, wall_ns, stack FROM sample JOIN thread ON thread.id = thread JOIN state ON state.id = state WHERE stack IS NOT NULL AND cpu IN {states}"):
        function = {"span_17", "span_34", "nothing"} & {frame[1] for frame in recording.stack(stack)}
        if not function:
            continue
        begin, end = epoch + start * 1000, epoch + start * 1000 + wall
        counts, left = found[name, function.pop()], wall
        rows = times[thread]
        for row in rows[max(0, bisect.bisect(begins.get(thread, []), begin) - 1):]:
            if row[0] >= end:
                break
            # A recording has microseconds of the beginning.
            common = max(0, min(end, row[1]) - max(begin, row[0]) - 1000)
            counts[row[2:]] += common
            left -= common
        counts[None] += left
    return found


def check(found, mode):
    # From outside, the time before a sample that found another span belongs to none.
    least = {"kernel": 0.9, "no-kernel": 0.7, "hands-off": 0}[mode]
    assert {function for _, function in found} == {"span_17", "span_34", "nothing"}, found
    for (thread, function), counts in found.items():
        total = sum(counts.values())
        number = int(function[-2:]) if function != "nothing" else 0
        expected = (f"{int(thread[-3:]):02x}" * 16, f"{number:02x}" * 8) if number else None
        # At the edges of what is joined, the time since the last sample belongs to this one.
        assert sum(time for ids, time in counts.items() if ids not in (expected, None)) <= 0.01 * total, (thread, function, counts)
        assert counts[expected] >= least * total, (thread, function, counts)


@since(3, 8)
@each_mode
@once_a_version
def test_each_sample_has_the_span_of_its_thread(python, mode, library, tmp_path):
    with Target(python, PROGRAMS / "traces.py", library("descriptor")) as target:
        recording = record(target, tmp_path / "a.phlox", "--mode", mode)
    check(spans_of_functions(recording), mode)
    assert recording.query("SELECT value FROM meta WHERE key = 'resource.1'")[0][0].startswith("service.name=shop")


@each_mode
@pytest.mark.parametrize("kind", list(KINDS)[1:])
def test_wherever_the_variable_lies(kind, mode, library, tmp_path):
    with Target(SYSTEM, PROGRAMS / "traces.py", library(kind)) as target:
        check(spans_of_functions(record(target, tmp_path / "a.phlox", "--mode", mode)), mode)


@each_mode
def test_a_variable_of_the_program_itself(mode, tmp_path):
    program = embedded(tmp_path / "shop-server", False, str(PROGRAMS / "thread_context.c"), "-Wl,--export-dynamic")
    with Target(SYSTEM._replace(path=str(program)), PROGRAMS / "traces.py") as target:
        check(spans_of_functions(record(target, tmp_path / "a.phlox", "--mode", mode)), mode)


@each_mode
def test_with_native_frames(mode, library, tmp_path):
    with Target(SYSTEM, PROGRAMS / "traces.py", library("descriptor")) as target:
        check(spans_of_functions(record(target, tmp_path / "a.phlox", "--native", "--mode", mode)), mode)


@each_mode
def test_what_is_published_late_is_found(mode, library, tmp_path):
    with Target(SYSTEM, PROGRAMS / "traces.py", library("descriptor"), "1") as target:
        found = spans_of_functions(record(target, tmp_path / "a.phlox", "--mode", mode, seconds=8))
    assert all(sum(time for ids, time in counts.items() if ids) > 0.3 * sum(counts.values()) for (_, function), counts in found.items() if function != "nothing"), found


def test_hands_off_has_none_of_threads_that_run(library, tmp_path):
    with Target(SYSTEM, PROGRAMS / "traces.py", library("descriptor")) as target:
        recording = record(target, tmp_path / "a.phlox", "--mode", "hands-off")
    check(spans_of_functions(recording), "hands-off")
    running = spans_of_functions(recording, (1, 1)).values()
    assert sum(counts[None] for counts in running) >= 0.98 * sum(sum(counts.values()) for counts in running) > 0, running
