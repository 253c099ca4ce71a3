"""The merged stack of a stopped process against gdb's: native frames by gdb's own unwinder, Python frames by CPython's support for
gdb, and by what the program itself said of its callers. Sorting, reducing, substituting, a ctypes callback, an attribute, an
import and a generator lead from C back into Python, eight evaluations deep and more."""
import collections
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess

import pytest

from live_support import INTERPRETERS, PHLOX, since

HERE = pathlib.Path(__file__).resolve().parent / "native"
PROGRAM = HERE / "nested.py"
MOMENTS = 6
LOOP = "_PyEval_EvalFrameDefault"

# Of the program's functions (and importlib's), those that C calls: each begins an evaluation.
CALLED_BY_C = {"<module>", "key_of", "add_up", "replaced", "callback", "__getattr__", "_find_and_load", "generator"}
EVALUATIONS = ["<module>", "key_of", "add_up", "replaced", "callback", "__getattr__", "_find_and_load", "<module>", "generator"]

# Real: one on the stack, none that a compiler inlined. kind p(ython) or n(ative).
Frame = collections.namedtuple("Frame", "kind name file line address")


# ---- what gdb needs ------------------------------------------------------------------------------------------

def support_of(python, exe, root):
    """CPython's support for gdb of this minor version: pyenv installs it beside the interpreter, Debian where gdb looks by itself."""
    name = f"python{python.major}.{python.minor}-gdb.py"
    own = [pathlib.Path(exe).parent / name, pathlib.Path(root) / "usr/share/gdb/auto-load/usr/bin" / name]
    others = [pathlib.Path(os.path.realpath(one.path)).parent / name for one in INTERPRETERS if (one.major, one.minor) == (python.major, python.minor)]
    return next((str(path) for path in own + others if path.is_file()), None)


class Mapped:
    """Addresses of a process as (file's name, address in its image)."""

    def __init__(self, maps):
        self.rows = []
        for line in maps.splitlines():
            span, _, offset, _, _, *path = line.split(None, 5)
            start, end = (int(number, 16) for number in span.split("-"))
            self.rows.append((start, end, int(offset, 16), path[0] if path else ""))

    def path(self, name):
        return next(path for *_, path in self.rows if os.path.basename(path) == name)

    @staticmethod
    def segments(path, cache={}):
        if path not in cache:
            data = pathlib.Path(path).read_bytes()
            at, = struct.unpack_from("<Q", data, 32)
            size, count = struct.unpack_from("<HH", data, 54)
            headers = [struct.unpack_from("<IIQQQQ", data, at + i * size) for i in range(count)]
            cache[path] = [(offset, offset + filesz, address - offset) for kind, _, offset, address, _, filesz in headers if kind == 1]
        return cache[path]

    def place(self, address):
        for start, end, offset, path in self.rows:
            if start <= address < end:
                if path == "[vdso]":
                    return path, address - start
                if not path.startswith("/"):
                    return "", address
                into = address - start + offset
                return os.path.basename(path), next(into + bias for first, last, bias in self.segments(path) if first <= into < last)
        return "", address


def has_symbols(path):
    return ".symtab" in subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout


# ---- one process, looked at by both ---------------------------------------------------------------------------

class Case:
    def __init__(self, python, folder, program=None):
        self.python = python
        done = subprocess.Popen([program or python.path, "-u", str(PROGRAM)], stdout=subprocess.PIPE, text=True)
        try:
            self.said = json.loads(done.stdout.readline())  # the program's own traceback
            self.pid = int(re.match(r"ready (\d+)", done.stdout.readline()).group(1))
            root = os.readlink(f"/proc/{self.pid}/root")
            self.exe = os.readlink(f"/proc/{self.pid}/exe")
            self.support = support_of(python, self.exe, root)
            gdb = shutil.which("gdb")
            assert gdb, "there is no gdb: tools/packages-test.txt names it"
            judge = {"pid": self.pid, "support": self.support, "moments": MOMENTS, "to": str(folder / "moments.json"),
                     "dump": [PHLOX, "dump", "--native", "--all-frames", "--json", "-p", str(self.pid)]}
            ran = subprocess.run([gdb, "-nx", "-nh", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off",
                                  "-ex", f"set sysroot {'' if root == '/' else root}", "-ex", f"file {self.exe}",
                                  "-ex", "set backtrace past-main on", "-ex", "source " + str(HERE / "in_gdb.py")],
                                 env={**os.environ, "JUDGE": json.dumps(judge)}, capture_output=True, text=True, timeout=300)
            assert (folder / "moments.json").is_file(), ran.stderr
            self.moments = json.loads((folder / "moments.json").read_text())
            assert len(self.moments) == MOMENTS
        finally:
            done.kill()
            done.wait()
            done.stdout.close()


