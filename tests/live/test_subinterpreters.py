"""Every interpreter of a process: each of its threads has its own name and only its own frames."""
import pathlib
import re

import pytest

from live_support import Target, once_a_version, since

PROGRAM = pathlib.Path(__file__).parent / "programs" / "subinterpreters.py"


# Eight have more threads than one turn adds.
@pytest.mark.parametrize("count", [3, 8])
@since(3, 8)
@once_a_version
def test_all_interpreters_are_recorded_and_their_threads_named(python, record, count):
    with Target(python, PROGRAM, count) as target:
        recording = record(target.pid, 1.5, "-r", "500", "--max-overhead", "off")
    threads = recording.query("SELECT id, tid, interpreter, name FROM thread")
    by_interpreter = {number: {name: tid for _, tid, interpreter, name in threads if interpreter == number}
                      for number in range(count + 1)}
    hosts = {f"host-{number}" for number in range(1, count + 1)}
    assert hosts | {"MainThread"} <= set(by_interpreter[0])
    for number in range(1, count + 1):
        assert f"beside-{number}" in by_interpreter[number], threads
        # Before 3.10 nothing in the target says which thread runs a subinterpreter: its samples are unproved.
        if (python.major, python.minor) >= (3, 10):
            assert by_interpreter[number].get(f"host-{number}") == by_interpreter[0][f"host-{number}"], threads

    seen = {number: 0 for number in range(count + 1)}
    for interpreter, stack, looks, quality in recording.query(
            "SELECT t.interpreter, s.stack, s.samples, state.quality FROM sample s JOIN state ON state.id = s.state "
            "JOIN thread t ON t.id = s.thread WHERE s.stack IS NOT NULL"):
        if quality not in (0, 1):
            continue
        names = [frame[1] for frame in recording.stack(stack)]
        owners = {int(m.group(1)) for m in (re.match(r"s(\d+)_", name) for name in names) if m}
        assert owners <= {interpreter}, (interpreter, names)
        chain = [name.split("_")[1] for name in names if re.fullmatch(r"s\d+_(turn|a|b|c)", name)]
        assert chain == ["turn", "a", "b", "c"][:len(chain)], names
        seen[interpreter] += looks
    assert seen[0] > 20
    if (python.major, python.minor) >= (3, 10):
        assert all(looks > 20 for looks in seen.values()), seen

    # A thread that runs code of two interpreters has its CPU time counted once.
    if (python.major, python.minor) < (3, 10):
        return
    for number in range(1, count + 1):
        outer, inner = (recording.query("SELECT sum(s.cpu_ns) FROM sample s JOIN thread t ON t.id = s.thread WHERE t.name = ? "
                                        "AND t.interpreter = ?", f"host-{number}", which)[0][0] for which in (0, number))
        assert inner > 0
        assert outer < 0.2 * inner, (number, outer, inner)
