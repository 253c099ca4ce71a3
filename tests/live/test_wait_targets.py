"""Wait targets found by sampling from user space, compared with the program's own log."""
import pathlib

from live_support import Target, once_a_version, since
from wait_judge import WaitTargets

PROGRAMS = pathlib.Path(__file__).parent / "programs"


@since(3, 8)
@once_a_version
def test_what_a_wait_was_for(python, record, tmp_path):
    with Target(python, PROGRAMS / "awaiting.py", tmp_path, 4, 0.02, "look") as target:
        recording = record(target.pid, 3, "-r", "200", "--max-overhead", "off")
        while "done" not in target.process.stdout.readline():
            pass
        log = [line.split("\t") for line in (tmp_path / "log").read_text().splitlines()]
    found = WaitTargets(recording, "waiter", [(kind, name, int(start), int(wall)) for kind, name, start, wall in log], least=10_000_000, looks=True)
    assert not found.wrong, found.wrong[:5]
    kinds = {"socket", "client", "listener", "pipe", "device", "file", "time", "process"} | ({"object"} if python.minor >= 10 else set())
    assert set(found.by_kind) == kinds
    # The peer of a Unix socket cannot be seen from user space.
    unnamed = [(kind, name) for kind, name in found.unnamed if not name.endswith(".sock")]
    assert found.named >= 0.9 * (found.named + len(unnamed)), (found.named, unnamed)
