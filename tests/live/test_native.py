"""`--native` on running programs: one stack, with Python and C in the order of their calls."""
import collections
import concurrent.futures
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import threading
import time

import pytest

from live_support import INTERPRETERS, PHLOX, Recording, Target, once_a_version, since

HERE = pathlib.Path(__file__).resolve().parent / "native"
PROGRAM = HERE / "program.py"
RATE = ("-r", "500", "--max-overhead", "off")
SECONDS = 0.8  # four hundred samples: what holds for nine tenths of them is not chance

# A frame of a shown stack: p(ython), n(ative), m(arker).
Frame = collections.namedtuple("Frame", "kind name")


def _includes(python):
    ask = "import sysconfig; print(sysconfig.get_paths()['include']); print(sysconfig.get_config_var('EXT_SUFFIX'))"
    return subprocess.run([python.path, "-c", ask], capture_output=True, text=True).stdout.split("\n")[:2]


# Interpreters for which an extension can be built.
WITH_HEADERS = [python for python in INTERPRETERS if (python.major, python.minor) >= (3, 8)
                and (pathlib.Path(_includes(python)[0]) / "Python.h").is_file()]
ONE_OF_EACH = list({(python.major, python.minor, python.flags): python for python in WITH_HEADERS}.values())
with_headers = pytest.mark.parametrize("builder", WITH_HEADERS, ids=[python.name for python in WITH_HEADERS])


@pytest.fixture(scope="session")
def extension(tmp_path_factory):
    """extension(python) -> the folder of the extension built for it."""
    built = {}

    def build(python):
        if python.name not in built:
            include, suffix = _includes(python)
            folder = tmp_path_factory.mktemp("extension")
            subprocess.run([shutil.which("gcc") or "cc", "-g", "-O2", "-shared", "-fPIC", "-I", include,
                            str(HERE / "extension.c"), "-o", str(folder / f"extension{suffix}"), "-lpthread"], check=True)
            built[python.name] = folder
        return built[python.name]
    return build


