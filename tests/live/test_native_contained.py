"""`--native` on programs in their own container (mount and PID namespace), recorded from outside: the files of their JIT compiler
are in their own /tmp, under their own process id."""
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from live_support import PHLOX, Recording, once_a_version, since
from test_native import HERE, PROGRAM, RATE, SECONDS, needs_trampolines, trampolines_are_named

# The whole system below its own root, except /tmp and /proc. The programs of the tests may be below /tmp.
ROOT = """
set -e
root=$1 tree=$2; shift 2
mount --rbind / $root
mount -t tmpfs tmpfs $root/tmp
mkdir -p "$root$tree"
mount --bind "$tree" "$root$tree"
mount -t proc proc $root/proc
cd $root
pivot_root . mnt
umount -l mnt
exec "$@"
"""
ALONE = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]


class Contained:
    """A running Python in a container that has printed `ready`; `pid` is its id out here, `own_pid` its own."""

    def __init__(self, folder, python, *arguments):
        if subprocess.run([*ALONE, "true"], capture_output=True).returncode != 0:
            pytest.skip("may not make a namespace here")
        root = folder / "root"
        root.mkdir()
        self.process = subprocess.Popen([*ALONE, "sh", "-c", ROOT, "sh", str(root), str(HERE), python.path, "-u", *map(str, arguments)],
                                        stdout=subprocess.PIPE, text=True, cwd="/")
        said = re.match(r"ready (\d+)", self.process.stdout.readline())
        assert said, "it did not start"
        self.own_pid = int(said.group(1))
        self.pid = int(pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()[0])
        assert self.pid != self.own_pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def _named(python, option, file, ends, tmp_path):
    needs_trampolines(python)
    path = tmp_path / "recording.phlox"
    with Contained(tmp_path, python, "-X", option, PROGRAM, "", "trampolines") as target:
        inside, here = (folder / file.format(target.own_pid) for folder in (pathlib.Path(f"/proc/{target.pid}/root/tmp"), pathlib.Path("/tmp")))
        assert inside.exists() and not (here.exists() and here.samefile(inside))
        recording = subprocess.Popen([PHLOX, "record", "-p", str(target.pid), "-d", "30" if ends else str(SECONDS), "-o", str(path), "--native",
                                      "--native-source", "ptrace", *RATE], stderr=subprocess.PIPE, text=True)
        if ends:
            # Its /tmp goes with it.
            end = time.monotonic() + 20
            while time.monotonic() < end and not path.exists():
                time.sleep(0.01)
            time.sleep(SECONDS)
            os.kill(target.pid, signal.SIGKILL)
        _, said = recording.communicate(timeout=60)
        assert recording.returncode == 0, said
    trampolines_are_named(Recording(path))


ends = pytest.mark.parametrize("ends", [False, True], ids=["goes_on", "ends"])


@ends
@once_a_version
@since(3, 12)
def test_perf_map(python, ends, tmp_path):
    _named(python, "perf", "perf-{}.map", ends, tmp_path)


@ends
@once_a_version
@since(3, 13)
def test_jitdump(python, ends, tmp_path):
    _named(python, "perf_jit", "jit-{}.dump", ends, tmp_path)
