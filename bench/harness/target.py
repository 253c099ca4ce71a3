"""Targets as processes: starts one, waits until it is ready, ends it, reads its report. Users and interpreters."""
import glob
import json
import os
import pwd
import re
import signal
import subprocess

TARGETS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "targets")


def as_user(user):
    """The words in front of a command that run it as an ordinary user: no capability, no right to real time.
    `root` and `you` mean the user that runs the benchmark."""
    if user in (None, "root", "you"):
        return []
    return ["prlimit", "--rtprio=0", "--nice=0", "setpriv", "--reuid", user, "--regid", user, "--clear-groups",
            "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]


LIST = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "phlox", "pythons", "pythons.list")
# Preference among several builds of a version: the one that an issue's numbers were first taken on, then the
# most common one.
PREFERRED = ("pyenv", "standalone", "3", "sid")


def find_pythons(words):
    """{"3.12": path, "3.13t": path} from words like 3.12=/path/python or directories; default: the list of
    tools/get-pythons.sh (PHLOX_PYTHONS or its usual place) without debug builds, and pyenv's."""
    found = {}
    for word in words or sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*"))):
        if "=" in word:
            version, path = word.split("=", 1)
            found[version] = path
            continue
        for path in sorted(glob.glob(os.path.join(word, "bin", "python3.[0-9]*"))):
            version = os.path.basename(path)[len("python"):]
            if re.fullmatch(r"3\.\d+", version):
                found[version] = path
    if not words:
        for version, path in listed(os.environ.get("PHLOX_PYTHONS", LIST)):
            found.setdefault(version, path)
    return found


def listed(path):
    """(version, path) for every line of a pythons.list, best first."""
    if not os.path.isfile(path):
        return []
    with open(path) as file:
        rows = [line.rstrip("\n").split("\t") for line in file if line.count("\t") == 4]
    rank = {name: place for place, name in enumerate(PREFERRED)}
    rows = [(rank.get(how[:1] if how[:1].isdigit() else how, len(rank)), version.rsplit(".", 1)[0] + flags.strip("-"), python)
            for _, python, how, version, flags in rows if "d" not in flags]
    return [(version, python) for _, version, python in sorted(rows)]


# An interpreter in a root of its own (tools/get-pythons.sh) is started by root and switches to the user
# before its program begins.
BECOME = ("import os, sys; os.setgroups([]); os.setresgid(*[int(sys.argv[2])] * 3); os.setresuid(*[int(sys.argv[1])] * 3); "
          "os.execv(sys.executable, [sys.executable] + sys.argv[3:])")


def run_as(user, python, prefix):
    """The words that run `python` as the user."""
    words = as_user(user)
    if words and needs_root(python):
        entry = pwd.getpwnam(user)
        return list(prefix) + [python, "-c", BECOME, str(entry.pw_uid), str(entry.pw_gid)]
    return words + list(prefix) + [python]


def needs_root(python):
    with open(python, "rb") as file:
        return b"exec unshare --mount" in file.read(1024)


class Target:
    """with Target(python, "hard.py", [50]) as target: ... target.pid; then target.report"""

    def __init__(self, python, script, args=(), user=None, prefix=(), seconds=36000, cpu=None):
        pin = ["taskset", "-c", str(cpu)] if cpu is not None else []
        self.command = pin + run_as(user, python, prefix) + [os.path.join(TARGETS, script), str(seconds)] + [str(a) for a in args]
        self.report = None

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env=dict(os.environ, PHLOX_TREE=os.path.dirname(os.path.dirname(TARGETS))))
        line = self.process.stdout.readline()
        if not line.startswith("ready"):
            self.process.kill()
            self.process.wait()
            raise RuntimeError("target did not start: %s" % " ".join(self.command))
        self.pid = int(line.split()[1])
        return self

    def stop(self):
        """Ends the target and keeps its report. SIGCONT first: a peer may have left it stopped."""
        if self.report is None and self.process.poll() is None:
            os.kill(self.pid, signal.SIGCONT)
            os.kill(self.pid, signal.SIGTERM)
            output = self.process.stdout.read()
            self.process.wait()
            lines = [line for line in output.splitlines() if line.startswith("{")]
            self.report = json.loads(lines[-1]) if lines else {}
        return self.report

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def throughput(windows, begin, end):
    """Units per second between two moments of the monotonic clock, from a report's windows."""
    inside = [w for w in windows if begin <= w[0] <= end]
    if len(inside) < 2:
        return float("nan")
    return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])