def stacks(recording, all_frames=False):
    """(frames root first, weight) of the collapsed export, without the source places."""
    done = subprocess.run([PHLOX, "export", str(recording.path), "-f", "speedscope", *(["--all-frames"] if all_frames else [])],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    file = json.loads(done.stdout)
    names = [frame["name"] for frame in file["shared"]["frames"]]
    for profile in file["profiles"]:
        for sample, weight in zip(profile["samples"], profile["weights"]):
            yield profile["name"], [names[i] for i in sample], weight


def in_order(frames, wanted):
    """Whether `frames` contains `wanted` in this order, with others between."""
    left = iter(frames)
    return all(any(frame == one for frame in left) for one in wanted)


def share(rows, holds):
    """The share of the rows' weight in those that hold."""
    rows = list(rows)
    whole = sum(weight for _, _, weight in rows)
    assert whole > 0
    return sum(weight for _, frames, weight in rows if holds(frames)) / whole


def whole(recording):
    """The share of samples with a native half that have no gap."""
    looks = recording.counter("native")
    assert looks > 10
    return recording.counter("native_whole") / looks


NESTED = ["<module>", "nested", "by_sorted", "key_of", "by_reduce", "add_up", "by_sub", "replaced", "by_ctypes", "callback",
          "by_attribute", "__getattr__", "by_generator", "generator"]


def mode(recording):
    (mode,), = recording.query("SELECT DISTINCT mode FROM process")
    return mode


@pytest.mark.parametrize("source", ["ptrace", "auto"])
@since(3, 6)
def test_python_in_c_in_python_seven_deep(python, source, record):
    with Target(python, PROGRAM, "", "nested") as target:
        recording = record(target.pid, SECONDS, "--native", "--native-source", source, *RATE)
    # The host decides which one it grants; the recording must name it.
    named = {"ptrace": ["ptrace stop of running threads"],
             "auto": ["native frames by perf events", "ptrace stop of running threads"]}
    assert any(text in mode(recording) for text in named[source])
    deep = 0
    for _, frames, _ in stacks(recording):
        # Python frames are in the order of their calls, whatever is between them, however short the stack.
        found = [name for name in (one.split(".")[-1] for one in frames) if name in NESTED]
        assert found == NESTED[:len(found)], frames
        deep += len(found) == len(NESTED)
    assert deep > 0
    assert recording.counter("native_unmerged") <= recording.counter("native") * 0.05
    assert recording.counter("native") > 10


@since(3, 6)
def test_c_is_between_its_python_caller_and_its_python_callee(python, record):
    with Target(python, PROGRAM, "", "nested") as target:
        recording = record(target.pid, SECONDS, "--native", "--native-source", "ptrace", *RATE)
    between = collections.Counter()
    for frames in (frames for _, frames, _ in stacks(recording)):
        for above, below in (("by_sorted", "key_of"), ("by_sub", "replaced"), ("by_ctypes", "callback")):
            if above in frames and below in frames:
                between[above] += frames.index(below) - frames.index(above) > 1
    # A build that is stripped still has its frames, under the name of the file.
    assert between["by_sorted"] and between["by_sub"] and between["by_ctypes"], between


def _ran(pid, begin, end):
    """The share of the time from now + begin to now + end (s) that the process' first thread ran or waited for a CPU."""
    def seconds():
        run, wait, _ = pathlib.Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()
        return time.monotonic(), (int(run) + int(wait)) / 1e9
    time.sleep(begin)
    began, before = seconds()
    time.sleep(end - begin)
    ended, after = seconds()
    return (after - before) / (ended - began)


@pytest.mark.alone
@since(3, 11)
@once_a_version
def test_time_asleep_is_what_the_kernel_says_it_is(python, record):
    """Events find a thread running, whatever it does most."""
    with Target(python, PROGRAM, "", "naps") as target, concurrent.futures.ThreadPoolExecutor() as meanwhile:
        # While it is recorded: sampling makes the thread wait.
        ran = meanwhile.submit(_ran, target.pid, 1, 3)
        recording = record(target.pid, 3, "--native", *RATE)
        ran = ran.result()
    walls = dict(recording.query("SELECT state.cpu = 3, sum(wall_ns) FROM sample JOIN state ON state.id = sample.state GROUP BY 1"))
    assert abs(walls[0] / sum(walls.values()) - ran) < 0.05


@with_headers
def test_an_extension_s_functions_with_lines(builder, record, extension):
    with Target(builder, PROGRAM, extension(builder), "called_from_c") as target:
        recording = record(target.pid, SECONDS, "--native", "--native-source", "ptrace", *RATE)
    wanted = ["<module>", "called_from_c", "call", "ext_call", "in_extension", "spin", "ext_middle", "ext_spin"]
    assert share(stacks(recording), lambda frames: in_order(frames, wanted)) > 0.9
    # Folded: neither the loop nor the start of the program is shown; with --all-frames, all of it is.
    assert share(stacks(recording), lambda frames: frames[0] == "<module>") > 0.9
    if builder.name.startswith("pyenv"):
        full = ["_start", "_PyEval_EvalFrameDefault", "<module>", "call", "_PyEval_EvalFrameDefault", "in_extension", "ext_spin"]
        assert share(stacks(recording, all_frames=True), lambda frames: in_order(frames, full)) > 0.9
    (line,), = recording.query("SELECT DISTINCT file LIKE '%extension.c' AND line > 0 FROM frame WHERE function = 'ext_spin'")
    assert line == 1
    (module,), = recording.query("SELECT DISTINCT m.path LIKE '%/extension%' FROM frame f JOIN module m ON m.id = f.module "
                                 "WHERE function = 'ext_spin'")
    assert module == 1


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="rbp is x86-64's")
@with_headers
def test_asleep_in_a_function_that_counts_from_its_frame_pointer(builder, record, extension):
    """For a sleeping thread, the kernel reports only pc and sp."""
    with Target(builder, PROGRAM, extension(builder), "asleep") as target:
        recording = record(target.pid, SECONDS, "--native", *RATE)
    wanted = ["<module>", "asleep", "sleep_by_frame_pointer", "ext_nap"]
    assert share(stacks(recording), lambda frames: in_order(frames, wanted)) > 0.9
    assert recording.counter("native_whole") >= 0.9 * recording.counter("native")


