"""The capture inside the kernel (--mode kernel): the checks of test_truth.py, and those that only it allows."""
import collections
import ctypes
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import time

import pytest

from live_support import PHLOX, TARGETS, Recording, Target, begins_with_the_generator, families_never_mix, names_are_of_one_moment, once_a_version, since, sound

PROGRAMS = pathlib.Path(__file__).parent / "programs"
MODE = ("--mode", "kernel", "-r", "2000", "--max-overhead", "off")


def possible():
    said = subprocess.run([PHLOX, "doctor"], capture_output=True, text=True).stdout
    return re.search(r"^yes +BPF", said, re.M) is not None


pytestmark = pytest.mark.skipif(not possible(), reason="phlox doctor: --mode kernel cannot be had here")


@pytest.fixture
def inside(record):
    return lambda pid, seconds, *options: record(pid, seconds, *MODE, *options)


def families(recording, least):
    assert families_never_mix(sound(recording)) > least
    assert recording.counter("rejected_broken") == 0
    rejected = sum(recording.counter(f"rejected_{why}") for why in ("moved", "unreadable", "broken"))
    assert rejected <= 0.01 * recording.counter("samples")
    assert recording.counter("lost") == 0
    assert recording.query("SELECT DISTINCT mode FROM process") == [("in the kernel (BPF)",)]


@since(3, 8)
@once_a_version
@pytest.mark.parametrize("depth", [3, 50])
def test_families_of_functions_never_mix(python, inside, depth):
    with Target(python, TARGETS / "hard.py", 60, depth) as target:
        families(inside(target.pid, 1), 300)


@since(3, 8)
@once_a_version
def test_a_generator_that_no_python_runs_is_a_whole_stack(python, inside):
    with Target(python, PROGRAMS / "driven.py", 60) as target:
        recording = inside(target.pid, 1)
    begins_with_the_generator(recording)


@since(3, 8)
@once_a_version
def test_families_never_mix_where_threads_pass_the_gil_on(python, inside):
    with Target(python, TARGETS / "hard_threads.py", 60) as target:
        families(inside(target.pid, 1), 300)


@since(3, 8)
@once_a_version
@pytest.mark.parametrize("kind", ["exec", "template"])
def test_a_name_is_of_the_moment(python, inside, kind):
    with Target(python, TARGETS / "fresh.py", 60, kind) as target:
        recording = inside(target.pid, 1)
    # Clock samples; a run without one is added to the last of them, which may come after a wait in a later function.
    rows = recording.query("SELECT stack, samples FROM sample s JOIN state ON state.id = s.state WHERE s.cpu_ns > 0 "
                           "AND stack IS NOT NULL AND state.quality IN (0, 1) ORDER BY s.start_us")
    assert names_are_of_one_moment(([frame[1] for frame in recording.stack(stack)], samples) for stack, samples in rows) > 100


def waits_in(recording, function):
    """(start, length) in ns of the times a thread was off its CPU, asleep and then runnable, with this function at the leaf."""
    leaves = {i for i in recording.parents if recording.stack(i)[-1][1] == function}
    (begin,) = recording.query("SELECT value FROM meta WHERE key = 'sample_epoch_ns'")[0]
    waits = []
    for start_us, wall, stack in recording.query("SELECT start_us, wall_ns, s.stack FROM sample s JOIN state ON state.id = s.state "
                                                 "WHERE state.cpu IN (2, 3) ORDER BY start_us"):
        if stack not in leaves:
            continue
        start = int(begin) + start_us * 1000
        if waits and abs(sum(waits[-1]) - start) < 5000:
            waits[-1] = (waits[-1][0], waits[-1][1] + wall)
        else:
            waits.append((start, wall))
    return waits


@since(3, 8)
@once_a_version
def test_a_wait_has_the_length_that_the_program_found(python, inside, tmp_path):
    with Target(python, PROGRAMS / "naps.py", tmp_path / "naps") as target:
        recording = inside(target.pid, 1.5)
    said = [tuple(map(int, line.split())) for line in (tmp_path / "naps").read_text().splitlines() if line.count(" ") == 1]
    found = waits_in(recording, "nap")
    assert len(found) > 10
    # All but the first and the last, which the recording cuts. The program's own work around each takes a few microseconds;
    # on a busy machine it waits for a CPU again before it reads its clock.
    off = [abs(min(said, key=lambda one: abs(one[0] - start))[1] - wall) for start, wall in found[1:-1]]
    assert statistics.median(off) < 200_000, sorted(off)


