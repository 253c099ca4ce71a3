"""Merged stacks of stopped processes, compared with gdb (judge.py): deep re-entry on every version, and builds and callers that are
hard to merge."""
import collections
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from host_facts import distribution
from judge import HERE, Case, has_section, judge
from live_support import CACHE, INTERPRETERS, Target, few_pythons, once_a_version, since
from programs import embedded
from test_native import stacks

# Sorting, reducing, substituting, a ctypes callback, an attribute, an import and a generator: each leads from C into Python.
NESTED = ["<module>", "key_of", "add_up", "replaced", "callback", "__getattr__", "_find_and_load", "<module>", "generator"]
# For programs that import nested.py, whose module is not imported again.
WITHOUT_IMPORT = [*NESTED[:6], "generator"]

Python = collections.namedtuple("Python", "name path major minor flags")
# The environment that the tests run in: it holds packages with code in Rust and C (tools/requirements-test.txt).
VENV = Python("venv", sys.executable, *sys.version_info[:2], "-")
SYSTEM = VENV._replace(name="system", path="/usr/bin/python3")


def asked(python, code):
    return subprocess.run([python.path, "-c", code], capture_output=True, text=True, check=True).stdout.strip().split("\n")


def file_of(python):
    """The file that holds the interpreter: the library if it has one."""
    exe, name, folder = asked(python, "import os, sys, sysconfig; print(os.path.realpath(sys.executable)); "
                                      "print(sysconfig.get_config_var('INSTSONAME')); print(sysconfig.get_config_var('LIBDIR'))")
    next_to_it = pathlib.Path(exe).parent.parent / "lib" / name
    return next((str(path) for path in (next_to_it, pathlib.Path(folder) / name) if path.suffix != ".a" and path.is_file()), exe)


def needs(python, *modules):
    """A build without optional modules is not judged."""
    if subprocess.run([python.path, "-c", "import " + ", ".join(modules)], capture_output=True).returncode != 0:
        pytest.skip(f"{python.name} was built without one of {modules}")


@once_a_version
@since(3, 8)
def test_nine_evaluations_deep(python, tmp_path):
    needs(python, "ctypes", "zlib")
    if "musl" in python.name:
        pytest.skip("musl's libc has no call frame information, and gdb goes astray in it: LiveUnwind and LiveMerge judge there")
    judge(Case(python, tmp_path), NESTED)


@since(3, 8)
@few_pythons
def test_several_threads(python, tmp_path):
    needs(python, "ctypes", "zlib")
    case = Case(python, tmp_path, script="threads.py")
    assert len(case.said) == 4 and case.pid not in case.said
    # The free-threaded build runs them at once.
    found = judge(case, ["work", *WITHOUT_IMPORT[1:]])
    assert len(found) == 4 * len(case.moments)


# ---- builds ---------------------------------------------------------------------------------------------------

def test_builds_whose_loop_is_made_of_tail_calls(tmp_path):
    those = [python for python in INTERPRETERS if (python.major, python.minor) >= (3, 14)
             and "tail-call-interp" in asked(python, "import sysconfig; print(sysconfig.get_config_var('CONFIG_ARGS'))")[0]]
    if not those and distribution() != "debian":
        pytest.skip("Debian sid's 3.14 and 3.15 are such builds, and none of Ubuntu's is")
    assert those, "none of the interpreters here is such a build"
    for python in those:
        judge(Case(python, tmp_path), NESTED)


def test_free_threaded_builds(tmp_path):
    those = [python for python in INTERPRETERS if "t" in python.flags]
    assert those, "none of the interpreters here is such a build"
    for python in those:
        judge(Case(python, tmp_path), NESTED)
        judge(Case(python, tmp_path, script="threads.py"), ["work", *WITHOUT_IMPORT[1:]])


def test_builds_whose_loop_is_split(tmp_path):
    """Into a part with the exported name and others without a name, like a stripped build with profile-guided optimisation."""
    those = [python for python in INTERPRETERS if (python.major, python.minor) >= (3, 11) and python.name.startswith(("sid", "trixie", "system"))]
    if not those and os.geteuid() != 0:
        pytest.skip("the system's Python is none, and only root can have Debian's others")
    assert those, "none of the interpreters here is such a build"
    outside = 0
    for python in those:
        for found in judge(Case(python, tmp_path, script="raising.py"), WITHOUT_IMPORT):
            outside += sum(1 for native, inside in found.natives if inside and native.name != "_PyEval_EvalFrameDefault")
    if outside == 0 and distribution() != "debian":
        pytest.skip("Debian's Pythons are such builds, and none of Ubuntu's is")
    assert outside > 0


