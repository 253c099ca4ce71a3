"""No impossible stack, no name from another moment, on every interpreter. Short runs; `make bench` does the long ones."""
import contextlib
import os
import pathlib
import re
import subprocess

import pytest

from live_support import (BUILD, PHLOX, TARGETS, Target, begins_with_the_generator, families_never_mix, names_are_of_one_moment, once_a_version, share,
                          since, sound)

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
RATE = ("-r", "2000", "--max-overhead", "off")


def accepted(recording):
    samples = recording.counter("samples")
    rejected = sum(recording.counter(f"rejected_{why}") for why in ("moved", "unreadable", "broken"))
    assert samples > 0
    return 1 - rejected / samples


@pytest.mark.parametrize("depth", [3, 50])
def test_families_of_functions_never_mix(python, record, depth):
    with Target(python, TARGETS / "hard.py", 60, depth) as target:
        recording = record(target.pid, share(python, 1.5), *RATE)
    for names, _ in sound(recording):
        assert names[0] == "<module>", names
    assert families_never_mix(sound(recording)) > 200
    assert accepted(recording) > 0.98


def test_families_never_mix_where_threads_pass_the_gil_on(python, record):
    with Target(python, TARGETS / "hard_threads.py", 60) as target:
        recording = record(target.pid, share(python, 2), "-r", "1000", "--max-overhead", "off")
    assert families_never_mix(sound(recording)) > 200


# With more than 32 threads, a sample copies only the pages of those that moved.
@once_a_version
@pytest.mark.alone  # without a GIL, fifty leave no CPU to another test
def test_families_never_mix_in_a_crowd(python, record):
    with Target(python, TARGETS / "hard_threads.py", 60, 20, 50) as target:
        recording = record(target.pid, 1.5, "-r", "1000", "--max-overhead", "off")
    assert families_never_mix(sound(recording)) > 200


@once_a_version
def test_a_name_is_of_the_moment_in_a_crowd(python, record):
    with Target(python, TARGETS / "fresh.py", 60, "exec", 50) as target:
        recording = record(target.pid, 1.5, *RATE)
    # One stack represents several short waits, here for the GIL: it may be from before the last sample.
    assert names_are_of_one_moment([row for row in sound(recording, running=True) if "nap" not in row[0]]) > 100


def names_are_of_the_moment(python, record, kind):
    with Target(python, TARGETS / "fresh.py", 60, kind) as target:
        recording = record(target.pid, share(python, 1.5), *RATE)
    looks = names_are_of_one_moment(sound(recording))
    # Of 500 and more: the host may give our CPU to others.
    assert looks > 100
    assert accepted(recording) > 0.98


def test_a_name_is_of_the_moment_with_exec(python, record):
    names_are_of_the_moment(python, record, "exec")


@since(3, 8)  # code.replace()
def test_a_name_is_of_the_moment_with_templates(python, record):
    names_are_of_the_moment(python, record, "template")


def used_by(recording, function, least, *options):
    """Its share of the CPU time, of which there are at least this many seconds."""
    done = subprocess.run([PHLOX, "export", "-f", "collapsed", "--weight", "cpu", *options, recording.path], capture_output=True, text=True)
    rows = [line.rpartition(" ") for line in done.stdout.splitlines()]
    whole = sum(int(time) for *_, time in rows)
    assert whole > least * 1e9, done.stderr
    return sum(int(time) for stack, _, time in rows if f";{function} (" in stack) / whole


# When phlox makes a thread leave its CPU from another one, or stops it, that happens where it returns from the kernel: half and more of all samples were in the call.
@since(3, 13)  # how a thread is held does not depend on the version
@once_a_version
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("options", [(), ("--native", "--native-source", "ptrace")], ids=["python", "native"])
def test_calls_have_no_more_than_their_share(python, record, threads, options):
    with Target(python, PROGRAMS / "brief_calls.py", 60, threads) as target:
        recording = record(target.pid, 1.5, "-r", "200", "--max-overhead", "off", *options)
    in_call = used_by(recording, "call", 0.3, "--state", "running")
    # By its own clock; each call of a function adds a little.
    assert in_call < target.said[0] + 0.15, (in_call, target.said)


# Beside other programs a thread waits for its CPU most of the time, in a place that uses hardly any. Each sample there was once charged with the CPU time since
# the sample before.
@since(3, 13)  # how a thread is held does not depend on the version
@once_a_version
@pytest.mark.parametrize("options", [(), ("--mode", "hands-off"), ("--native", "--native-source", "ptrace")], ids=["python", "hands-off", "native"])
def test_a_wait_for_a_cpu_uses_none(python, record, options):
    with contextlib.ExitStack() as stack:
        target = stack.enter_context(Target(python, PROGRAMS / "gives_way.py", 60))
        for _ in range(2):
            stack.enter_context(Target(python, PROGRAMS / "gives_way.py", 60, target.said[0]))
        recording = record(target.pid, 2, "-r", "200", "--max-overhead", "off", *options)
    waiting, whole = recording.query("SELECT total(s.wall_ns) FILTER (WHERE state.cpu = 2), total(s.wall_ns) FROM sample s JOIN state ON state.id = s.state "
                                     "JOIN thread t ON t.id = s.thread WHERE t.name = 'works'")[0]
    assert waiting > 0.3 * whole, "it does wait for its CPU"
    assert used_by(recording, "give_way", 0.05) < 0.3  # 0.9 before; by its own clock 0.005 to 0.017