@since(3, 8)
@once_a_version
def test_all_of_a_thread_s_time_is_there(python, inside):
    with Target(python, TARGETS / "threads.py", 60) as target:
        recording = inside(target.pid, 1.5)
    elapsed = recording.counter("elapsed_ns")
    threads = recording.query("SELECT t.name, t.start_ns, t.end_ns, sum(s.wall_ns) FROM thread t JOIN sample s ON s.thread = t.id GROUP BY t.id")
    assert len(threads) == 6
    for name, start, end, wall in threads:
        assert abs(wall - (end - start)) <= 0.001 * (end - start), (name, wall, end - start)
        assert end - start > 0.9 * elapsed
    assert recording.query("SELECT count(*) FROM sample s JOIN state ON state.id = s.state WHERE state.cpu = 3")[0][0] > 0


@since(3, 8)
@once_a_version
def test_what_a_program_starts_is_recorded_too(python, inside, tmp_path):
    path = tmp_path / "tree.phlox"
    program = "import multiprocessing, time\ndef spin():\n    while time.process_time() < 0.5: pass\n" \
              "if __name__ == '__main__':\n    context = multiprocessing.get_context('fork')\n" \
              "    all = [context.Process(target=spin) for _ in range(2)]\n    [p.start() for p in all]; [p.join() for p in all]\n"
    (tmp_path / "tree.py").write_text(program)
    done = subprocess.run([PHLOX, "record", *MODE, "-o", path, "--", python.path, tmp_path / "tree.py"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    recording = Recording(path)
    assert recording.query("SELECT count(*), count(DISTINCT mode) FROM process") == [(3, 1)]
    spinning = {i for i in recording.parents if any(frame[1] == "spin" for frame in recording.stack(i))}
    cpu = sum(cpu for cpu, stack in recording.query("SELECT cpu_ns, stack FROM sample") if stack in spinning)
    assert 0.6e9 < cpu < 1.1e9, "each used half a second"
    # Pages of the program's file that a forked child has not touched are missing in its page tables; a read from user space finds them.
    assert recording.counter("rejected_unreadable") <= 0.05 * recording.counter("samples")


@since(3, 8)
@once_a_version
@pytest.mark.parametrize("leaf", ["while True: pass", "time.sleep(100)"])
def test_a_deep_stack_keeps_both_ends(python, inside, tmp_path, leaf):
    (tmp_path / "deep.py").write_text(
        "import os, sys, threading, time\nsys.setrecursionlimit(100000)\nthreading.stack_size(512 << 20)\n"
        f"def leaf():\n    print('ready %d' % os.getpid(), flush=True)\n    {leaf}\n"
        "def recurse(n):\n    return recurse(n - 1) if n else leaf()\n"
        "thread = threading.Thread(target=recurse, args=(5000,)); thread.start(); thread.join()\n")
    with Target(python, tmp_path / "deep.py") as target:
        recording = inside(target.pid, 0.5)
    deep = [(names, quality) for names, _, _, quality in recording.stacks() if "leaf" in names]
    assert deep
    for names, quality in deep:
        assert quality == 1 and names[-1] == "leaf" and any(name.startswith("_bootstrap") or name == "__bootstrap" for name in names[:3]), names[:4]
        (gap,) = [i for i, name in enumerate(names) if "left out" in name]
        recursions = int(re.match(r"\((\d+) frames left out\)", names[gap]).group(1)) + names.count("recurse")
        assert recursions == 5001, (names[gap], len(names))
        assert len(names[:gap]) == len(names[gap + 1:]) == 1024


@since(3, 8)
@once_a_version
def test_a_stack_that_is_too_deep_is_cut_and_says_so(python, inside, tmp_path):
    (tmp_path / "deep.py").write_text(
        "import os, sys, threading\nsys.setrecursionlimit(200000)\nthreading.stack_size(960 << 20)\n"
        "def leaf():\n    print('ready %d' % os.getpid(), flush=True)\n    while True: pass\n"
        "def recurse(n):\n    return recurse(n - 1) if n else leaf()\n"
        "thread = threading.Thread(target=recurse, args=(70000,)); thread.start(); thread.join()\n")
    with Target(python, tmp_path / "deep.py") as target:
        recording = inside(target.pid, 0.5)
    deep = [(names, quality) for names, _, _, quality in recording.stacks() if "leaf" in names]
    assert deep
    for names, quality in deep:
        assert quality == 1 and names[0] == "(more frames left out)" and names[-1] == "leaf", (quality, names[:2], names[-2:])
        assert set(names[1:-1]) == {"recurse"} and len(names) == 1025


@since(3, 13)
@once_a_version
def test_a_thread_is_in_the_subinterpreter_that_it_runs(python, inside):
    with Target(python, PROGRAMS / "subinterpreters.py") as target:
        recording = inside(target.pid, 1)
    hosts = recording.query("SELECT id FROM thread WHERE name LIKE 'host-%'")
    assert len(hosts) == 3
    owners = []
    for (host,) in hosts:
        looks = collections.Counter()
        for stack, samples in recording.query("SELECT stack, samples FROM sample WHERE thread = ? AND stack IS NOT NULL", host):
            names = [frame[1] for frame in recording.stack(stack)]
            chain = [name for name in names if re.fullmatch(r"s\d+_(turn|a|b|c)", name)]
            assert [name[3:] for name in chain] == ["turn", "a", "b", "c"][:len(chain)], names
            assert len({name[:3] for name in chain}) <= 1, names
            looks[chain[0][:3] if chain else "outside"] += samples
        inner = sum(looks.values()) - looks["outside"]
        assert inner > 50 and inner > 0.9 * sum(looks.values()), looks
        owners.append(max(looks, key=looks.get))
    assert len(set(owners)) == 3


def bpf_programs():
    """The programs loaded in this kernel, {number: name} (include/uapi/linux/bpf.h)."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    names, number = {}, 0
    while True:
        attributes = (ctypes.c_uint32 * 32)(number)
        if call(321, 11, attributes, 128) != 0:  # BPF_PROG_GET_NEXT_ID
            return names
        number = attributes[1]
        fd = call(321, 13, (ctypes.c_uint32 * 32)(number), 128)  # BPF_PROG_GET_FD_BY_ID
        if fd < 0:
            continue
        info = (ctypes.c_uint8 * 256)()
        attributes = (ctypes.c_uint32 * 32)(fd, 256)
        ctypes.memmove(ctypes.addressof(attributes) + 8, ctypes.byref(ctypes.c_uint64(ctypes.addressof(info))), 8)
        if call(321, 15, attributes, 128) == 0:  # BPF_OBJ_GET_INFO_BY_FD
            names[number] = (bytes(info[64:80]).split(b"\0")[0].decode())
        os.close(fd)


SYS_MODULE, SYS_ADMIN, BPF = 16, 21, 39


def test_it_gives_up_what_it_needs_no_more(tmp_path):
    recorder = subprocess.Popen([PHLOX, "record", *MODE, "-p", str(os.getpid()), "-o", tmp_path / "rights.phlox"], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 10
        while not (tmp_path / "rights.phlox").exists():
            assert time.monotonic() < deadline and recorder.poll() is None
            time.sleep(0.02)
        time.sleep(0.3)
        seen = [(task / "status").read_text() for task in pathlib.Path(f"/proc/{recorder.pid}/task").iterdir()]
        assert len(seen) > 1
        for status in seen:
            for held in re.findall(r"^Cap(?:Eff|Prm):\t(\w+)", status, re.M):
                assert int(held, 16) and not int(held, 16) & (1 << SYS_MODULE | 1 << SYS_ADMIN | 1 << BPF), status
    finally:
        recorder.send_signal(signal.SIGINT)
    assert recorder.wait() == 0


def test_a_recorder_that_is_killed_leaves_nothing_in_the_kernel(tmp_path):
    ours = {"on_clock", "on_switch", "on_waking", "on_exit", "on_fork", "on_exec"}

    others = bpf_programs()

    def loaded():
        return [name for number, name in bpf_programs().items() if number not in others and name in ours]
    record = [PHLOX, "record", *MODE, "-p", str(os.getpid()), "-o", tmp_path / "killed.phlox", "--force"]
    for instant in range(int(os.environ.get("PHLOX_KILLS", "10"))):
        recorder = subprocess.Popen(record, stderr=subprocess.DEVNULL)
        if instant == 0:  # while it records, they are there
            deadline = time.monotonic() + 10
            while len(loaded()) < len(ours):
                assert time.monotonic() < deadline and recorder.poll() is None, bpf_programs()
        else:
            time.sleep(random.uniform(0, 0.4))
        recorder.send_signal(signal.SIGKILL)
        assert recorder.wait() == -signal.SIGKILL
    deadline = time.monotonic() + 10  # the kernel frees them when no CPU can be running one any more
    while loaded():
        assert time.monotonic() < deadline, bpf_programs()
        time.sleep(0.05)