def stripped_copy(python, to):
    """(command, environment): copies of the interpreter and its library, stripped of every symbol that they can do without."""
    exe = asked(python, "import sys, os; print(os.path.realpath(sys.executable))")[0]
    held_in = file_of(python)
    for path, folder in {exe: "bin", held_in: "bin" if held_in == exe else "lib"}.items():
        (to / folder).mkdir(parents=True, exist_ok=True)
        copy = shutil.copy2(path, to / folder)
        os.chmod(copy, 0o755)
        subprocess.run(["strip", "--strip-all", copy], check=True)
    home = asked(python, "import sys; print(sys.base_prefix)")[0]
    return [str(to / "bin" / os.path.basename(exe))], {"LD_LIBRARY_PATH": str(to / "lib"), "PYTHONHOME": home}


# Not those with their own root, where a copy could not be started, nor those that come stripped.
COPIED = [python for python in INTERPRETERS if (python.major, python.minor) >= (3, 8) and python.name.startswith(("pyenv", "standalone"))
          and has_section(file_of(python), ".symtab")]


@pytest.mark.parametrize("python_to_strip", COPIED, ids=[python.name for python in COPIED])
def test_stripped_builds(python_to_strip, tmp_path):
    command, environment = stripped_copy(python_to_strip, tmp_path / "stripped")
    for found in judge(Case(python_to_strip, tmp_path, command=command, env=environment), NESTED):
        held_in = found.mapped.path(found.host.address[0])
        assert held_in.startswith(str(tmp_path)) and not has_section(held_in, ".symtab")


@pytest.mark.parametrize("stripped", [False, True], ids=["with-symbols", "stripped"])
def test_static_in_a_c_program(tmp_path, stripped):
    program = embedded(tmp_path / "shop-server", True, "-rdynamic")  # for what nested.py imports
    if stripped:
        subprocess.run(["strip", "--strip-all", program], check=True)
    for found in judge(Case(SYSTEM, tmp_path, command=[str(program)]), NESTED):
        assert found.host.address[0] == "shop-server"


# ---- callers --------------------------------------------------------------------------------------------------

def test_rust_calls_python(tmp_path):
    judge(Case(VENV, tmp_path, script="from_rust.py"), ["<module>", "checked", "written"])


def compiled(source, to, *options):
    compiler = {".c": "gcc", ".cpp": "g++"}[pathlib.Path(source).suffix]
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", str(HERE / source), "-o", str(to), *options], check=True)
    return to


def test_cxx_calls_python(tmp_path):
    library = compiled("from_cxx.cpp", tmp_path / "from_cxx.so")
    for found in judge(Case(SYSTEM, tmp_path, script="from_cxx.py", arguments=[library]), ["<module>", "compared"]):
        names = [frame.name for frame in found.frames]
        assert names.index("from_cxx") < names.index("compared")
        assert any("ByCallBack::before" in name for name in names) and any("sort_by" in name for name in names), names


GREENLETS = [VENV, *[one for one in INTERPRETERS if (one.major, one.minor) == (3, 10)][:1]]


# 3.10's evaluations are counted from the root, where greenlet has its own frames.
@pytest.mark.parametrize("when", ["started", "resumed"])
@pytest.mark.parametrize("builder", GREENLETS, ids=lambda builder: builder.name)
def test_a_greenlet_on_its_parent_s_stack(tmp_path, monkeypatch, builder, when):
    if builder != VENV:
        monkeypatch.setenv("PYTHONPATH", str(CACHE / "greenlet-3.10"))
    found = judge(Case(builder, tmp_path, script="greenlets.py", arguments=[when]), ["run", *WITHOUT_IMPORT[1:]], cut=True)
    # A greenlet ends there: its stack is right.
    assert all(one.markers == ["(a greenlet begins here)"] for one in found), [one.markers for one in found]


# Remains of others further out on the C stack look like callers.
@pytest.mark.parametrize("builder", GREENLETS, ids=lambda builder: builder.name)
def test_greenlets_have_no_callers(builder, monkeypatch, record):
    if builder != VENV:
        monkeypatch.setenv("PYTHONPATH", str(CACHE / "greenlet-3.10"))
    with Target(builder, HERE / "many_greenlets.py", 30) as target:
        recording = record(target.pid, 1, "--native", "-r", "200")
    roots = collections.Counter()
    for _, frames, _ in stacks(recording):
        if "spin" in frames:
            roots[tuple(frames[:frames.index("run")])] += 1
    assert len(roots) == 1, roots
    (marker, *callers), = roots
    # 3.10: also the frame that holds the library's own evaluation.
    assert marker == "(a greenlet begins here)" and len(callers) == (2 if builder.minor == 10 else 1), roots
    assert recording.counter("native_whole") >= 0.95 * recording.counter("native") > 50


def test_the_trampoline_of_lazy_binding(tmp_path):
    library = compiled("from_resolver.c", tmp_path / "from_resolver.so", "-Wl,-z,lazy")
    for found in judge(Case(SYSTEM, tmp_path, script="from_resolver.py", arguments=[library]), ["<module>", "<lambda>"]):
        assert any("_dl_runtime_resolve" in frame["symbol"] for frame in found.judged)
