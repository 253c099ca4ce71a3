"""phlox record keeps which tasks wait for which jobs of thread pools: compared with a program in which each job's function is
waited for by one chain of coroutines, on every interpreter."""
import collections
import pathlib
import subprocess

import pytest

from live_support import PHLOX, Recording, Target, has, once_a_version, since

PROGRAM = pathlib.Path(__file__).with_name("programs") / "job_waiters.py"
# The program's own coroutines, those of several tasks one after the other. None: no task waits for it.
CHAINS = {
    "direct_work": ("again", "direct"),
    "busy_work": ("again", "busy"),
    "gathered_work": ("again", "gathered"),
    "inner_work": ("again", "nested", "inner"),
    "shielded_work": ("again", "shielded"),
    "timed_work": ("again", "timed"),
    "of_thread_work": ("again", "of_thread"),
    "lonely_work": None,
    "anyio_work": ("again", "of_anyio"),
    "asgiref_work": ("again", "of_asgiref"),
    "trio_work": ("of_trio",),
    "trio_anyio_work": ("of_trio",),
}
OF_TRIO = {"trio_work", "trio_anyio_work"}
# By package: the jobs that need it.
NEEDS = {"anyio": {"anyio_work", "trio_anyio_work"}, "asgiref": {"asgiref_work"}}


def words_for(python):
    """-> (words for the program, jobs that this interpreter cannot have)"""
    words = [package for package in NEEDS if has(python, package)]
    return words, set().union(*(jobs for package, jobs in NEEDS.items() if package not in words))


def record(python, path, *words):
    """-> {function of a job: {chain that waits for it: how often}}"""
    with Target(python, PROGRAM, *words) as target:
        subprocess.run([PHLOX, "record", "-q", "-d", "8", "-o", path, "--max-overhead", "10", "-p", str(target.pid)], check=True, timeout=120)
    recording = Recording(path)
    parents = {row[0]: row[1:] for row in recording.query("SELECT id, parent, frame FROM task_stack")}
    found = collections.defaultdict(collections.Counter)
    for function, stack, seen in recording.query("SELECT frame, stack, seen FROM job_waiter"):
        names = []
        is_none = stack is None
        while stack:
            stack, frame = parents[stack]
            if recording.frames[frame][3].endswith("job_waiters.py"):
                names.append(recording.frames[frame][1])
        found[recording.frames[function][1]][None if is_none else tuple(names[::-1])] += seen
    return found


def check(found, missing=()):
    assert set(found) == set(CHAINS) - set(missing), found
    for function, chains in found.items():
        expected = CHAINS[function]
        # The outermost coroutine, main() or trio's, may stand beneath.
        right = sum(seen for chain, seen in chains.items() if chain and expected and chain[-len(expected):] == expected)
        wrong = {chain: seen for chain, seen in chains.items() if chain is not None and (expected is None or chain[-len(expected):] != expected)}
        assert not wrong, (function, chains)
        # A task that changes each time it is read is left out.
        assert right >= 1 if expected else None in chains, (function, chains)
        assert sum(chains.values()) - (right or chains[None]) <= 1 + 0.1 * sum(chains.values()), (function, chains)


@once_a_version
@pytest.mark.usefixtures("loops")
@since(3, 8)
def test_each_job_has_the_chain_that_waits_for_it(python, tmp_path):
    words, missing = words_for(python)
    missing |= OF_TRIO | ({"of_thread_work"} if python.minor < 9 else set())
    check(record(python, tmp_path / "a.phlox", *words), missing)


@once_a_version
@pytest.mark.usefixtures("loops")
@since(3, 8)
@pytest.mark.parametrize("loop", ["uvloop", "trio"])
def test_other_loops_have_the_same(python, loop, tmp_path):
    if not has(python, loop):
        pytest.skip(f"this interpreter has no {loop}")
    words, missing = words_for(python)
    missing |= set(CHAINS) - OF_TRIO if loop == "trio" else OF_TRIO
    check(record(python, tmp_path / "a.phlox", loop, *words), missing)
