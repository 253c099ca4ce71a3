"""Compares merged stacks with gdb: native frames with those of gdb's unwinder, Python frames with those of CPython's support for gdb
and with the callers that the program itself reports. A program under test reports its callers with nested.say(), in its last
function, and never returns; one with several threads reports them for each, {tid: callers}."""
import collections
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess

from live_support import INTERPRETERS, PHLOX, Recording

HERE = pathlib.Path(__file__).resolve().parent / "native"
MOMENTS = 3
LOOP = "_PyEval_EvalFrameDefault"

# Real: it is on the stack, not inlined by a compiler. kind: p(ython) or n(ative).
Frame = collections.namedtuple("Frame", "kind name file line address")


# ---- what gdb needs ------------------------------------------------------------------------------------------

def support_of(python, exe, root):
    """CPython's support for gdb of this minor version: pyenv installs it next to the interpreter, Debian where gdb finds it."""
    name = f"python{python.major}.{python.minor}-gdb.py"
    own = [pathlib.Path(exe).parent / name, pathlib.Path(root) / "usr/share/gdb/auto-load/usr/bin" / name]
    others = [pathlib.Path(os.path.realpath(one.path)).parent / name for one in INTERPRETERS if (one.major, one.minor) == (python.major, python.minor)]
    return next((str(path) for path in own + others if path.is_file()), None)


class Mapped:
    """Addresses of a process as (file's name, address in its image)."""

    def __init__(self, maps):
        self.rows, self.code = [], []
        for line in maps.splitlines():
            span, rights, offset, _, _, *path = line.split(None, 5)
            start, end = (int(number, 16) for number in span.split("-"))
            self.rows.append((start, end, int(offset, 16), path[0] if path else ""))
            if "x" in rights:
                self.code.append((start, end))

    def path(self, name):
        return next(path for *_, path in self.rows if os.path.basename(path) == name)

    def is_code(self, address):
        return any(start <= address < end for start, end in self.code)

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


def has_section(path, name):
    return name in subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout.split()


# ---- one process, read by both --------------------------------------------------------------------------------

class Case:
    """`python`: its version counts. `command`: runs the script; by default the interpreter. Judges the threads whose callers the program
    reports; the main thread if it reports one stack. `record`: options of a recording, whose end is judged instead of a dump."""

    def __init__(self, python, folder, script="nested.py", arguments=(), command=None, env=None, moments=MOMENTS, record=None):
        self.python = python
        to = folder / "moments.json"
        to.unlink(missing_ok=True)
        done = subprocess.Popen([*(command or [python.path]), str(HERE / script), *map(str, arguments)], stdout=subprocess.PIPE, text=True,
                                env={**os.environ, **(env or {})})
        try:
            said = json.loads(done.stdout.readline())  # the program's own traceback
            self.pid = int(re.match(r"ready (\d+)", done.stdout.readline()).group(1))
            self.said = {int(tid): one for tid, one in said.items()} if isinstance(said, dict) else {self.pid: said}
            root = os.readlink(f"/proc/{self.pid}/root")
            self.exe = os.readlink(f"/proc/{self.pid}/exe")
            self.support = support_of(python, self.exe, root)
            gdb = shutil.which("gdb")
            assert gdb, "there is no gdb: tools/packages-test.txt names it"
            judge = {"pid": self.pid, "support": self.support, "moments": moments, "to": str(to),
                     "record": record and [PHLOX, "record", "-p", str(self.pid), *record, "--force", "-o"],
                     "dump": [PHLOX, "dump", "--native", "--all-frames", "--json", "-p", str(self.pid)]}
            ran = subprocess.run([gdb, "-nx", "-nh", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off",
                                  "-ex", f"set sysroot {'' if root == '/' else root}", "-ex", f"file {self.exe}",
                                  "-ex", "set backtrace past-main on", "-ex", "source " + str(HERE / "in_gdb.py")],
                                 env={**os.environ, "JUDGE": json.dumps(judge)}, capture_output=True, text=True, timeout=600)
            assert to.is_file(), ran.stderr
            self.moments = json.loads(to.read_text())
            assert len(self.moments) == moments
            for moment in self.moments:
                if "recording" in moment and moment["status"] == 0:
                    moment["dump"] = json.dumps(end_of(Recording(moment["recording"])))
        finally:
            done.kill()
            done.wait()
            done.stdout.close()


