"""Targets in other namespaces, seen from outside: their files lie beneath their own root, their ids are others."""
import os
import re
import subprocess

import pytest
from cli_support import phlox, wait_until

APP = """
import os, time
def inside():
    end = time.monotonic() + 60
    while time.monotonic() < end: sum(range(200))
print(os.getpid(), flush=True)
inside()
"""

# A root of its own that holds nothing but bound folders of the system and /inner.
ROOT = """
set -e
root=$1; how=$2
mount --bind $root $root  # pivot_root asks for a mount
for folder in bin sbin lib lib64 usr etc; do
  [ -e /$folder ] || continue
  mkdir -p $root/$folder
  mount --rbind /$folder $root/$folder
done
mkdir -p $root/proc
mount -t proc proc $root/proc
if [ $how = pivot ]; then
  cd $root
  mkdir -p old
  pivot_root . old
  umount -l old
  exec /usr/bin/python3 /inner/app.py
fi
exec chroot $root /usr/bin/python3 /inner/app.py
"""

NAMESPACES = {
    "chroot": (["--mount", "--pid", "--fork"], "chroot"),
    "pivot_root": (["--mount", "--pid", "--fork"], "pivot"),
    "user namespace": (["--mount", "--pid", "--fork", "--user", "--map-root-user"], "chroot"),
}


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


@pytest.fixture(params=NAMESPACES, ids=lambda name: name.replace(" ", "_"))
def contained(request, start, tmp_path):
    flags, how = NAMESPACES[request.param]
    if subprocess.run(["unshare", *flags, "true"], capture_output=True).returncode != 0:
        pytest.skip(f"may not make a {request.param} here")
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    (root / "inner" / "app.py").write_text(APP)
    process = start(["unshare", *flags, "sh", "-c", ROOT, "sh", root, how], stderr=subprocess.PIPE)
    inner_pid = process.stdout.readline()
    assert inner_pid, process.stderr.read()
    (pid,) = child_of(process.pid)
    yield pid, int(inner_pid)
    os.kill(pid, 9)


def test_it_is_recorded_like_any_other(contained, workdir):
    pid, inner_pid = contained
    assert pid != inner_pid
    done = phlox("record", "-p", pid, "-d", "0.5", "-o", "-")
    assert done.returncode == 0, done.stderr
    assert re.search(r"inside \(/inner/app\.py\) \d+", done.stdout)


def test_its_source_is_read_beneath_its_own_root(contained):
    pid, _ = contained
    assert not os.path.exists("/inner/app.py")
    # The look may meet the moment between two calls; the loop's line is where it nearly always is.
    wait_until(lambda: "while time.monotonic() < end: sum(range(200))" in phlox("dump", "-p", pid).stdout, "a line of source")
