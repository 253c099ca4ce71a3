"""`--mode kernel --native`: registers, C stack and the kernel's frames come from the same interrupt as the Python frames."""
import re
import subprocess

import pytest

from host_facts import kernel_tells_names
from judge import Case, judge
from live_support import PHLOX, TARGETS, Target, families_never_mix, few_pythons, once_a_version, since, sound
from test_kernel import possible
from test_native import (HERE, NESTED, PROGRAM, SECONDS, WITH_HEADERS, extension, in_order, needs_trampolines, share, stacks,  # noqa: F401
                         trampolines_are_named, mode, whole, with_headers)
from test_native_judge import NESTED as EVALUATIONS, SYSTEM, needs

pytestmark = pytest.mark.skipif(not possible(), reason="phlox doctor: --mode kernel cannot be had here")
MODE = ("--native", "--mode", "kernel", "-r", "1000", "--max-overhead", "off")


@pytest.fixture
def inside(record):
    """record(), in this mode only."""
    def run(target, seconds=SECONDS):
        recording = record(target.pid, seconds, *MODE)
        assert mode(recording) == "in the kernel (BPF), with native frames, the kernel's too"
        assert recording.counter("lost") == 0
        return recording
    return run


@once_a_version
@since(3, 8)
def test_python_in_c_in_python_seven_deep(python, inside):
    with Target(python, PROGRAM, "", "nested") as target:
        recording = inside(target)
    deep = 0
    for _, frames, _ in stacks(recording):
        found = [name for name in (one.split(".")[-1] for one in frames) if name in NESTED]
        assert found == NESTED[:len(found)], frames
        deep += len(found) == len(NESTED)
    assert deep > 0
    assert recording.counter("native_unmerged") <= recording.counter("native") * 0.01
    assert whole(recording) > 0.98
    assert recording.counter("native") >= 0.98 * recording.counter("samples")


@since(3, 8)
@once_a_version
def test_families_of_functions_never_mix(python, inside):
    with Target(python, TARGETS / "hard.py", 60, 50) as target:
        recording = inside(target, seconds=1)
    assert families_never_mix(sound(recording)) > 300
    assert whole(recording) > 0.98


@with_headers
def test_an_extension_s_functions(builder, inside, extension):  # noqa: F811
    with Target(builder, PROGRAM, extension(builder), "called_from_c") as target:
        recording = inside(target)
    wanted = ["<module>", "called_from_c", "call", "ext_call", "in_extension", "spin", "ext_middle", "ext_spin"]
    assert share(stacks(recording), lambda frames: in_order(frames, wanted)) > 0.9


@with_headers
def test_a_thread_that_gave_the_gil_away(builder, inside, extension):  # noqa: F811
    with Target(builder, PROGRAM, extension(builder), "without_gil") as target:
        recording = inside(target)
    wanted = ["<module>", "without_gil", "spin_without_gil", "ext_middle", "ext_spin"]
    assert share(stacks(recording), lambda frames: in_order(frames, wanted)) > 0.9


@with_headers
def test_a_thread_without_python(builder, inside, extension):  # noqa: F811
    with Target(builder, PROGRAM, extension(builder), "pool") as target:
        recording = inside(target)
    rows = recording.query("SELECT id, python_id FROM thread WHERE kernel_name = 'ext-pool'")
    assert [python_id for _, python_id in rows] == [0]
    names = [names for names, *_ in recording.stacks("ext-pool")]
    assert sum("ext_pool" in one and "ext_middle" in one for one in names) > 0.9 * len(names)
    (used,), = recording.query("SELECT sum(cpu_ns) FROM sample JOIN thread ON thread.id = thread WHERE kernel_name = 'ext-pool'")
    assert used > 0.2 * recording.counter("elapsed_ns")


@with_headers
def test_a_thread_that_comes_and_goes_is_one_thread(builder, inside, extension):  # noqa: F811
    """A thread state is created for each call into Python."""
    with Target(builder, PROGRAM, extension(builder), "visitor") as target:
        recording = inside(target, seconds=1.2)
    rows = recording.query("SELECT id, end_ns - start_ns FROM thread WHERE kernel_name = 'ext-visitor'")
    assert len(rows) == 1, rows
    inside_python = outside = 0
    for names, _, wall, quality in recording.stacks("ext-visitor"):
        assert quality != 4
        if "visited" in names:
            inside_python += wall
        else:
            outside += wall
    assert inside_python > 0 and outside > 0.1 * (inside_python + outside)
    # Since it was first seen.
    assert inside_python + outside == pytest.approx(rows[0][1], rel=0.1)


@pytest.mark.parametrize("what, function, leaf", [("asleep", "sleep_by_frame_pointer", "ext_nap"), ("naps", "naps", "sleep|select")])
@with_headers
def test_a_wait_has_the_native_frames_that_it_began_with(builder, what, function, leaf, inside, extension):  # noqa: F811
    """With the registers of the system call, including the frame pointer."""
    with Target(builder, PROGRAM, extension(builder), what) as target:
        recording = inside(target)
    waits = [(names, wall) for names, _, wall, _ in recording.stacks() if function in names]
    found = sum(wall for names, wall in waits if any(re.search(leaf, name) for name in names[names.index(function) + 1:]))
    (asleep,), = recording.query("SELECT sum(wall_ns) FROM sample JOIN state ON state.id = sample.state WHERE state.cpu = 3")
    assert asleep > 0.1 * recording.counter("elapsed_ns")
    assert found > 0.9 * asleep
    assert recording.counter("native_cut") == 0


