"""Programs that map files which change, are endless, or never answer: they neither end nor block phlox."""
import contextlib
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import time

import pytest
from cli_support import PHLOX, PYTHON, phlox, wait_until

MAPS = """
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char** given) {
  int file = open(given[1], O_RDWR);
  long size = lseek(file, 0, SEEK_END);
  %s
  printf("ready\\n");
  fflush(stdout);
  for (;;) { %s }
}
"""
ALL = "PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, file, 0"


@pytest.fixture
def run(tmp_path):
    """Starts a C program that maps a file."""
    running = []

    def start(file, maps, repeats="pause();"):
        source = tmp_path / "target.c"
        source.write_text(MAPS % (maps, repeats))
        subprocess.run(["gcc", "-O1", source, "-o", tmp_path / "target"], check=True)
        target = subprocess.Popen([tmp_path / "target", file], stdout=subprocess.PIPE, text=True)
        running.append(target)
        assert target.stdout.readline() == "ready\n"
        return target.pid

    yield start
    for target in running:
        target.kill()
        target.wait()


# What a process had before it became another program counts as its own: that of pytest is large, this one's is small.
MEASURE = "import os, sys; _, status, used = os.wait4(os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:]), 0); print(os.waitstatus_to_exitcode(status), used.ru_maxrss)"


def measured(*arguments):
    """The exit status, and how much memory it took in KB."""
    done = subprocess.run([sys.executable, "-S", "-c", MEASURE, PHLOX, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return tuple(map(int, done.stdout.splitlines()[-1].split()))


def sparse_elf(path, size):
    """../shared/cases/attack/sparse_elf.py: an ELF file whose .dynsym is a hole."""

    def section(name, kind, offset, length, link=0, each=0):
        return struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, length, link, 0, 8, each)

    with open(path, "wb") as file:
        file.write(struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1" + b"\0" * 9, 3, 62, 1, 0, 64, 4096, 0, 64, 56, 1, 64, 4, 3))
        file.write(struct.pack("<IIQQQQQQ", 1, 7, 0, 0, 0, 8192, 8192, 4096))
        file.seek(4096)
        file.write(section(0, 0, 0, 0) + section(1, 11, 16384, size, 2, 24) + section(9, 3, 8192, 64) + section(17, 3, 4096 + 256, 27))
        file.seek(4096 + 256)
        file.write(b"\0.dynsym\0.dynstr\0.shstrtab\0")
        file.seek(8192)
        file.write(b"\0PYTHONHOME\0Py_Main\0_PyRuntime\0")
        file.truncate(16384 + size)


def test_a_library_that_is_cut_short_while_it_is_read(run, tmp_path):
    library = tmp_path / "libpython3.11.so.1.0"
    shutil.copy(os.path.realpath("/usr/bin/python3"), library)
    pid = run(library, f"mmap(0, size, {ALL});", "ftruncate(file, 4096); usleep(30); ftruncate(file, size); usleep(30);")
    for _ in range(8):
        assert phlox("dump", "-p", pid, timeout=30).returncode > 0


@pytest.mark.parametrize("gigabytes", [8, 0.2])
def test_a_library_whose_symbols_are_gigabytes_of_nothing(run, tmp_path, gigabytes):
    library = tmp_path / "libpython3.11.so.1.0"
    sparse_elf(library, int(gigabytes * 2**30) // 24 * 24)
    pid = run(library, f"mmap(0, 8192, {ALL});")
    status, memory = measured("dump", "-p", pid)
    assert status > 0 and memory < 400_000


# The word makes an image of it that is no program.
@pytest.mark.parametrize("begins_with", ["", "\\177ELF"])
def test_mappings_of_zeros_are_not_copied_for_ever(run, begins_with):
    pid = run("/dev/zero", f"for (int i = 0; i < 40; ++i) {{ char* at = mmap(0, 250 << 20, {ALL}); strcpy(at, \"{begins_with}\"); mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }}")
    begun = time.monotonic()
    status, memory = measured("dump", "-p", pid)
    assert status > 0 and memory < (600_000 if begins_with else 150_000)
    assert time.monotonic() - begun < 60


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs programs of other users")
def test_of_a_file_that_another_user_owns_nothing_is_kept(tmp_path):
    inodes = {}
    for owner in (0, 65534):
        python = tmp_path / f"python{owner}"
        shutil.copy(os.path.realpath("/usr/bin/python3"), python)
        os.chown(python, owner, owner)
        inodes[owner] = f"{python.stat().st_ino:016x}"
        done = phlox("record", "--native", "-o", tmp_path / "a.phlox", "--", python, "-c", "sum(range(9000000))",
                     env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONHOME": "/usr"})
        assert done.returncode == 0, done.stderr
    kept = " ".join(file.name for file in (tmp_path / "cache/phlox/unwind").iterdir())
    assert inodes[0] in kept and inodes[65534] not in kept


SPINS = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
print("ready", flush=True)
while True: library.spin(10**6)
"""


@pytest.fixture
def silent(tmp_path):
    """A Python whose time is spent in a library on a file system that answers until a file is there."""
    source, library, folder, word = tmp_path / "spin.c", tmp_path / "libspin.so", tmp_path / "mount", tmp_path / "silent"
    source.write_text("int spin(long n) { volatile long x = 0; for (long i = 0; i < n; i++) x += i; return x; }\n")
    subprocess.run(["gcc", "-O1", "-g", "-shared", "-fPIC", source, "-o", library], check=True)
    with open(library, "ab") as file:
        file.write(bytes(1 << 20))  # so that it is not read at once
    folder.mkdir()
    server = subprocess.Popen([sys.executable, pathlib.Path(__file__).with_name("silent_folder.py"), folder, library, word],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if server.stdout.readline() != "ready\n":
        server.wait()
        pytest.skip("no FUSE here")
    program = subprocess.Popen([PYTHON, "-c", SPINS, folder / library.name], stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout.readline() == "ready\n"
        word.touch()
        assert server.stdout.readline() == "silent\n"
        yield program.pid
    finally:
        server.kill()
        server.wait()
        program.kill()
        program.wait()
        subprocess.run(["umount", "-l", folder], check=False)


@pytest.mark.skipif(os.geteuid() != 0 or not os.path.exists("/dev/fuse"), reason="only root mounts")
def test_a_file_system_that_never_answers_holds_no_recording_up(silent, tmp_path):
    recording = tmp_path / "a.phlox"
    done = phlox("record", "--native", "-d", "1", "-p", silent, "-o", recording, timeout=60)
    assert "does not answer" in done.stderr and str(recording) in done.stderr, done.stderr


@pytest.mark.skipif(os.geteuid() != 0 or not os.path.exists("/dev/fuse"), reason="only root mounts")
def test_a_file_system_that_never_answers_holds_no_dump_up(silent):
    done = phlox("dump", "--native", "-p", silent, timeout=90)
    assert "does not answer" in done.stderr and done.returncode != 0, done.stderr


def waits_for_a_file_system(pid):
    waits_in = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it may end meanwhile
            waits_in.append((task / "wchan").read_text())
    return any("request_wait" in function for function in waits_in)


@pytest.mark.skipif(os.geteuid() != 0 or not os.path.exists("/dev/fuse"), reason="only root mounts")
def test_a_file_system_that_never_answers_keeps_no_top(silent):
    top = subprocess.Popen([PHLOX, "top", "--native", "-p", str(silent)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: waits_for_a_file_system(top.pid), "it has asked")
        top.send_signal(signal.SIGINT)
        _, said = top.communicate(timeout=90)
    finally:
        top.kill()
        top.wait()
    assert "does not answer" in said, said