def end_of(recording):
    """The last sample of each thread, as `dump --json` has it."""
    modules = dict(recording.query("SELECT id, path FROM module"))
    rows = {i: row for i, *row in recording.query("SELECT id, kind, function, file, module, line, address FROM frame")}
    threads = []
    for tid, stack, quality, _ in recording.query("SELECT t.tid, s.stack, state.quality, max(s.start_us) FROM sample s JOIN thread t "
                                                  "ON t.id = s.thread JOIN state ON state.id = s.state WHERE s.samples > 0 GROUP BY t.id"):
        frames = []
        while stack:
            stack, frame = recording.parents[stack]
            kind, function, file, module, line, address = rows[frame]
            frames.append({"kind": ["python", "native", "kernel", "marker"][kind], "function": function, "file": file,
                           "module": modules.get(module, ""), "line": line, "address": address, "inlined": False})
        threads.append({"tid": tid, "quality": "ok" if quality == 0 else "", "frames": frames})
    return {"threads": threads}


def ours(moment, tid):
    """(frames, root first; whether the stack has no gap)"""
    assert moment["status"] == 0, moment["error"]
    thread, = (one for one in json.loads(moment["dump"])["threads"] if one["tid"] == tid)
    frames, whole = [], thread["quality"] == "ok"
    for frame in reversed(thread["frames"]):
        if frame["kind"] == "marker":
            whole = False
        elif frame["kind"] == "python":
            frames.append(Frame("p", frame["function"], frame["file"], frame["line"], None))
        elif not frame["inlined"]:
            frames.append(Frame("n", frame["function"], frame["module"], frame["line"], (os.path.basename(frame["module"]), frame["address"])))
    return frames, whole


def markers(moment, tid):
    thread, = (one for one in json.loads(moment["dump"])["threads"] if one["tid"] == tid)
    return [frame["function"] for frame in thread["frames"] if frame["kind"] == "marker"]


def groups(frames):
    """[(native frame or None, [Python frames inside it]), ...], root first."""
    found = [(None, [])]
    for frame in frames:
        if frame.kind == "n":
            found.append((frame, []))
        else:
            found[-1][1].append(frame)
    return found


class Finding:
    """One thread at one moment, read by both, root first: `natives` is [(frame, the Python frames inside it)], `judged` is gdb's."""

    def __init__(self, case, moment, tid, cut):
        self.case, self.tid = case, tid
        self.mapped = Mapped(moment["maps"])
        self.frames, self.whole = ours(moment, tid)
        self.markers = markers(moment, tid)
        found = groups(self.frames)
        assert found[0][1] == []  # nothing before the first native frame
        self.natives = found[1:]
        self.judged = []
        theirs = moment["gdb"][str(tid)]
        for i, frame in enumerate(theirs):
            exact = i == 0 or theirs[i - 1]["signal"]
            self.judged.insert(0, {**frame, "place": self.mapped.place(frame["pc"] if exact else frame["pc"] - 1)})
        if cut:
            self.judged = self.judged[-len(self.natives):]
        # No call returns to an address without code: gdb used wrong call frame information. Some functions that BOLT rewrote have
        # it (adler32 of the standalone 3.14: the second of its two prologues is not described).
        wrong = next((i for i, frame in reversed(list(enumerate(self.judged))) if not self.mapped.is_code(frame["pc"])), None)
        self.astray = wrong is not None
        if self.astray:
            self.judged = self.judged[wrong + 1:]
        self.first = next((i for i, (_, inside) in enumerate(self.natives) if inside), len(self.natives))
        self.loops = [i for i, frame in enumerate(self.judged) if re.match(rf"{LOOP}(\W|$)", frame["name"] or "")]


