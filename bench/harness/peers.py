"""A common interface to profilers: starting each on a process, and reading its output. A Profiler's `start`
returns a running Session; `Session.finish` waits and returns an Outcome with stacks by names, root first.
"""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from . import install
from .recording import Recording
from .target import as_user


class Outcome:
    def __init__(self):
        self.stacks = {}  # tuple of names, root first -> samples
        self.samples = 0
        self.failed = 0  # samples that the tool reports as failed
        self.cpu = 0.0  # seconds of CPU the profiler used
        self.rss_mib = 0.0
        self.seconds = 0.0  # of sampling
        self.elapsed = 0.0  # including start and exit
        self.error = ""
        self.recording = None


class Session:
    # py-spy counts intervals, not time: at a rate it cannot reach it runs far beyond its duration.
    PATIENCE = 3.0

    def __init__(self, profiler, command, output, seconds):
        self.profiler, self.output, self.seconds = profiler, output, seconds
        self.begun = time.monotonic()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        # rusage's maximum includes this process's own fork, which is larger than most profilers.
        self.peak_mib = float("nan")
        self.ended = threading.Event()
        self.watch = threading.Thread(target=self.watch_memory, daemon=True)
        self.watch.start()

    def watch_memory(self):
        """Reads the executed program's high-water mark from the kernel twice a second."""
        while not self.ended.wait(0.5):
            try:
                with open("/proc/%d/status" % self.process.pid) as file:
                    for line in file:
                        if line.startswith("VmHWM:"):
                            self.peak_mib = int(line.split()[1]) / 1024
            except OSError:
                return

    def finish(self):
        outcome = Outcome()
        timer = threading.Timer(self.seconds + self.PATIENCE, self.process.send_signal, [signal.SIGINT])
        timer.start()
        text = self.process.stdout.read().decode(errors="replace")
        _, status, usage = os.wait4(self.process.pid, 0)
        timer.cancel()
        self.ended.set()
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.process.stdout.close()
        outcome.elapsed = time.monotonic() - self.begun
        # Unless it overran, the rest of the time is start and exit, without samples.
        outcome.seconds = self.seconds if outcome.elapsed < self.seconds + self.PATIENCE else outcome.elapsed
        outcome.cpu = usage.ru_utime + usage.ru_stime
        outcome.rss_mib = self.peak_mib
        if self.process.returncode not in self.profiler.good_exits or not os.path.exists(self.output):
            outcome.error = "exit %s: %s" % (self.process.returncode, text.strip()[-300:])
            return outcome
        self.profiler.read(self.output, text, outcome)
        return outcome


class Profiler:
    name = ""
    exact = True  # stops its target or proves its stacks
    good_exits = (0,)

    def whole(self, seconds):
        """The duration to request: most take only whole seconds."""
        return max(1, round(seconds))

    def command(self, pid, rate, seconds, output):
        raise NotImplementedError

    def start(self, pid, rate, seconds, user=None):
        directory = tempfile.mkdtemp(prefix="phlox-bench-", dir="/var/tmp")
        os.chmod(directory, 0o777)
        output = os.path.join(directory, "out" + self.suffix)
        return Session(self, as_user(user) + self.command(pid, rate, seconds, output), output, self.whole(seconds))

    def python(self, pythons, version):
        """The interpreter that runs a target, and the words before it."""
        return pythons[version], ()

    def read(self, output, text, outcome):
        with open(output, errors="replace") as file:
            for line in file:
                stack, _, count = line.rstrip().rpartition(" ")
                if not stack or not count.isdigit():
                    continue
                names = self.names(stack)
                if names:
                    outcome.stacks[names] = outcome.stacks.get(names, 0) + int(count)
                    outcome.samples += int(count)
        shutil.rmtree(os.path.dirname(output), ignore_errors=True)


class Phlox(Profiler):
    """From outside unless `in_kernel`: stopping and resuming the recorder shows the cost of reading from
    outside, but BPF programs do not stop with it."""
    suffix = ".phlox"

    def __init__(self, binary, way=None, in_kernel=False):
        self.binary, self.way, self.in_kernel = binary, way, in_kernel
        self.name = "phlox" + (" --%s" % way if way else "") + (" --way kernel" if in_kernel else "")

    def whole(self, seconds):
        return seconds

    def command(self, pid, rate, seconds, output):
        words = [self.binary, "record", "-p", str(pid), "-o", output, "--max-overhead", "off", "-d", "%.3f" % seconds,
                 "-r", "%g" % rate if rate else "max"]
        return words + (["--%s" % self.way] if self.way else []) + ["--way", "kernel" if self.in_kernel else "no-kernel"]

    def read(self, output, text, outcome):
        recording = Recording(output)
        outcome.recording = recording
        for row in recording.rows:
            if row[5] == recording.REJECTED:
                outcome.failed += row[3]
                continue
            names = tuple(recording.names(row[4]))
            outcome.stacks[names] = outcome.stacks.get(names, 0) + row[3]
            outcome.samples += row[3]
        shutil.rmtree(os.path.dirname(output), ignore_errors=True)


