"""Wait targets found by sampling from user space, compared with the program's own log."""
import pathlib

from live_support import Target, once_a_version, since
from wait_judge import WaitTargets

PROGRAMS = pathlib.Path(__file__).parent / "programs"


@since(3, 8)
@once_a_version
def test_what_a_wait_was_for(python, record, tmp_path):
    kinds = {"socket", "client", "listener", "pipe", "device", "file", "time", "process"} | ({"object"} if python.minor >= 10 else set())
    # Where others have the CPUs, a wait of 20 ms may be over before it is sampled.
    for seconds, pause in ((3, 0.02), (10, 0.1)):
        folder = tmp_path / str(pause)
        folder.mkdir()
        with Target(python, PROGRAMS / "awaiting.py", folder, seconds + 1, pause, "look") as target:
            recording = record(target.pid, seconds, "-r", "200", "--max-overhead", "off")
            while "done" not in target.process.stdout.readline():
                pass
            log = [line.split("\t") for line in (folder / "log").read_text().splitlines()]
        found = WaitTargets(recording, "waiter", [(kind, name, int(start), int(wall)) for kind, name, start, wall in log], least=10_000_000, looks=True)
        assert not found.wrong, found.wrong[:5]
        if set(found.by_kind) == kinds:
            break
    assert set(found.by_kind) == kinds
    # The peer of a Unix socket cannot be seen from user space.
    unnamed = [(kind, name) for kind, name in found.unnamed if not name.endswith(".sock")]
    assert found.named >= 0.9 * (found.named + len(unnamed)), (found.named, unnamed)
