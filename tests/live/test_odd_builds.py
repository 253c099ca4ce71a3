"""Pythons in unusual places: embedded, renamed, replaced while they run, two in one process; and what is refused, with
its reason. The programs are the system's Python unless noted."""
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile

import pytest

import families
from live_support import INTERPRETERS, PHLOX
from lines import LINES, lines_of, reported_lines
from programs import (HARD, SYSTEM, TARGETS, Program, brought, compile_program, copied_python, embedded, system_facts,
                      system_libpython)

RATE = ("-r", "1000", "--max-overhead", "off")
UNSUPPORTED, STATE = 113, 116


def found_by(recording):
    return recording.query("SELECT found_by FROM process")[0][0]


def records_truly(record, program, seconds=0.7):
    recording = record(program.pid, seconds, *RATE)
    families.check(recording)
    return recording


def refused(folder, program, *words, status=UNSUPPORTED):
    for command in (["dump", "-p"], ["record", "-o", str(folder / "refused.phlox"), "-d", "1", "-p"]):
        done = subprocess.run([PHLOX, *command, str(program.pid)], capture_output=True, text=True, timeout=60)
        assert done.returncode == status, done.stderr
        for word in words:
            assert word in done.stderr
    assert program.process.poll() is None


# ---- inside another program ------------------------------------------------------------------------------------

@pytest.mark.parametrize("how", [[], ["-i"]], ids=["Py_RunMain", "Py_Initialize"])
@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_embedded_in_a_c_program(record, tmp_path, static, how):
    program = embedded(tmp_path / "shop-server", static)
    with Program(program, *how, HARD, 60, 30, env={"PYTHONPATH": str(TARGETS), "PYTHONUNBUFFERED": "1"}) as running:
        recording = records_truly(record, running)
    assert ("shop-server" if static else "libpython") in found_by(recording)


def test_embedded_static_and_stripped(record, tmp_path):
    program = embedded(tmp_path / "shop-server", static=True)
    subprocess.run(["strip", "--strip-all", program], check=True)
    with Program(program, HARD, 60, 30) as running:
        recording = records_truly(record, running)
    assert "symbol" not in found_by(recording)


def test_embedded_static_stripped_and_without_its_section(record, tmp_path):
    program = embedded(tmp_path / "shop-server", static=True)
    subprocess.run(["objcopy", "--strip-all", "--rename-section", ".PyRuntime=.data.shop", program], check=True)
    with Program(program, HARD, 60, 30) as running:
        recording = records_truly(record, running)
    assert "symbol" not in found_by(recording) and "section" not in found_by(recording)


def test_uwsgi(record, tmp_path):
    (tmp_path / "app.py").write_text(THREAD_OF_AN_APPLICATION)
    with Program(brought("uwsgi-core"), "--plugin", "python3", "--socket", tmp_path / "socket", "--master", "--enable-threads", "--need-app",
                 "--disable-logging", "--wsgi-file", tmp_path / "app.py", "--lazy-apps", env={"TARGETS": str(TARGETS)}) as running:
        recording = records_truly(record, running)
    assert "libpython3.13" in found_by(recording)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def open_folder():
    """A folder that every user may read: Apache runs as a user who may not read the tree or pytest's folders."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="phlox-", dir="/tmp"))
    folder.chmod(0o755)
    for name in ("hard.py", "meter.py", "two_families.py"):
        shutil.copy(TARGETS / name, folder)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("group", ["%{GLOBAL}", "shop"], ids=["main-interpreter", "subinterpreter"])
def test_mod_wsgi(record, open_folder, group):
    (open_folder / "app.wsgi").write_text(THREAD_OF_AN_APPLICATION)
    modules = "/usr/lib/apache2/modules"
    (open_folder / "apache.conf").write_text(f"""