@since(3, 6)
def test_generators_and_exceptions(python, record):
    with Target(python, TARGETS / "leaf.py", 60) as target:
        recording = record(target.pid, share(python, 1.5), *RATE)
    assert accepted(recording) > 0.97
    assert recording.counter("detached") <= 0.03 * recording.counter("samples")
    # A generator that 3.12 has detached while it is still current_frame once made the whole stack empty.
    empty = recording.query("SELECT count(*) FROM sample s JOIN state ON state.id = s.state WHERE s.stack IS NULL AND state.quality IN (0, 1)")
    assert empty == [(0,)], "the program always has a frame"


# 3.11 marks the first frame of an evaluation, and nothing is below it.
@once_a_version
def test_a_generator_that_no_python_runs_is_a_whole_stack(python, record):
    with Target(python, PROGRAMS / "driven.py", 60) as target:
        recording = record(target.pid, 1, *RATE)
    begins_with_the_generator(recording)


def test_threads_and_what_they_wait_for(python, record):
    with Target(python, TARGETS / "threads.py", 60) as target:
        recording = record(target.pid, share(python, 2, least=1), "-r", "500", "--max-overhead", "off")
    states = recording.query("SELECT t.name, state.cpu, state.gil, sum(s.wall_ns) FROM sample s JOIN thread t ON t.id = s.thread "
                             "JOIN state ON state.id = s.state GROUP BY 1, 2, 3")
    threads = recording.query("SELECT count(*) FROM thread")[0][0]
    assert threads >= 3
    total = sum(wall for *_, wall in states)
    elapsed = recording.counter("elapsed_ns")
    assert 0.85 * threads * elapsed < total <= 1.02 * threads * elapsed, "every thread's whole time is accounted for"
    assert any(cpu == 3 for _, cpu, _, _ in states), "somebody is blocked"


@once_a_version
def test_threads_have_the_kernel_s_ids_and_their_own_names(python, record, tmp_path):
    # Before 3.11 a thread state does not hold the kernel's id; glibc's struct pthread does.
    with Target(python, pathlib.Path(__file__).parent / "programs" / "thread_ids.py", tmp_path / "ids") as target:
        recording = record(target.pid, 0.5, "-r", "200", "--max-overhead", "off")
    said = {tuple(line.split()) for line in (tmp_path / "ids").read_text().splitlines()}
    assert len(said) == 4
    assert {(name, str(tid)) for name, tid in recording.query("SELECT name, tid FROM thread")} == said


@once_a_version
def test_threads_of_a_container_s_first_process_have_their_ids(python, record, tmp_path):
    # Process 1 and its threads have small ids inside: before 3.11 those must not be mistaken for flags next to them.
    alone = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--pid", "--fork", "--kill-child", "--mount-proc"]
    program = [python.path, "-u", str(pathlib.Path(__file__).parent / "programs" / "thread_ids.py"), str(tmp_path / "ids")]
    with subprocess.Popen(alone + program, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready 1\n"
            pid = int(pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())
            outside = {re.search(r"NSpid:.*\s(\d+)\n", status.read_text()).group(1): status.parent.name
                       for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status")}
            recording = record(pid, 0.5, "-r", "200", "--max-overhead", "off")
        finally:
            process.kill()
    said = {(name, outside[inside]) for name, inside in map(str.split, (tmp_path / "ids").read_text().splitlines())}
    assert len(said) == 4
    assert {(name, str(tid)) for name, tid in recording.query("SELECT name, tid FROM thread")} == said


DEEP = """
import sys, threading
sys.setrecursionlimit(30000)
threading.stack_size(512 * 1024 * 1024)
def leaf():
    x = 0
    for i in range(1000): x += i
def recurse(n):
    if n == 0:
        print("ready %d" % __import__("os").getpid())
        sys.stdout.flush()
        while True: leaf()
    return recurse(n - 1)
def begin(): recurse(20000)
thread = threading.Thread(target=begin)
thread.start()
thread.join()
"""


@pytest.mark.skipif(BUILD.name == "tsan", reason="under the thread sanitizer a look at so many frames lasts too long for the proof")
def test_twenty_thousand_frames_are_cut_and_not_lost(python, record, tmp_path):
    script = tmp_path / "deep.py"
    script.write_text(DEEP)
    with Target(python, script) as target:
        recording = record(target.pid, share(python, 1.5), "-r", "100", "--max-overhead", "off")
    cut = [names for names, _, _, quality in recording.stacks() if quality == 1]
    assert cut, recording.query("SELECT name, sum(value) FROM counter GROUP BY name")
    for names in cut:
        assert any("frames left out" in name for name in names)
        assert names[-1] in ("leaf", "recurse")
        assert "begin" in names[:6]
