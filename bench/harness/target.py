"""Targets as processes: start one, know when it is ready, end it, get its own report. Users and interpreters."""
import glob
import json
import os
import signal
import subprocess

TARGETS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "targets")


def as_user(user):
    """Words in front of a command to run it as an ordinary user: no capability, no right to real time. `root`
    and `you` mean whoever runs the benchmark."""
    if user in (None, "root", "you"):
        return []
    return ["prlimit", "--rtprio=0", "--nice=0", "setpriv", "--reuid", user, "--regid", user, "--clear-groups",
            "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]


def find_pythons(words):
    """{"3.12": path} from words like 3.12=/path/python or directories; default: pyenv's."""
    found = {}
    for word in words or sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.1[123].*"))):
        if "=" in word:
            version, path = word.split("=", 1)
            found[version] = path
            continue
        for path in sorted(glob.glob(os.path.join(word, "bin", "python3.1[123]"))):
            found[os.path.basename(path)[len("python"):]] = path
    return found


class Target:
    """with Target(python, "hard.py", [50]) as target: ... target.pid; then target.report"""

    def __init__(self, python, script, args=(), user=None, prefix=(), seconds=36000, cpu=None):
        pin = ["taskset", "-c", str(cpu)] if cpu is not None else []
        self.command = as_user(user) + pin + list(prefix) + [python, os.path.join(TARGETS, script), str(seconds)] + [str(a) for a in args]
        self.report = None

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
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
    """Units a second between two moments of the monotonic clock, from a report's windows."""
    inside = [w for w in windows if begin <= w[0] <= end]
    if len(inside) < 2:
        return float("nan")
    return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])