@with_headers
def test_a_thread_that_gave_the_gil_away(builder, record, extension):
    with Target(builder, PROGRAM, extension(builder), "without_gil") as target:
        recording = record(target.pid, SECONDS, "--native", "--native-source", "ptrace", *RATE)
    wanted = ["<module>", "without_gil", "spin_without_gil", "ext_middle", "ext_spin"]
    assert share(stacks(recording), lambda frames: in_order(frames, wanted)) > 0.9


@pytest.mark.parametrize("builder", ONE_OF_EACH, ids=[python.name for python in ONE_OF_EACH])
def test_a_thread_that_comes_and_goes_is_one_thread(builder, record, extension):
    """Bytewax's workers, Polars' and PyO3's: a thread state is made for each call into Python."""
    shares = {}
    with Target(builder, PROGRAM, extension(builder), "visitor") as target:
        for options in (["--native"], []):
            recording = record(target.pid, 1.2, *options, "-r", "1000", "--max-overhead", "off")
            (elapsed,), = recording.query("SELECT value / 1e9 FROM counter WHERE name = 'elapsed_ns'")
            rows = recording.query("SELECT id, start_ns, end_ns FROM thread WHERE kernel_name = 'ext-visitor' ORDER BY start_ns")
            assert len(rows) == 1, rows
            inside = outside = 0
            for names, looks, wall, quality in recording.stacks("ext-visitor"):
                if "visited" in names:
                    inside += wall
                    assert quality != 4
                else:
                    outside += wall
            (used,), = recording.query("SELECT sum(cpu_ns) / 1e9 FROM sample JOIN thread ON thread.id = thread WHERE kernel_name = 'ext-visitor'")
            if options:
                # All of its time, and its CPU time with it.
                assert (inside + outside) / 1e9 == pytest.approx(elapsed, rel=0.1)
                assert used > 0.3 * elapsed
                assert outside > 0.1 * (inside + outside)
            # No two rows of it at the same time.
            spans = sorted((start, wall / 1e3) for start, wall in recording.query(
                "SELECT start_us, wall_ns FROM sample JOIN thread ON thread.id = thread WHERE kernel_name = 'ext-visitor'"))
            assert all(second[0] >= first[0] + first[1] - 2000 for first, second in zip(spans, spans[1:]))
            shares[tuple(options)] = inside / 1e9 / elapsed
    # Without native frames, its time in Python is shown, however short its calls.
    assert shares[()] == pytest.approx(shares["--native",], rel=0.4), shares


@pytest.mark.parametrize("source", ["ptrace", "auto"])
@with_headers
def test_a_thread_without_python(builder, source, record, extension):
    with Target(builder, PROGRAM, extension(builder), "pool") as target:
        recording = record(target.pid, SECONDS, "--native", "--native-source", source, *RATE)
    rows = recording.query("SELECT id, python_id FROM thread WHERE kernel_name = 'ext-pool'")
    assert [python_id for _, python_id in rows] == [0]
    names = [names for names, *_ in recording.stacks("ext-pool")]
    assert sum("ext_pool" in one and "ext_middle" in one for one in names) > 0.9 * len(names)


@since(3, 8)
def test_a_blocked_thread_is_read_without_a_stop(python, record):
    with Target(python, PROGRAM, "", "blocked") as target:
        recording = record(target.pid, SECONDS, "--native", "--native-source", "syscall", *RATE)
    found = [names for names, *_ in recording.stacks("waiter")] or [names for names, *_ in recording.stacks("%")
                                                                    if "wait" in names]
    assert found
    # Inside the Python function: os.read(), and the C library's read().
    assert any(re.search("read", name) for names in found for name in names[names.index("wait") + 1:]), found[0]
    # Before 3.10 its evaluations are placed by the loop's address, since then by their anchors, with the same result.
    assert recording.counter("native_unmerged") == 0
    assert "native frames of blocked threads only" in mode(recording)


def named_trampolines(recording):
    """The names of the frames of trampolines."""
    return {function for function, in recording.query("SELECT function FROM frame WHERE kind = 1 AND module IS NULL AND function != ''")}


def needs_trampolines(python):
    ask = "import sysconfig; print(sysconfig.get_config_var('PY_HAVE_PERF_TRAMPOLINE'))"
    if subprocess.run([python.path, "-c", ask], capture_output=True, text=True).stdout.strip() != "1":
        pytest.skip("built without trampolines")


