"""Programs in namespaces, control groups and roots of their own, as container engines make them, without an engine."""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest
from cli_support import PHLOX, wait_until

AS_ROOT = os.geteuid() == 0
NOBODY = 65534

APP = """
import os, time
def inside():
    end = time.monotonic() + 300
    while time.monotonic() < end: sum(range(200))
print("ready", os.getpid(), flush=True)
inside()
"""

# A root that holds nothing but bound folders of the system, /phlox and /inner. `layer`: the root is an overlay, /inner its upper layer.
ROOT = """
set -e
root=$1; how=$2; binary=$3; shift 3
mount --bind "$root" "$root"  # pivot_root asks for a mount
if [ "$how" = layer ]; then
  mount -t tmpfs tmpfs "$root"
  mkdir "$root/lower" "$root/upper" "$root/work" "$root/merged"
  cp -r "$root/../inner" "$root/upper/inner"
  mount -t overlay overlay -o "lowerdir=$root/lower,upperdir=$root/upper,workdir=$root/work" "$root/merged" || exit 99
  root=$root/merged
fi
for folder in bin sbin lib lib64 usr etc; do
  [ -e /$folder ] || continue
  mkdir -p "$root/$folder"
  mount --rbind /$folder "$root/$folder"
done
mkdir -p "$root/proc" "$root/tmp"
mount -t proc proc "$root/proc"
touch "$root/phlox"
mount --bind "$binary" "$root/phlox"
if [ "$how" != chroot ]; then
  cd "$root"
  mkdir -p old
  pivot_root . old
  umount -l old
  exec "$@"
fi
exec chroot "$root" "$@"
"""

# How it is made: what unshare(1) does, the way to its root, whose it is.
KINDS = {
    "chroot": (["--mount", "--pid"], "chroot", 0),
    "pivot_root": (["--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup"], "pivot", 0),
    "overlay": (["--mount", "--pid"], "layer", 0),
    "user_namespace": (["--mount", "--pid", "--user", "--map-root-user"], "chroot", 0),
    "rootless_chroot": (["--mount", "--pid", "--user", "--map-root-user"], "chroot", NOBODY),
    "rootless_pivot_root": (["--mount", "--pid", "--net", "--user", "--map-root-user"], "pivot", NOBODY),
}


def as_user(uid):
    return [] if uid == os.getuid() else ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]


def open_to_all(folder):
    """Up to /tmp, for a test's folder is its user's alone."""
    for parent in [folder, *folder.parents]:
        if parent.stat().st_uid == os.getuid() and str(parent) not in ("/", "/tmp"):
            parent.chmod(parent.stat().st_mode | 0o055)


class Container:
    """A running program that has said `ready`: `pid` is ours of it, `inner_pid` its own."""

    def __init__(self, start, folder, kind, program=("/usr/bin/python3", "/inner/app.py"), groups=()):
        flags, how, uid = KINDS[kind]
        if uid != os.getuid() and not AS_ROOT:
            pytest.skip("needs root to become somebody else, or root's namespaces")
        self.uid, self.user = uid, as_user(uid)
        self.alone = ["unshare", *flags, "--fork", "--kill-child"]
        if subprocess.run([*self.user, *self.alone, "true"], capture_output=True, cwd="/").returncode != 0:
            pytest.skip(f"this kernel makes no {kind} for user {uid}")
        self.folder, self.root = folder, folder / "root"
        self.binary = folder / "phlox"
        shutil.copy(PHLOX, self.binary)
        for made in (self.root, folder / "inner", self.root / "inner"):
            made.mkdir(exist_ok=True)
        for inner in (folder / "inner", self.root / "inner"):
            (inner / "app.py").write_text(APP)
        open_to_all(folder)
        if uid != os.getuid():
            for path in (self.root, self.root / "inner"):
                os.chown(path, uid, uid)
        script = 'for group in $1; do echo $$ > "$group/cgroup.procs"; done; shift; exec "$@"'
        self.process = start(["sh", "-c", script, "sh", " ".join(map(str, groups)), *self.user, *self.alone, "sh", "-c", ROOT, "sh", self.root, how,
                              self.binary, *program], stderr=subprocess.PIPE, cwd="/")
        said = re.match(r"ready (\d+)", self.process.stdout.readline())
        if not said:
            why = self.process.stderr.read()
            if self.process.wait() == 99:
                pytest.skip(f"no overlay file system here: {why}")
            pytest.fail(why)
        self.inner_pid = int(said.group(1))
        (self.pid,) = children_of(self.process.pid)
        self.root_seen = pathlib.Path(f"/proc/{self.pid}/root")

    def inside(self, *command, before=()):
        """As `docker exec` does: in all its namespaces, beneath its root."""
        own_user = [] if "--user" not in self.alone else ["--user", "--preserve-credentials"]
        return subprocess.run([*self.user, "nsenter", f"--target={self.pid}", *own_user, "--mount", "--pid", "--root", "--wd", "--", *map(str, before),
                               "/phlox", *map(str, command)], capture_output=True, text=True, timeout=60, cwd="/")

    def outside(self, *command, as_owner=False, before=()):
        """By a phlox on the host, run by root or by the user who started the container."""
        return subprocess.run([*(self.user if as_owner else []), *map(str, before), self.binary, *map(str, command)], capture_output=True, text=True,
                              timeout=60, cwd="/")


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


GROUPS = {"cpu": ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"), "cpuset": ("/sys/fs/cgroup/cpuset",), "memory": ("/sys/fs/cgroup/memory",)}


@contextlib.contextmanager
def control_group(controller, name):
    """One of this name, of version 1 or 2, which is empty at the end. Skips where none can be made, with the reason."""
    if not AS_ROOT:
        pytest.skip("control groups are root's")
    roots = [pathlib.Path(root) for root in GROUPS[controller] if pathlib.Path(root, "cgroup.procs").exists()]
    controllers = pathlib.Path("/sys/fs/cgroup/cgroup.controllers")
    if not roots and controllers.exists() and controller in controllers.read_text().split():
        roots = [controllers.parent]
        (controllers.parent / "cgroup.subtree_control").write_text(f"+{controller}")
    if not roots:
        pytest.skip(f"no control groups of {controller} here")
    made = []
    for part in pathlib.PurePath(name).parts:
        made.append((made[-1] if made else roots[0]) / part)
        made[-1].mkdir(exist_ok=True)
    try:
        yield made[-1]
    finally:
        for group in reversed(made):
            wait_until(lambda group=group: gone(group), "an empty control group")


def gone(folder):
    try:
        folder.rmdir()
    except OSError:
        for pid in (folder / "cgroup.procs").read_text().split():  # what the test left behind
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), 9)
        time.sleep(0.05)
        return False
    return True


def limit_cpu(group, share):
    """So many CPUs' worth of time."""
    if (group / "cpu.max").exists():
        (group / "cpu.max").write_text(f"{int(100000 * share)} 100000")
    else:
        (group / "cpu.cfs_quota_us").write_text(str(int(100000 * share)))
