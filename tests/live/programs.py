"""Programs with a Python inside that are not `python3 app.py`: compiled, copied, patched, or fetched by tools/get-pythons.sh."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sysconfig

import pytest

from live_support import TARGETS

SOURCES = pathlib.Path(__file__).parent / "programs"
SYSTEM = "/usr/bin/python3"
LIST = os.environ.get("PHLOX_PYTHONS", "")
HARD = TARGETS / "hard.py"


class Program:
    """A running command that has printed `ready PID`; that process need not be the one that was started."""

    def __init__(self, *command, env=None, cwd=None, answer=True):
        self.process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True, cwd=cwd,
                                        env={**os.environ, **(env or {})})
        self.pid = self.process.pid
        if answer:
            for line in self.process.stdout:
                said = re.match(r"ready (\d+)", line)
                if said:
                    self.pid = int(said.group(1))
                    return
            self.process.wait()
            raise AssertionError(f"{command} ended with {self.process.returncode} and was never ready")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        if self.pid not in (0, self.process.pid):  # a worker, whose master is gone
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self.process.stdout.close()


def system_config(*options):
    done = subprocess.run(["/usr/bin/python3-config", *options], capture_output=True, text=True, check=True)
    return done.stdout.split()


def system_facts(*names):
    code = f"import sysconfig; print(*[sysconfig.get_config_var(n) or '' for n in {names!r}], sep='\\n')"
    return subprocess.run([SYSTEM, "-c", code], capture_output=True, text=True, check=True).stdout.split("\n")[:-1]


def system_libpython():
    directory, name = system_facts("LIBDIR", "INSTSONAME")
    for folder in (directory, sysconfig.get_config_var("LIBDIR"), "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"):
        if folder and os.path.exists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    raise AssertionError(f"no {name}")


def compile_program(name, to, *options):
    subprocess.run(["gcc", "-O1", "-o", str(to), str(SOURCES / f"{name}.c"), *options], check=True)
    return to


def embedded(to, static, *options):
    if not static:
        return compile_program("embedded", to, *system_config("--includes"), *system_config("--embed", "--ldflags"), *options)
    folder, library, libraries = system_facts("LIBPL", "LIBRARY", "MODLIBS")
    archive = os.path.join(folder, library)
    libraries = libraries.split()
    there = [name for name in libraries if not name.endswith(".a") or os.path.exists(name)]
    # Ubuntu 24.04's archive calls hash functions of another one, which is not in the package; nothing here calls them.
    missing = ["-Wl,--unresolved-symbols=ignore-all"] if there != libraries else []
    # Debian's archive holds pyexpat and zlib as builtin modules, and is not made for PIE.
    return compile_program("embedded", to, *system_config("--includes"), "-no-pie", archive, *there, "-lexpat", "-lz", "-lm", "-ldl", *missing, *options)


def copied_python(to):
    real = os.path.realpath(SYSTEM)
    shutil.copy2(real, to)
    return to


def brought(name):
    """A program that tools/get-pythons.sh keeps next to the interpreters; if it is missing, the skip names it."""
    path = pathlib.Path(LIST).parent / "odd" / name
    if not os.access(path, os.X_OK):
        pytest.skip(f"{name} could not be had on this machine (tools/get-pythons.sh names it)")
    return path