def test_long_waits_of_a_program_that_switches_more_often_than_is_paid_for(record, tmp_path):
    """A stack that was not copied when a wait began is copied when it ends."""
    (tmp_path / "passing.py").write_text("import os, sys, threading\nsys.setswitchinterval(1e-5)\ndef spin():\n    while True: sum(range(100))\n"
                                         "[threading.Thread(target=spin, daemon=True).start() for _ in range(7)]\n"
                                         "print('ready', os.getpid(), flush=True)\nspin()\n")
    with Target(SYSTEM, tmp_path / "passing.py") as target:
        recording = record(target.pid, 4, "--native", "--mode", "kernel", "-r", "100", "--max-overhead", "1")
    waits = recording.query("SELECT s.stack, s.wall_ns FROM sample s JOIN state ON state.id = s.state WHERE state.cpu = 3 AND s.wall_ns > 1000000 "
                            "AND state.waker IS NOT NULL")
    assert len(waits) > 50
    whole = sum(wall for stack, wall in waits if {0, 1} <= {frame[0] for frame in recording.stack(stack)})
    assert whole > 0.9 * sum(wall for _, wall in waits)


@once_a_version
@since(3, 8)
def test_a_thread_blocked_before_the_recording_is_read_in_place(python, inside):
    with Target(python, PROGRAM, "", "blocked") as target:
        recording = inside(target)
    found = [names for names, *_ in recording.stacks() if "wait" in names]
    assert found
    assert all(any("read" in name for name in names[names.index("wait") + 1:]) for names in found), found[0]
    assert recording.counter("native_unmerged") == 0


def test_threads_without_python_that_were_blocked_before(inside, tmp_path):
    """Threads of C that wait for work, like a pool of BLAS."""
    (tmp_path / "parked.c").write_text("#include <pthread.h>\n#include <unistd.h>\nvoid* parked(void* n) { for (;;) pause(); }\n"
                                       "int park(void) { pthread_t id; return pthread_create(&id, 0, parked, 0); }\n")
    subprocess.run(["gcc", "-O1", "-g", "-shared", "-fPIC", tmp_path / "parked.c", "-o", tmp_path / "parked.so"], check=True)
    (tmp_path / "parked.py").write_text("import ctypes, os\nlibrary = ctypes.CDLL(%r)\n[library.park() for _ in range(3)]\n"
                                        "print('ready', os.getpid(), flush=True)\nwhile True: pass\n" % str(tmp_path / "parked.so"))
    with Target(SYSTEM, tmp_path / "parked.py") as target:
        recording = inside(target)
    rows = recording.query("SELECT t.id, sum(s.wall_ns), s.stack FROM thread t JOIN sample s ON s.thread = t.id WHERE t.python_id = 0 GROUP BY 1")
    assert len(rows) == 3
    for _, wall, stack in rows:
        assert wall > 0.5 * recording.counter("elapsed_ns")
        assert any(frame[1] == "parked" for frame in recording.stack(stack)), recording.stack(stack)


def test_kernel_frames_beneath_the_system_call(inside):
    with Target(SYSTEM, HERE / "captured.py", "reads") as target:
        recording = inside(target, seconds=1.5)
    deep = 0
    for stack in {stack for stack, in recording.query("SELECT DISTINCT stack FROM sample WHERE stack IS NOT NULL")}:
        kinds = [frame[0] for frame in recording.stack(stack)]
        assert kinds == sorted(kinds, key=lambda kind: kind == 2), recording.stack(stack)
        deep += kinds.count(2) >= 2
    assert deep > 0
    if kernel_tells_names():
        names = {function for kind, function, *_ in recording.frames.values() if kind == 2}
        assert {"vfs_read", "ksys_read"} <= names, names


@since(3, 12)
@once_a_version
def test_trampolines_are_named_by_the_perf_map(python, inside):
    needs_trampolines(python)
    with Target(python, "-X", "perf", PROGRAM, "", "trampolines") as target:
        recording = inside(target)
    trampolines_are_named(recording)


def test_numpy(inside):
    with Target(SYSTEM, PROGRAM, "", "numpy_sort") as target:
        recording = inside(target)
    assert whole(recording) > 0.98
    assert share(stacks(recording), lambda frames: in_order(frames, ["<module>", "numpy_sort"])) > 0.9


def test_another_source_of_native_frames_is_refused_by_name():
    done = subprocess.run([PHLOX, "record", "--mode", "kernel", "--native", "--native-source", "ptrace", "-p", "1"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "--native-source" in done.stderr


@once_a_version
@since(3, 8)
def test_gdb_finds_the_same_stack(python, tmp_path):
    """A stopped process leaves its CPU with the stack that gdb finds then."""
    needs(python, "ctypes", "zlib")
    judge(Case(python, tmp_path, record=MODE), EVALUATIONS)


@since(3, 8)
@few_pythons
def test_gdb_finds_the_same_stacks_of_several_threads(python, tmp_path):
    needs(python, "ctypes", "zlib")
    case = Case(python, tmp_path, script="threads.py", record=MODE)
    assert len(judge(case, ["work", *EVALUATIONS[1:6], "generator"])) == len(case.said) * len(case.moments)
