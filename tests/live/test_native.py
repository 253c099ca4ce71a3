"""`--native` on running programs: one stack, Python and C in the order in which they called each other."""
import collections
import json
import pathlib
import re
import shutil
import subprocess

import pytest

from live_support import INTERPRETERS, PHLOX, Target, since

HERE = pathlib.Path(__file__).resolve().parent / "native"
PROGRAM = HERE / "program.py"
RATE = ("-r", "500", "--max-overhead", "off")

# A frame of a shown stack: p(ython), n(ative), m(arker).
Frame = collections.namedtuple("Frame", "kind name")


def _includes(python):
    ask = "import sysconfig; print(sysconfig.get_paths()['include']); print(sysconfig.get_config_var('EXT_SUFFIX'))"
    return subprocess.run([python.path, "-c", ask], capture_output=True, text=True).stdout.split("\n")[:2]


# Those that an extension can be built for.
WITH_HEADERS = [python for python in INTERPRETERS if (python.major, python.minor) >= (3, 8)
                and (pathlib.Path(_includes(python)[0]) / "Python.h").is_file()]
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
    """Whether `wanted` stands in `frames`, in this order, with others between."""
    left = iter(frames)
    return all(any(frame == one for frame in left) for one in wanted)


def share(rows, holds):
    """Of the weight of the rows, how much lies in those that hold."""
    rows = list(rows)
    whole = sum(weight for _, _, weight in rows)
    assert whole > 0
    return sum(weight for _, frames, weight in rows if holds(frames)) / whole


def whole(recording):
    """Of the looks with a native half, those without any gap."""
    looks = recording.tally("native")
    assert looks > 10
    return recording.tally("native_whole") / looks


NESTED = ["<module>", "nested", "by_sorted", "key_of", "by_reduce", "add_up", "by_sub", "replaced", "by_ctypes", "callback",
          "by_attribute", "__getattr__", "by_generator", "generator"]


def way(recording):
    (way,), = recording.query("SELECT DISTINCT way_of_reading FROM process")
    return way


@pytest.mark.parametrize("source", ["ptrace", "auto"])
@since(3, 6)
def test_python_in_c_in_python_seven_deep(python, source, record):
    with Target(python, PROGRAM, "", "nested") as target:
        recording = record(target.pid, 1.5, "--native", "--native-source", source, *RATE)
    # Which one the host grants is not the test's to say; that it is named is.
    named = {"ptrace": ["ptrace stop of running threads"],
             "auto": ["native frames by perf events", "ptrace stop of running threads"]}
    assert any(text in way(recording) for text in named[source])
    deep = 0
    for _, frames, _ in stacks(recording):
        # Python frames are in the order of their calls, whatever lies between them, however short the stack.
        found = [name for name in (one.split(".")[-1] for one in frames) if name in NESTED]
        assert found == NESTED[:len(found)], frames
        deep += len(found) == len(NESTED)
    assert deep > 0
    assert recording.tally("native_unmerged") <= recording.tally("native") * 0.05
    assert recording.tally("native") > 10


@since(3, 6)
def test_c_stands_between_the_python_that_called_it_and_the_python_it_calls(python, record):
    with Target(python, PROGRAM, "", "nested") as target:
        recording = record(target.pid, 1.5, "--native", "--native-source", "ptrace", *RATE)
    between = collections.Counter()
    for frames in (frames for _, frames, _ in stacks(recording)):
        for above, below in (("by_sorted", "key_of"), ("by_sub", "replaced"), ("by_ctypes", "callback")):
            if above in frames and below in frames:
                between[above] += frames.index(below) - frames.index(above) > 1
    # A build that is stripped still has its frames, under the name of the file.
    assert between["by_sorted"] and between["by_sub"] and between["by_ctypes"], between