def ours(moment):
    """(frames root first, whether the stack has no gap)"""
    assert moment["status"] == 0, moment["error"]
    thread, = json.loads(moment["dump"])["threads"]
    frames, whole = [], thread["quality"] == "ok"
    for frame in reversed(thread["frames"]):
        if frame["kind"] == "marker":
            whole = False
        elif frame["kind"] == "python":
            frames.append(Frame("p", frame["function"], frame["file"], frame["line"], None))
        elif not frame["inlined"]:
            frames.append(Frame("n", frame["function"], frame["module"], frame["line"], (os.path.basename(frame["module"]), frame["address"])))
    return frames, whole


def groups(frames):
    """[(native frame or None, [Python frames that stand in it]), ...], root first."""
    found = [(None, [])]
    for frame in frames:
        if frame.kind == "n":
            found.append((frame, []))
        else:
            found[-1][1].append(frame)
    return found


def check_moment(case, moment):
    frames, whole = ours(moment)
    assert whole, frames
    # gdb's frames root first, each by the place of its call as ours are.
    mapped, judged = Mapped(moment["maps"]), []
    for i, frame in enumerate(moment["gdb"]):
        exact = i == 0 or moment["gdb"][i - 1]["signal"]
        judged.append({**frame, "place": mapped.place(frame["pc"] if exact else frame["pc"] - 1)})
    judged.reverse()

    natives = [(native, inside) for native, inside in groups(frames) if native]
    assert groups(frames)[0][1] == []  # nothing before the first native frame
    assert [native.address for native, _ in natives] == [frame["place"] for frame in judged]

    # Python frames are what the program said, by name, file and line; the last one has gone on since.
    chain = [frame for frame in frames if frame.kind == "p"]
    said = [tuple(one) for one in case.said]
    assert [(one.name, one.file) for one in chain[:len(said)]] == [one[:2] for one in said]
    assert [one.line for one in chain[:len(said) - 1]] == [one[2] for one in said[:-1]]

    # Evaluations begin where C calls Python, and nowhere else.
    runs = [inside for _, inside in natives if inside]
    if case.python.minor >= 11:
        of_said, left = [], len(said)
        for inside in runs:
            if left > 0:
                of_said.append(inside[0].name)
            left -= len(inside)
        assert of_said == EVALUATIONS
    else:
        assert all(len(inside) == 1 for inside in runs)
    assert len(runs) >= len(EVALUATIONS)

    # Python stands in the loop by gdb's names, in every loop but one that is just being entered or left.
    loops = [i for i, frame in enumerate(judged) if re.match(rf"{LOOP}(\W|$)", frame["name"] or "")]
    host = next(native for native, inside in natives if inside)
    if has_symbols(mapped.path(host.address[0])):
        with_python = [i for i, (_, inside) in enumerate(natives) if inside]
        assert with_python in (loops, loops[:-1]), (with_python, [frame["name"] for frame in judged])

    # And gdb's Python support finds in each the same frames; in the one that runs, what it goes by may lie in no register.
    read = 0
    for i, frame in enumerate(judged[:-1]):
        if not frame["python"] or (i == loops[-1] and not natives[i][1]):
            continue
        theirs = [tuple(one[:2]) for one in reversed(frame["python"])]
        assert [(one.name, one.file) for one in natives[i][1]] == theirs, i
        read += 1
    return read


@since(3, 8)
def test_the_merged_stack_is_what_gdb_finds(python, tmp_path):
    case = Case(python, tmp_path)
    read = sum(check_moment(case, moment) for moment in case.moments)
    print(f"{python.name}: {read} evaluations read by gdb's Python support ({case.support})")
