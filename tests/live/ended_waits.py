"""The long form of the test of wakers in test_kernel_waits.py: WAITS waits (20,000), on one interpreter.

sudo tests/live/ended_waits.py [WAITS [PYTHON [LIMIT]]], LIMIT is passed to --max-overhead"""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from live_support import PHLOX, Recording  # noqa: E402
from noise import Noise  # noqa: E402
from wait_judge import Ended, read_ended  # noqa: E402

PROGRAM = pathlib.Path(__file__).parent / "programs" / "ended.py"
SECONDS = 9


def one_round(python, folder, limit):
    path = folder / "ended.phlox"
    with Noise(), subprocess.Popen([python, "-u", PROGRAM, folder / "log"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        program.stdout.readline()
        subprocess.run([PHLOX, "record", "--mode", "kernel", "-p", str(program.pid), "-d", str(SECONDS), "-o", path, "--max-overhead", limit],
                       check=True, capture_output=True)
        (folder / "log.enough").touch()
        while "done" not in program.stdout.readline():
            pass
    found = Ended(Recording(path), read_ended(folder / "log"))
    path.unlink()
    return found


def main(waits=20000, python="/usr/bin/python3", limit="off"):
    named, silent, wrong = 0, 0, []
    by_kind = {}
    ended = [[0, 0], [0, 0]]
    while named + silent + len(wrong) < int(waits):
        with tempfile.TemporaryDirectory() as folder:
            found = one_round(python, pathlib.Path(folder), limit)
        named, silent, wrong = named + sum(found.named.values()), silent + sum(found.silent.values()), wrong + found.wrong
        for kind in found.named + found.silent:
            of_kind = by_kind.setdefault(kind, [0, 0])
            of_kind[0] += found.named[kind]
            of_kind[1] += found.silent[kind]
        for sums, counts in zip(ended, found.counts()):
            for i, count in enumerate(counts):
                sums[i] += count
    for kind, (right, nothing) in sorted(by_kind.items()):
        print(f"{kind:28} named {right:6} not known {nothing:6}")
    print(json.dumps({"waits": named + silent + len(wrong), "wrong": len(wrong), "timed_out": ended[0], "with_waker": ended[1]}))
    for one in wrong[:20]:
        print("wrong:", *one)
    sys.exit(bool(wrong) or ended[1][1] < 0.95 * ended[1][0])


main(*sys.argv[1:])