class PySpy(Profiler):
    suffix = ".txt"

    def __init__(self, cache, blocking=True):
        self.binary = os.path.join(install.venv(cache), "bin", "py-spy")
        self.blocking = self.exact = blocking
        self.name = "py-spy" + ("" if blocking else " --nonblocking")

    def command(self, pid, rate, seconds, output):
        # Whole seconds only.
        words = [self.binary, "record", "-f", "raw", "-o", output, "-r", "%d" % rate, "-d", "%d" % max(1, round(seconds)), "-p", str(pid)]
        return words if self.blocking else words + ["--nonblocking"]

    def names(self, stack):
        return tuple(re.sub(r" \(.*$", "", frame) for frame in stack.split(";"))


class Austin(Profiler):
    suffix = ".mojo"
    exact = False
    good_exits = (0, 254)  # austin 4.0.0 exits with 254 after a good recording

    def __init__(self, cache):
        self.name = "austin"
        venv, sid = install.venv(cache), install.sid(cache)
        # PyPI's binary needs glibc 2.38.
        loader = [os.path.join(sid, "lib64/ld-linux-x86-64.so.2"), "--library-path", os.path.join(sid, "usr/lib/x86_64-linux-gnu")]
        self.words = (loader if sid else []) + [os.path.join(venv, "bin", "austin")]
        self.converter = os.path.join(venv, "bin", "mojo2austin")

    def command(self, pid, rate, seconds, output):
        return self.words + ["-i", "%d" % (1e6 / rate), "-x", "%d" % max(1, round(seconds)), "-p", str(pid), "-o", output]

    def read(self, output, text, outcome):
        plain = output + ".txt"
        subprocess.run([self.converter, output, plain], check=True, stdout=subprocess.DEVNULL)
        with open(plain, errors="replace") as file:
            for line in file:
                stack, _, _ = line.rstrip().rpartition(" ")
                if line.startswith("#") or not stack:
                    continue
                # P<pid>;T<thread>;file:function:line[:...] ...; the number is time, a line is a sample
                names = tuple(f.split(":")[1] for f in stack.split(";")[2:] if f.count(":") >= 2)
                outcome.stacks[names] = outcome.stacks.get(names, 0) + 1
                outcome.samples += 1
        shutil.rmtree(os.path.dirname(output), ignore_errors=True)


class Tachyon(Profiler):
    """profiling.sampling of CPython 3.15: reads only its own minor version, so its target runs on 3.15 too."""
    suffix = ".txt"

    def __init__(self, cache, blocking=True):
        self.root = install.sid(cache)
        self.blocking = self.exact = blocking
        self.name = "Tachyon" + (" --blocking" if blocking else "")

    def available(self):
        return self.root is not None

    def python(self, pythons, version):
        return "/usr/bin/python3.15", ("env", "LC_ALL=C", "chroot", self.root)

    def start(self, pid, rate, seconds, user=None):
        output = os.path.join(self.root, "tmp", "out-%d.txt" % pid)
        if os.path.exists(output):
            os.unlink(output)
        words = ["env", "LC_ALL=C", "chroot", self.root, "/usr/bin/python3.15", "-m", "profiling.sampling", "attach", "-r", "%d" % rate,
                 "-d", "%d" % max(1, round(seconds)), "--collapsed", "-o", "/tmp/out-%d.txt" % pid]
        return Session(self, words + (["--blocking"] if self.blocking else []) + [str(pid)], output, self.whole(seconds))

    def names(self, stack):
        return tuple(f.split(":")[1] for f in stack.split(";") if f.count(":") >= 2)

    def read(self, output, text, outcome):
        with open(output, errors="replace") as file:
            for line in file:
                stack, _, count = line.rstrip().rpartition(" ")
                if stack and count.isdigit():
                    names = self.names(stack)
                    outcome.stacks[names] = outcome.stacks.get(names, 0) + int(count)
                    outcome.samples += int(count)
        os.unlink(output)
        found = re.search(r"Error rate: ([0-9.]+)", text)
        taken = re.search(r"Captured (\d+) samples", text)
        if found and taken:
            outcome.failed = int(float(found.group(1)) / 100 * int(taken.group(1)))


class Chroot:
    """Mounts /proc and the targets inside the sid root while Tachyon is measured."""

    def __init__(self, root):
        self.root = root

    def __enter__(self):
        if self.root:
            here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
            inside = self.root + os.path.join(here, "targets")
            os.makedirs(inside, exist_ok=True)
            for name in os.listdir(os.path.join(here, "targets")):
                if name.endswith(".py"):
                    shutil.copy(os.path.join(here, "targets", name), inside)
            subprocess.run(["mount", "-t", "proc", "proc", os.path.join(self.root, "proc")], check=True)
        return self

    def __exit__(self, *_):
        if self.root:
            subprocess.run(["umount", os.path.join(self.root, "proc")], check=False)