def trampolines_are_named(recording):
    names = {name.split(":")[2] for name in named_trampolines(recording) if name.startswith("py::")}
    assert {"key_of", "by_reduce", "busy"} <= names, names
    assert recording.counter("native_cut") <= recording.counter("native") * 0.1
    # Where the Python frame next to it is, hence folded.
    assert share(stacks(recording), lambda frames: not any("py::" in frame for frame in frames)) == 1
    assert share(stacks(recording, all_frames=True), lambda frames: any("py::" in frame for frame in frames)) > 0.5


@since(3, 12)
def test_trampolines_are_named_by_the_perf_map(python, record):
    needs_trampolines(python)
    with Target(python, "-X", "perf", PROGRAM, "", "trampolines") as target:
        recording = record(target.pid, SECONDS, "--native", "--native-source", "ptrace", *RATE)
        (pathlib.Path("/tmp") / f"perf-{target.pid}.map").unlink()
    trampolines_are_named(recording)


@since(3, 13)
def test_trampolines_are_named_by_the_jitdump(python, record):
    needs_trampolines(python)
    with Target(python, "-X", "perf_jit", PROGRAM, "", "trampolines") as target:
        recording = record(target.pid, SECONDS, "--native", "--native-source", "ptrace", *RATE)
        pathlib.Path(f"/tmp/jit-{target.pid}.dump").unlink()
    trampolines_are_named(recording)


# Debian's Cython writes C for up to 3.11.
WITH_CYTHON = [python for python in WITH_HEADERS if shutil.which("cython3") and (python.major, python.minor) in ((3, 9), (3, 11))]


@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("builder", WITH_CYTHON, ids=[python.name for python in WITH_CYTHON])
def test_cython_s_functions_by_their_own_names_and_lines(builder, language, record, tmp_path):
    source = tmp_path / ("fast.c" if language == "c" else "fast.cpp")
    shutil.copy(HERE / "fast.pyx", tmp_path)
    subprocess.run(["cython3", *(["--cplus"] if language == "c++" else []), "fast.pyx", "-o", source.name], cwd=tmp_path, check=True)
    include, suffix = _includes(builder)
    subprocess.run(["gcc" if language == "c" else "g++", "-g", "-O1", "-shared", "-fPIC", "-I", include, source.name, "-o",
                    f"fast{suffix}"], cwd=tmp_path, check=True)
    with Target(builder, PROGRAM, tmp_path, "cython") as target:
        recording = record(target.pid, SECONDS, "--native", "--native-source", "ptrace", *RATE)
    # One frame for each function, however Cython compiled it.
    ours = ["fast.from_python", "fast.through_def", "fast.both_ways"]
    seen = [[frame for frame in frames if frame.startswith("fast.")] for _, frames, _ in stacks(recording)]
    assert seen.count(ours) + seen.count([*ours, "fast.of_c_only"]) > 0.9 * len(seen), seen[:5]
    assert share(stacks(recording), lambda frames: in_order(frames, ["cython", *ours, "fast.of_c_only"])) > 0.3
    assert share(stacks(recording), lambda frames: not any(re.search("__[Pp]yx_", frame) for frame in frames)) > 0.95
    pairs = [["fast.through_def"] * 2, ["fast.both_ways"] * 2]
    assert share(stacks(recording, all_frames=True), lambda frames: any(in_order(frames, pair) for pair in pairs)) > 0.5
    lines = recording.query("SELECT DISTINCT line FROM frame WHERE function = 'fast.of_c_only' AND file LIKE '%fast.pyx'")
    assert {line for line, in lines} <= set(range(16, 22)) and lines


@pytest.mark.parametrize("builder", ONE_OF_EACH, ids=[python.name for python in ONE_OF_EACH])
def test_a_library_that_is_loaded_meanwhile(builder, record, extension):
    with Target(builder, PROGRAM, extension(builder), "late") as target:
        recording = record(target.pid, 2 * SECONDS, "--native", "--native-source", "ptrace", *RATE)
    assert whole(recording) > 0.9
    wanted = ["<module>", "late", "call", "ext_call", "for_a_while", "busy"]
    assert share(stacks(recording), lambda frames: in_order(frames, wanted)) > 0.6