def judge(case, evaluations, cut=False):
    """Judges every thread at every moment of the case. `evaluations`: the functions of the program that C calls, root first.
    `cut`: the stack lacks its outer part; the rest is judged. -> the findings"""
    found = []
    for moment in case.moments:
        for tid in case.said:
            one = Finding(case, moment, tid, cut)
            if one.astray:
                judge_alone(one, cut)
            else:
                found.append(judge_moment(one, evaluations, cut))
    # The interpreter's own support for gdb read evaluations too; otherwise nothing would have been compared.
    assert found
    own = case.support and pathlib.Path(case.support).parent == pathlib.Path(case.exe).parent
    if own and has_section(found[0].mapped.path(found[0].host.address[0]), ".debug_info"):
        assert sum(one.read for one in found) >= len(found), [one.read for one in found]
    return found


def judge_python(found):
    """Python frames are those that the program reported, by name, file and line; the last one has moved on since. -> the report"""
    chain = [frame for frame in found.frames if frame.kind == "p"]
    said = [tuple(one) for one in found.case.said[found.tid]]
    assert said
    assert [(one.name, one.file) for one in chain[:len(said)]] == [one[:2] for one in said]
    assert [one.line for one in chain[:len(said) - 1]] == [one[2] for one in said[:-1]]
    return said


def judge_alone(found, cut):
    """Where gdb failed: compares as far as gdb came, and with the program's own report."""
    places = [frame["place"] for frame in found.judged]
    assert places and [native.address for native, _ in found.natives][-len(places):] == places
    assert found.whole != cut, found.frames
    judge_python(found)


def judge_moment(found, evaluations, cut):
    natives, judged, case = found.natives, found.judged, found.case
    assert evaluations and natives
    assert found.whole != cut, found.frames
    places, of_gdb = [native.address for native, _ in natives], [frame["place"] for frame in judged]
    same = len(os.path.commonprefix([places[::-1], of_gdb[::-1]]))
    assert places == of_gdb, f"the innermost {same} of {len(places)} and {len(of_gdb)} agree, then {places[:-same or None][-3:]}, {of_gdb[:-same or None][-3:]}"

    said = judge_python(found)

    # Evaluations begin only where C calls Python.
    runs = [inside for _, inside in natives if inside]
    if case.python.minor >= 11:
        of_said, left = [], len(said)
        for inside in runs:
            if left > 0:
                of_said.append(inside[0].name)
            left -= len(inside)
        assert of_said == evaluations
    else:
        assert all(len(inside) == 1 for inside in runs)
    assert len(runs) >= len(evaluations)

    # By gdb's names, Python frames are in the interpreter loop, and each loop has some, except one that is just being entered or left (and those of a greenlet's
    # parent, whose stack it uses).
    found.host = next(native for native, inside in natives if inside)
    if has_section(found.mapped.path(found.host.address[0]), ".symtab"):
        with_python = [i for i, (_, inside) in enumerate(natives) if inside]
        loops = [i for i in found.loops if i >= found.first]
        assert with_python in (loops, loops[:-1]), (with_python, [frame["name"] for frame in judged])

    # gdb's Python support finds the same frames in each; for the running one, the value that it needs may be in no register.
    found.read = 0
    for i, frame in enumerate(judged[:-1]):
        innermost = i == found.loops[-1] if found.loops else False
        if not frame["python"] or not natives[i][1] and (innermost or i < found.first):
            continue
        theirs = [tuple(one[:2]) for one in reversed(frame["python"])]
        assert [(one.name, one.file) for one in natives[i][1]] == theirs, i
        found.read += 1
    return found