ServerRoot {open_folder}
ServerName localhost
PidFile {open_folder}/pid
Mutex file:{open_folder}
ErrorLog /dev/stderr
Listen 127.0.0.1:{free_port()}
User #33
Group #33
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule wsgi_module {modules}/mod_wsgi.so
WSGIImportScript {open_folder}/app.wsgi process-group=%{{GLOBAL}} application-group={group}
""")
    with Program(brought("apache2"), "-X", "-f", open_folder / "apache.conf", env={"TARGETS": str(open_folder)}) as running:
        recording = records_truly(record, running)
    assert "libpython3.13" in found_by(recording)


# In a thread, because the server keeps serving; `ready` through a system call, because servers replace sys.stdout.
THREAD_OF_AN_APPLICATION = '''
import os, sys, threading
sys.argv = ["hard.py", "60", "30"]
sys.path.insert(0, os.environ["TARGETS"])
import meter, signal
meter.ready = lambda: os.write(1, b"ready %d\\n" % os.getpid())
meter.signal = type("no_signals", (), {"signal": staticmethod(lambda *_: None), "SIGTERM": 15})
def work():
    import hard
threading.Thread(target=work, name="shop", daemon=True).start()
def application(environ, start_response):
    start_response("200 OK", [])
    return [b""]
'''


# ---- the executable is not what it was -------------------------------------------------------------------------

def test_a_renamed_executable(record, tmp_path):
    with Program(copied_python(tmp_path / "shop-server"), "-u", HARD, 60, 30) as running:
        recording = records_truly(record, running)
    assert "shop-server" in found_by(recording)


def test_a_relocated_prefix(record, tmp_path):
    folder, = system_facts("LIBDEST")
    (tmp_path / "moved" / "bin").mkdir(parents=True)
    (tmp_path / "moved" / "lib").mkdir()
    (tmp_path / "moved" / "lib" / os.path.basename(folder)).symlink_to(folder)
    with Program(copied_python(tmp_path / "moved" / "bin" / "python3"), "-u", HARD, 60, 30) as running:
        records_truly(record, running)


# As conda does: interpreter, libpython and library are at another place than they were built for.
with_a_prefix = pytest.mark.parametrize("moved", [p for p in INTERPRETERS if p.name.startswith("standalone")], ids=lambda p: p.name)


def moved_prefix(python, to):
    """The prefix of a python-build-standalone at another place: interpreter and libpython copied, the library linked to."""
    old = pathlib.Path(os.path.realpath(python.path)).parent.parent
    (to / "bin").mkdir(parents=True)
    (to / "lib").mkdir()
    for library in old.glob("lib/libpython*.so*"):
        shutil.copy2(library, to / "lib")
    (to / "lib" / f"python{python.major}.{python.minor}").symlink_to(old / "lib" / f"python{python.major}.{python.minor}")
    return shutil.copy2(os.path.realpath(python.path), to / "bin" / "python")


@with_a_prefix
@pytest.mark.parametrize("when", ["before", "while it runs"])
def test_a_whole_prefix_is_moved(record, tmp_path, moved, when):
    program = moved_prefix(moved, tmp_path / "moved")
    with Program(program, "-u", HARD, 60, 30) as running:
        if when == "while it runs":
            os.rename(tmp_path / "moved", tmp_path / "away")
            moved_prefix(moved, tmp_path / "moved")
        maps = pathlib.Path(f"/proc/{running.pid}/maps").read_text()
        assert str(tmp_path / ("moved" if when == "before" else "away") / "bin" / "python") in maps
        records_truly(record, running)


def test_an_executable_that_was_never_a_file(record):
    # Launchers that unpack into memory: /proc/PID/exe is "/memfd:shop (deleted)".
    launch = ("import os, sys; at = os.memfd_create('shop', 0); os.write(at, open(os.path.realpath(sys.executable), 'rb').read()); "
              "os.execve('/proc/self/fd/%d' % at, ['python3', '-u', *sys.argv[1:]], {**os.environ, 'PYTHONHOME': sys.prefix})")
    with Program(SYSTEM, "-c", launch, HARD, 60, 30) as running:
        assert "memfd:shop" in os.readlink(f"/proc/{running.pid}/exe")
        records_truly(record, running)


@pytest.mark.parametrize("bundle", ["--onefile", "--onedir"])
def test_a_frozen_program(record, tmp_path, bundle):
    # --onefile: the program unpacks itself and starts itself again; the second one is the Python.
    done = subprocess.run([sys.executable, "-m", "PyInstaller", bundle, "--name", "shop", "--log-level", "ERROR", "--specpath", tmp_path,
                           "--distpath", tmp_path / "dist", "--workpath", tmp_path / "work", "--paths", TARGETS, HARD],
                          capture_output=True, text=True, env={**os.environ, "PYINSTALLER_CONFIG_DIR": str(tmp_path / "cache")})
    assert done.returncode == 0, done.stderr
    program = tmp_path / "dist" / ("shop" if bundle == "--onefile" else "shop/shop")
    with Program(program, 60, 30, env={"TMPDIR": str(tmp_path)}) as running:
        recording = records_truly(record, running)
    assert "libpython" in found_by(recording)


# ---- compiled while it runs ------------------------------------------------------------------------------------

ASK_JIT = "import sys; sys.exit(0 if getattr(sys, '_jit', None) and sys._jit.is_enabled() else 1)"


def with_jit():
    environment = {**os.environ, "PYTHON_JIT": "1"}
    return [p for p in INTERPRETERS if (p.major, p.minor) >= (3, 14) and
            subprocess.run([p.path, "-c", ASK_JIT], env=environment, capture_output=True).returncode == 0]


@pytest.mark.parametrize("compiler", with_jit(), ids=lambda p: p.name)
def test_with_the_jit_switched_on(record, tmp_path, compiler):
    jit = {"PYTHON_JIT": "1"}
    with Program(compiler.path, "-u", HARD, 60, 30, env=jit) as running:
        records_truly(record, running)
    with Program(compiler.path, "-u", LINES, tmp_path / "lines.json", env=jit) as running:
        recording = record(running.pid, 1.5, *RATE)
    spots, right, wrong = lines_of(recording, reported_lines(tmp_path / "lines.json"))
    assert spots > 50
    assert right == spots, wrong[:2]


def test_a_stripped_executable(record, tmp_path):
    program = copied_python(tmp_path / "python3")
    subprocess.run(["strip", "--strip-all", program], check=True)
    with Program(program, "-u", HARD, 60, 30) as running:
        records_truly(record, running)


def test_a_patched_executable(record, tmp_path):
    # patchelf moves .dynsym and the segments' places in the file.
    program = copied_python(tmp_path / "python3")
    subprocess.run(["patchelf", "--set-rpath", "/opt/a-rather-long-folder/that/takes/more/room/than/there/was/lib", program], check=True)
    with Program(program, "-u", HARD, 60, 30) as running:
        records_truly(record, running)


def test_started_through_the_loader(record):
    loader = next(path for path in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1") if os.path.exists(path))
    with Program(loader, os.path.realpath(SYSTEM), "-u", HARD, 60, 30) as running:
        assert "ld-" in os.path.basename(os.path.realpath(f"/proc/{running.pid}/exe"))
        records_truly(record, running)


@pytest.mark.parametrize("fate", ["deleted", "replaced", "overtaken"])
def test_the_executable_is_gone_while_it_runs(record, tmp_path, fate):
    program = copied_python(tmp_path / "python3")
    with Program(program, "-u", HARD, 60, 30) as running:
        if fate == "overtaken":  # what a package manager does: a new file under the old name
            shutil.copy2("/bin/true", tmp_path / "new")
            os.rename(tmp_path / "new", program)
        else:
            os.unlink(program)
            if fate == "replaced":
                shutil.copy2("/bin/true", program)
        records_truly(record, running)


def test_libpython_is_replaced_while_it_runs(record, tmp_path):
    program = embedded(tmp_path / "shop-server", static=False)
    library = tmp_path / os.path.basename(system_libpython())
    shutil.copy2(system_libpython(), library)
    with Program(program, HARD, 60, 30, env={"LD_LIBRARY_PATH": str(tmp_path), "PYTHONUNBUFFERED": "1"}) as running:
        shutil.copy2("/bin/true", tmp_path / "new")
        os.rename(tmp_path / "new", library)
        records_truly(record, running)


# ---- two in one process ----------------------------------------------------------------------------------------

BUILTINS_ONLY = """
import sys
sys.path.insert(0, %r)
def a0(): return a1()
def a1(): return a2()
def a2(): return 1
def b0(): return b1()
def b1(): return b2()
def b2(): return 1
import posix
posix.write(1, b"ready %%d\\n" %% posix.getpid())
while True: a0(); b0()
"""


@pytest.mark.parametrize("up", ["a", "b", "ab"])
def test_two_libpythons_in_one_process(record, tmp_path, up):
    program = compile_program("two_pythons", tmp_path / "two", "-ldl", "-lpthread")
    for name in ("libpython-a.so", "libpython-b.so"):
        shutil.copy2(system_libpython(), tmp_path / name)
    with Program(program, tmp_path / "libpython-a.so", tmp_path / "libpython-b.so", up, BUILTINS_ONLY % str(TARGETS)) as running:
        recording = records_truly(record, running)
        dumped = subprocess.run([PHLOX, "dump", "-p", str(running.pid)], capture_output=True, text=True, timeout=60)
    if len(up) == 1:
        assert f"libpython-{up}.so" in found_by(recording)
    # If both run, one is read, and a message names the other.
    assert dumped.returncode == 0, dumped.stderr
    assert ("a second Python" in dumped.stderr) == (up == "ab"), dumped.stderr


@pytest.mark.parametrize("up", ["a", "b"])
def test_one_libpython_mapped_twice(record, tmp_path, up):
    program = compile_program("two_pythons", tmp_path / "two", "-ldl", "-lpthread")
    library = system_libpython()
    with Program(program, library, library, up, BUILTINS_ONLY % str(TARGETS)) as running:
        records_truly(record, running)


# ---- refused, by name ------------------------------------------------------------------------------------------

def test_pypy_is_refused_by_name(tmp_path):
    with Program(brought("pypy3"), "-S", "-c", "import os, time; os.write(1, b'ready %d\\n' % os.getpid()); time.sleep(60)",
                 env={"LC_ALL": "C"}) as running:
        refused(tmp_path, running, "PyPy", "docs/pythons.md")


def test_micropython_is_refused_by_name(tmp_path):
    with Program(brought("micropython"), "-c", "import time; print('ready 0'); time.sleep(60)") as running:
        running.pid = running.process.pid
        refused(tmp_path, running, "MicroPython", "docs/pythons.md")


def test_graalpy_is_refused_by_name(tmp_path):
    # A stand-in of its name: the real one is half a gigabyte, and no registry that the tests use has it.
    shutil.copy2("/bin/cat", tmp_path / "graalpy")
    (tmp_path / "ready").write_text("ready 0\n")
    os.mkfifo(tmp_path / "for-ever")
    with Program(tmp_path / "graalpy", tmp_path / "ready", tmp_path / "for-ever") as running:
        running.pid = running.process.pid
        refused(tmp_path, running, "GraalPy", "docs/pythons.md")


def test_a_build_with_trace_refs_is_refused_by_name(tmp_path):
    # Before 3.8 --with-pydebug meant Py_TRACE_REFS.
    with Program(brought("debian-2.7-dbg"), "-u", HARD, 60, 30) as running:
        refused(tmp_path, running, "2.7", "Py_TRACE_REFS", "docs/pythons.md")


def elf32():
    """A 32-bit x86 program that prints `ready 0` and loops."""
    text = b"ready 0\n"
    base, head = 0x8048000, 52 + 32
    code = (b"\xb8\x04\0\0\0\xbb\x01\0\0\0\xb9" + struct.pack("<I", base + head + 24) + b"\xba" + struct.pack("<I", len(text)) +
            b"\xcd\x80\xeb\xfe")
    assert len(code) == 24
    body = code + text
    elf = b"\x7fELF\x01\x01\x01" + bytes(9) + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + head, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    segment = struct.pack("<IIIIIIII", 1, 0, base, base, head + len(body), head + len(body), 7, 0x1000)
    return elf + segment + body


def test_a_32_bit_program_is_refused_by_name(tmp_path):
    program = tmp_path / "python3"
    program.write_bytes(elf32())
    program.chmod(0o755)
    try:
        running = Program(program)
    except OSError as error:
        pytest.skip(f"this kernel runs no 32-bit programs: {error}")
    with running:
        running.pid = running.process.pid
        refused(tmp_path, running, "32-bit", str(program), status=STATE)
