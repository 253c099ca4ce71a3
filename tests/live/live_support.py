"""Records real programs on every interpreter of PHLOX_PYTHONS with the built phlox, and reads the recordings with sqlite3."""
import collections
import os
import pathlib
import re
import select
import sqlite3
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PHLOX_BUILD_DIR", ROOT / "build" / "dev"))
PHLOX = os.environ.get("PHLOX_BIN", str(BUILD / "phlox"))
TARGETS = ROOT / "bench" / "targets"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "phlox"  # as in install-test-deps.sh

Python = collections.namedtuple("Python", "name path major minor flags")  # flags: t free-threaded, d debug


ASK = """
import sys, sysconfig
flags = "t" * bool(sysconfig.get_config_var("Py_GIL_DISABLED")) + "d" * hasattr(sys, "gettotalrefcount")
print("%d %d %s" % (sys.version_info[0], sys.version_info[1], flags or "-"))
"""


def _interpreters():
    given = os.environ.get("PHLOX_PYTHONS", "/usr/bin/python3")
    if given.endswith(".list"):
        lines = [line.split("\t")[:2] for line in open(given) if line.strip() and not line.startswith("#")]
    else:
        lines = [(path.replace("/", "-").strip("-"), path) for path in given.split(":")]
    found = []
    for name, path in lines:
        asked = subprocess.run([path, "-c", ASK], capture_output=True, text=True)
        if asked.returncode == 0:
            major, minor, flags = asked.stdout.split()
            found.append(Python(name, path, int(major), int(minor), flags))
    return found


INTERPRETERS = _interpreters()


def has(python, module):
    return subprocess.run([python.path, "-c", f"import {module}"], capture_output=True).returncode == 0


def share(python, seconds, least=0.5):
    """Seconds for this interpreter if a row of the version table is tested for `seconds`: interpreters of one
    version and kind share a row, and an error in the row shows in the samples of any of them."""
    alike = sum((p.major, p.minor, p.flags) == (python.major, python.minor, python.flags) for p in INTERPRETERS)
    return max(least, seconds / alike)


def of_one_family(names):
    """hard.py's functions call each other as a0, a1, ... or b0, b1, ...: a stack has one family, from its
    first function on, without gaps."""
    family = [name for name in names if re.fullmatch(r"[ab]\d+", name)]
    assert [int(name[1:]) for name in family] == list(range(len(family))), names
    assert len({name[0] for name in family}) <= 1, names


def sound(recording, running=False):
    """(names, samples) of stacks that are whole or marked as cut; `running`: only samples of a thread on a CPU. Time that no sample saw,
    such as what a thread ran after its last sample, is not among them."""
    return ((names, samples) for names, samples, _, quality in recording.stacks(running=running) if quality in (0, 1) and samples > 0)


def begins_with_the_generator(recording):
    """For programs/driven.py."""
    roots = collections.Counter(names[0] for names, *_ in recording.stacks() if "spin" in names)
    assert roots["generate"] > 20 and roots["generate"] >= 0.99 * sum(roots.values()), roots


def families_never_mix(stacks):
    """Applies of_one_family() to each. `stacks`: (names, samples). -> samples checked"""
    looks = 0
    for names, samples in stacks:
        of_one_family(names)
        looks += samples
    return looks


def names_are_of_one_moment(stacks):
    """fresh.py creates functions f_SERIAL_DEPTH repeatedly, each time with the next serial: a stack has one
    serial, no gap, and no earlier serial than the stack before it. `stacks`: (names, samples). -> samples checked"""
    looks, last = 0, -1
    for names, samples in stacks:
        found = [(int(m.group(1)), int(m.group(2))) for m in (re.fullmatch(r"f_(\d+)_(\d+)", name) for name in names) if m]
        assert len({serial for serial, _ in found}) <= 1, names
        assert [depth for _, depth in found] == list(range(len(found))), names
        if found:
            assert found[0][0] >= last, "a name of an earlier moment"
            last = found[0][0]
        looks += samples
    return looks


def since(*version):
    def mark(function):
        function.since = version
        return function
    return mark


def once_a_version(function):
    """For tests that depend on the version and not on the build: one interpreter of each version, separately
    for debug and free-threaded builds, in `make test-all`. In `make test` one per family of versions (conftest.py)."""
    function.once_a_version = True
    return function


def few_pythons(function):
    """For tests of what phlox does with what it has read, which costs the same for every version and takes long: in `make
    test` the first and the last listed interpreter, in `make test-all` one of each version."""
    function.few_pythons = True
    return function


class Recording:
    def __init__(self, path):
        self.path = path
        self.db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.frames = {i: (kind, function, qualified, file, first, line) for i, kind, function, qualified, file, first, line in
                       self.db.execute("SELECT id, kind, function, qualified_name, file, first_line, line FROM frame")}
        self.parents = {i: (parent, frame) for i, parent, frame in self.db.execute("SELECT id, parent, frame FROM stack")}

    def query(self, sql, *arguments):
        return self.db.execute(sql, arguments).fetchall()

    def stack(self, number):
        """Frames, root first."""
        out = []
        while number:
            number, frame = self.parents[number]
            out.append(self.frames[frame])
        return out[::-1]

    def stacks(self, thread="%", running=False):
        """(function names root first, samples, wall ns, quality) of every row with a stack; `running`: only
        samples on a CPU."""
        names = {}
        rows = self.query("SELECT s.stack, s.samples, s.wall_ns, state.quality FROM sample s JOIN state ON state.id = s.state "
                          "JOIN thread t ON t.id = s.thread "
                          "WHERE s.stack IS NOT NULL AND (NOT ? OR (state.cpu = 1 AND s.samples > 0)) AND (t.name LIKE ? OR t.kernel_name LIKE ?) ORDER BY s.start_us", running, thread, thread)
        for stack, looks, wall, quality in rows:
            if stack not in names:
                names[stack] = [frame[1] for frame in self.stack(stack)]
            yield names[stack], looks, wall, quality

    def counter(self, name):
        return sum(value for (value,) in self.query("SELECT value FROM counter WHERE name = ?", name))


# How much slower Python runs than usual: in an emulated machine (tools/test-aarch64.sh). Recordings last that much longer.
SLOWER = float(os.environ.get("PHLOX_SLOWER", 1))

READY_WITHIN = 120  # seconds: a program that needs longer hangs


class Target:
    """A running program that has printed `ready`."""

    def __init__(self, python, *arguments):
        self.process = subprocess.Popen([python.path, "-u", *map(str, arguments)], stdout=subprocess.PIPE, text=True)
        if not select.select([self.process.stdout], [], [], READY_WITHIN)[0]:
            self.process.kill()
            raise RuntimeError(f"{' '.join(map(str, self.process.args))}: not ready within {READY_WITHIN} s")
        line = self.process.stdout.readline()
        self.pid = int(re.match(r"ready (\d+)", line).group(1))
        self.said = [float(number) for number in line.split()[2:]]  # after its pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