@with_headers
def test_an_extension_s_functions_with_lines(builder, record, extension):
    with Target(builder, PROGRAM, extension(builder), "called_from_c") as target:
        recording = record(target.pid, 1.5, "--native", "--native-source", "ptrace", *RATE)
    wanted = ["<module>", "called_from_c", "call", "ext_call", "in_extension", "spin", "ext_middle", "ext_spin"]
    assert share(stacks(recording), lambda frames: in_order(frames, wanted)) > 0.9
    # Folded: neither the loop nor the start of the program is in sight, and all of it with --all-frames.
    assert share(stacks(recording), lambda frames: frames[0] == "<module>") > 0.9
    if builder.name.startswith("pyenv"):
        full = ["_start", "_PyEval_EvalFrameDefault", "<module>", "call", "_PyEval_EvalFrameDefault", "in_extension", "ext_spin"]
        assert share(stacks(recording, all_frames=True), lambda frames: in_order(frames, full)) > 0.9
    (line,), = recording.query("SELECT DISTINCT file LIKE '%extension.c' AND line > 0 FROM frame WHERE function = 'ext_spin'")
    assert line == 1
    (module,), = recording.query("SELECT DISTINCT m.path LIKE '%/extension%' FROM frame f JOIN module m ON m.id = f.module "
                                 "WHERE function = 'ext_spin'")
    assert module == 1


@with_headers
def test_a_thread_that_gave_the_gil_away(builder, record, extension):
    with Target(builder, PROGRAM, extension(builder), "without_gil") as target:
        recording = record(target.pid, 1.5, "--native", "--native-source", "ptrace", *RATE)
    wanted = ["<module>", "without_gil", "spin_without_gil", "ext_middle", "ext_spin"]
    assert share(stacks(recording), lambda frames: in_order(frames, wanted)) > 0.9


@pytest.mark.parametrize("source", ["ptrace", "auto"])
@with_headers
def test_a_thread_without_python(builder, source, record, extension):
    with Target(builder, PROGRAM, extension(builder), "pool") as target:
        recording = record(target.pid, 1.5, "--native", "--native-source", source, *RATE)
    rows = recording.query("SELECT id, python_id FROM thread WHERE kernel_name = 'ext-pool'")
    assert [python_id for _, python_id in rows] == [0]
    names = [names for names, *_ in recording.stacks("ext-pool")]
    assert sum("ext_pool" in one and "ext_middle" in one for one in names) > 0.9 * len(names)


@since(3, 8)
def test_a_blocked_thread_is_read_as_it_lies(python, record):
    with Target(python, PROGRAM, "", "blocked") as target:
        recording = record(target.pid, 1.5, "--native", "--native-source", "syscall", *RATE)
    found = [names for names, *_ in recording.stacks("waiter")] or [names for names, *_ in recording.stacks("%")
                                                                    if "wait" in names]
    assert found
    # Beneath the Python function: os.read(), and the C library's read().
    assert any(re.search("read", name) for names in found for name in names[names.index("wait") + 1:]), found[0]
    # Before 3.10 its evaluations are placed by the loop's address, since then by their anchors: in the same places.
    assert recording.tally("native_unmerged") == 0
    assert "native frames of blocked threads only" in way(recording)


def test_numpy(record):
    """The system's own Python and NumPy, as packaged: stripped, without debug information."""
    python = collections.namedtuple("Python", "name path")("system", "/usr/bin/python3")
    with Target(python, PROGRAM, "", "numpy_sort") as target:
        recording = record(target.pid, 1.5, "--native", "--native-source", "ptrace", *RATE)
    modules = {pathlib.Path(path).name for path, in recording.query("SELECT path FROM module")}
    assert any(name.startswith("_multiarray_umath") for name in modules), modules
    assert whole(recording) > 0.9
    assert share(stacks(recording), lambda frames: in_order(frames, ["<module>", "numpy_sort"])) > 0.9


@since(3, 8)
def test_dump(python):
    with Target(python, PROGRAM, "", "nested") as target:
        done = subprocess.run([PHLOX, "dump", "--native", "--json", "-p", str(target.pid)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    thread, = json.loads(done.stdout)["threads"]
    names = [frame["function"] for frame in reversed(thread["frames"])]
    # Beneath them lies the C library's start of main(), which has a name only where its debug information is installed.
    assert in_order(names, ["<module>", "nested"])
    assert any(frame["kind"] == "native" for frame in thread["frames"])


def test_options_for_native_frames_need_them():
    done = subprocess.run([PHLOX, "record", "--native-source", "ptrace", "-p", "1"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "--native" in done.stderr