def test_numpy(record):
    """The system's own Python and NumPy, as packaged: stripped, without debug information."""
    python = collections.namedtuple("Python", "name path")("system", "/usr/bin/python3")
    with Target(python, PROGRAM, "", "numpy_sort") as target:
        recording = record(target.pid, SECONDS, "--native", "--native-source", "ptrace", *RATE)
    modules = {pathlib.Path(path).name for path, in recording.query("SELECT path FROM module")}
    assert any(name.startswith("_multiarray_umath") for name in modules), modules
    assert whole(recording) > 0.9
    assert share(stacks(recording), lambda frames: in_order(frames, ["<module>", "numpy_sort"])) > 0.9


VDSO = "SELECT DISTINCT qualified_name FROM frame JOIN module ON module.id = module WHERE path = '[vdso]'"


def test_functions_of_the_vdso_have_their_names(tmp_path):
    script = "import time\nend = time.time() + 1.5\nwhile time.time() < end: pass\n"
    path = tmp_path / "clock.phlox"
    done = subprocess.run([PHLOX, "record", "--native", *RATE, "-o", path, "--", "/usr/bin/python3", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    names = {name for name, in Recording(path).query(VDSO)}
    if not names:
        pytest.skip("the host's clock is not read in the vdso")
    assert names <= {"clock_gettime", "__vdso_clock_gettime", "__kernel_clock_gettime"}, names


@since(3, 8)
def test_dump(python):
    with Target(python, PROGRAM, "", "nested") as target:
        time.sleep(0.1)  # a dump is quick enough to find it printing `ready`
        done = subprocess.run([PHLOX, "dump", "--native", "--json", "-p", str(target.pid)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    thread, = json.loads(done.stdout)["threads"]
    names = [frame["function"] for frame in reversed(thread["frames"])]
    # Below them is the C library's caller of main(), which has a name only if its debug information is installed.
    assert in_order(names, ["<module>", "nested"])
    assert any(frame["kind"] == "native" for frame in thread["frames"])


@pytest.fixture
def debuginfod(tmp_path):
    """debuginfod({build-id: file}) -> an environment that uses this server."""
    servers = []

    def serve(files):
        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                found = re.fullmatch("/buildid/([0-9a-f]+)/debuginfo", self.path)
                file = files.get(found.group(1)) if found else None
                self.send_response(200 if file else 404)
                self.end_headers()
                if file:
                    self.wfile.write(file.read_bytes())

            def log_message(self, *_):
                pass
        servers.append(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return {**os.environ, "DEBUGINFOD_URLS": f"http://127.0.0.1:{servers[-1].server_port}", "DEBUGINFOD_CACHE_PATH": str(tmp_path / "cache"),
                "DEBUGINFOD_TIMEOUT": "5", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    yield serve
    for server in servers:
        server.shutdown()


@pytest.mark.parametrize("where", ["link", "debug-path", "debuginfod", "nowhere"])
@pytest.mark.parametrize("builder", WITH_HEADERS[-1:], ids=[python.name for python in WITH_HEADERS[-1:]])
def test_debug_information_in_a_file_of_its_own(builder, where, extension, tmp_path, debuginfod):
    original, = extension(builder).glob("extension*.so")
    module, debug = tmp_path / original.name, tmp_path / "extension.debug"
    subprocess.run(["objcopy", "--only-keep-debug", original, debug], check=True)
    link = [f"--add-gnu-debuglink={debug}"] if where == "link" else []
    subprocess.run(["objcopy", "--strip-all", *link, original, module], check=True)
    notes = subprocess.run(["readelf", "-n", module], capture_output=True, text=True, check=True).stdout
    build_id = re.search("Build ID: ([0-9a-f]+)", notes).group(1)
    options, environment = [], None
    if where == "debug-path":
        folder = tmp_path / "symbols" / ".build-id" / build_id[:2]
        folder.mkdir(parents=True)
        debug.rename(folder / f"{build_id[2:]}.debug")
        options = ["--debug-path", str(tmp_path / "symbols")]
    elif where == "debuginfod":
        hidden = tmp_path / "elsewhere"
        debug.rename(hidden)
        environment = debuginfod({build_id: hidden})
        options = ["--debuginfod"]
    elif where == "nowhere":
        debug.unlink()
    path = tmp_path / "app.phlox"
    with Target(builder, PROGRAM, tmp_path, "in_extension") as target:
        done = subprocess.run([PHLOX, "record", "-p", str(target.pid), "-d", "1", "-o", str(path), "--native", "--native-source", "ptrace", *RATE,
                               *options], capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    recording = Recording(path)
    rows = recording.query("SELECT DISTINCT file LIKE '%extension.c' AND line > 0 FROM frame WHERE function = 'ext_spin'")
    if where != "nowhere":
        assert rows == [(1,)]
        return
    assert rows == []
    # Each function has one name, its start, and a message says what would give a better one.
    starts = {function for function, in recording.query("SELECT function FROM frame f JOIN module m ON m.id = f.module "
                                                        "WHERE m.path LIKE ? AND function LIKE '%+0x%'", f"%{module.name}")}
    assert 1 <= len(starts) <= 5, starts
    advice = "build it with -g and without stripping"
    assert advice in done.stderr and build_id in done.stderr
    missing, = recording.query("SELECT functions, advice FROM missing_names n JOIN module m ON m.id = n.module WHERE m.path = ?", str(module))
    assert missing[0] == 1 and advice in missing[1]
    report = json.loads(subprocess.run([PHLOX, "report", "--json", path], capture_output=True, text=True, check=True).stdout)
    assert any(row["module"] == str(module) and row["build_id"] == build_id and advice in row["advice"] for row in report["missing_names"])


def test_the_package_that_brought_the_interpreter_is_named(tmp_path):
    """Debian strips its Python; dpkg knows which package it is of."""
    if not pathlib.Path("/var/lib/dpkg/info").is_dir():
        pytest.skip("no dpkg here")
    python = collections.namedtuple("Python", "name path")("system", "/usr/bin/python3")
    with Target(python, PROGRAM, "", "blocked") as target:
        done = subprocess.run([PHLOX, "dump", "--native", "--json", "-p", str(target.pid)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    rows = {pathlib.Path(row["module"]).name: row["advice"] for row in json.loads(done.stdout)["missing_names"]}
    owner = subprocess.run(["dpkg", "-S", pathlib.Path("/usr/bin/python3").resolve()], capture_output=True, text=True).stdout.split(":")[0]
    assert owner.startswith("python3."), owner
    debug = re.match(r"python3\.\d+", owner).group() + "-dbg"
    assert f"apt install {debug}" in rows[pathlib.Path("/usr/bin/python3").resolve().name], rows


def test_options_for_native_frames_need_them():
    done = subprocess.run([PHLOX, "record", "--native-source", "ptrace", "-p", "1"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "--native" in done.stderr


MOVED = """
import ctypes, os, sys
library = ctypes.CDLL(sys.argv[1])
assert library.moves() == 0
def calls():
    while True: library.computes_moved(ctypes.c_long(10**6))
print("ready %d" % os.getpid(), flush=True)
calls()
"""


@pytest.mark.parametrize("mode", ["auto", "no-kernel"])
def test_code_that_was_moved_to_memory_without_a_file_keeps_its_names(record, tmp_path, mode):
    library, program = tmp_path / "libmoved.so", tmp_path / "moved.py"
    subprocess.run(["gcc", "-O2", "-g", "-shared", "-fPIC", HERE / "moved_code.c", "-o", library], check=True)
    program.write_text(MOVED)
    python = collections.namedtuple("Python", "name path")("system", "/usr/bin/python3")
    with Target(python, program, library) as target:
        maps = pathlib.Path(f"/proc/{target.pid}/maps").read_text()
        recording = record(target.pid, SECONDS, "--native", "--mode", mode, *RATE)
    assert not re.search(r" r-xp .*libmoved", maps), "its code is not where its file is mapped"
    assert share(stacks(recording), lambda frames: in_order(frames, ["calls", "computes_moved"])) > 0.8
    assert share(stacks(recording), lambda frames: any("JIT" in frame for frame in frames)) < 0.05
