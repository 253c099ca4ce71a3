"""The single file of `make static`: in a root with nothing else, and as a sidecar made from an empty image."""
import os
import re
import shutil
import subprocess

import pytest
from cli_support import ROOT
from containers import Container, children_of

BINARY = ROOT / "build" / "release" / "phlox-static"
pytestmark = [pytest.mark.live, pytest.mark.skipif(not BINARY.exists(), reason=f"no {BINARY}: make static"),
              pytest.mark.skipif(os.geteuid() != 0, reason="another container that shares the PID namespace is root's to make")]

# Of the empty image: the file, /proc, and a folder to write to.
EMPTY = """
set -e
root=$1; shift
mount --bind "$root" "$root"
mkdir "$root/proc" "$root/tmp"
mount -t proc proc "$root/proc"
exec chroot "$root" "$@"
"""


@pytest.fixture
def sidecar(start, tmp_path):
    container = Container(start, tmp_path, "pivot_root")
    root = tmp_path / "empty"
    root.mkdir()
    shutil.copy(BINARY, root / "phlox")

    def run(*words):
        # `nsenter --pid` takes effect for children: in the PID namespace of the pod, with a mount namespace of its own.
        return subprocess.run(["nsenter", f"--target={container.pid}", "--pid", "--", "unshare", "--mount", "--propagation", "private", "sh", "-c", EMPTY,
                               "sh", root, "/phlox", *map(str, words)], capture_output=True, text=True, timeout=60, cwd="/")

    def run_again(*words):
        if (root / "proc").exists():  # of the run before; the mount went with its namespace
            (root / "proc").rmdir()
            shutil.rmtree(root / "tmp")
        return run(*words)

    return container, root, run_again


def test_it_needs_no_library():
    headers = subprocess.run(["readelf", "-lW", BINARY], capture_output=True, text=True, check=True).stdout
    assert "INTERP" not in headers and "DYNAMIC" not in headers


def test_it_runs_in_an_empty_root(sidecar):
    container, root, run = sidecar
    assert [path.name for path in root.iterdir()] == ["phlox"]
    assert re.search(rf"^ +{container.inner_pid}  0 .*/inner/app\.py$", run("list").stdout, re.M)
    dump = run("dump", "-p", container.inner_pid)
    assert dump.returncode == 0 and "inside (/inner/app.py:" in dump.stdout, dump.stderr
    done = run("record", "--native", "-p", container.inner_pid, "-d", "0.7", "-o", "-")
    assert done.returncode == 0 and "inside (/inner/app.py)" in done.stdout, done.stderr
    assert "(python3" in done.stdout or "(libpython" in done.stdout
    done = run("record", "-p", container.inner_pid, "-d", "0.7", "-o", "/tmp/a.svg")
    assert done.returncode == 0, done.stderr
    assert (root / "tmp" / "a.svg").stat().st_size > 1000 and (root / "tmp" / "a.svg.phlox").exists()
    said = run("doctor", "-p", container.inner_pid)
    assert said.returncode == 0 and "That is good" in said.stdout, said.stdout
    assert children_of(container.process.pid) == [container.pid]


def test_without_proc_it_says_so(sidecar, tmp_path):
    container, root, _ = sidecar
    done = subprocess.run(["chroot", root, "/phlox", "dump", "-p", str(container.pid)], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "no /proc here" in done.stderr, done.stderr
