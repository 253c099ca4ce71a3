"""When it goes wrong: a line or two on standard error, the documented exit status, no damage anywhere."""
import contextlib
import ctypes
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest
from cli_support import BUSY, PHLOX, PYTHON, ROOT, count, is_recording, phlox, state_of, still_runs, wait_until

pytestmark = pytest.mark.smoke

NO_PROCESS, NOT_PYTHON, UNSUPPORTED, PERMISSION, GONE, STATE, OUTPUT, INPUT = 111, 112, 113, 114, 115, 116, 117, 118
USAGE, NOT_STARTED = 2, 127
AS_ROOT = os.geteuid() == 0
NOBODY = 65534


def check(done, status, *words):
    """The status, a message of one line, a hint of at most one, nothing on standard output."""
    assert done.returncode == status, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len([line for line in lines if line.startswith("phlox: ") and not line.startswith("phlox: warning: ")]) == 1, done.stderr
    assert len(lines) <= 3
    for word in words:
        assert word in done.stderr
    assert done.stdout == ""


def test_no_such_process(workdir):
    check(phlox("record", "-p", 2**22 + 1), NO_PROCESS, str(2**22 + 1))
    assert os.listdir() == []


def test_a_thread_is_not_a_process(start, workdir):
    threaded = start([PYTHON, "-c", "import threading, time\nt = threading.Thread(target=time.sleep, args=(60,)); t.start()\n"
                                    "print(t.native_id, flush=True); t.join()"])
    tid = int(threaded.stdout.readline())
    check(phlox("record", "-p", tid), NO_PROCESS, "thread of process", f"phlox record -p {threaded.pid}")


def test_not_a_python_process_says_what_it_is(start, workdir):
    sleeper = start(["sleep", "60"])
    wait_until(lambda: "sleep" in os.readlink(f"/proc/{sleeper.pid}/exe"), "exec")
    check(phlox("record", "-p", sleeper.pid), NOT_PYTHON, str(sleeper.pid), "sleep")
    assert os.listdir() == []
    assert still_runs(sleeper)


def test_a_zombie(workdir):
    child = os.fork()
    if child == 0:
        os._exit(0)
    try:
        wait_until(lambda: state_of(child) == "Z", "a zombie")
        check(phlox("record", "-p", child), STATE, "zombie", str(os.getpid()))
    finally:
        os.waitpid(child, 0)


def test_a_kernel_thread(workdir):
    comm = pathlib.Path("/proc/2/comm")
    if not comm.exists() or comm.read_text() != "kthreadd\n":
        pytest.skip("no kernel threads in this PID namespace")
    check(phlox("record", "-p", 2), NOT_PYTHON, "kernel thread", "kthreadd")


def test_a_stopped_process_is_recorded_and_stays_stopped(busy, workdir):
    busy.send_signal(signal.SIGSTOP)
    wait_until(lambda: state_of(busy.pid) == "T", "a stop")
    done = phlox("record", "-p", busy.pid, "-d", "0.4", "-o", "a.phlox")
    assert done.returncode == 0, done.stderr
    assert "stopped" in done.stderr and f"kill -CONT {busy.pid}" in done.stderr
    assert count("a.phlox") > 0
    assert state_of(busy.pid) == "T"


@pytest.fixture
def traced(busy):
    """Seized by us, as a debugger does; not stopped."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    seize, interrupt, detach, wait_all = 0x4206, 0x4207, 17, 0x40000000
    assert libc.ptrace(seize, busy.pid, None, None) == 0, os.strerror(ctypes.get_errno())
    yield busy
    libc.ptrace(interrupt, busy.pid, None, None)
    os.waitpid(busy.pid, wait_all)
    libc.ptrace(detach, busy.pid, None, None)


def test_a_traced_process_is_read_without_a_stop_and_that_is_reported(traced, workdir):
    done = phlox("record", "-p", traced.pid, "-d", "0.4", "-o", "a.phlox")
    assert done.returncode == 0, done.stderr
    assert f"traced by process {os.getpid()}" in done.stderr
    assert count("a.phlox") > 0
    os.unlink("a.phlox")
    check(phlox("record", "--mode", "ptrace", "-p", traced.pid, "-d", "0.4", "-o", "a.phlox"), STATE, "already traced")
    assert os.listdir() == []


@pytest.mark.skipif(not AS_ROOT, reason="needs root to become two users")
def test_a_process_of_another_user(busy, workdir):
    os.chmod(workdir, 0o777)
    public = shutil.copy(PHLOX, "/tmp/phlox-test-other-user")
    os.chmod(public, 0o755)
    try:
        done = subprocess.run([public, "record", "-p", str(busy.pid), "-o", "/tmp/phlox-test-other-user.phlox"], capture_output=True, text=True,
                              user=NOBODY, group=NOBODY, extra_groups=[], cwd="/tmp", timeout=60)
    finally:
        os.unlink(public)
    check(done, PERMISSION, "it runs as user 0 (root), phlox as user 65534", f"sudo phlox record -p {busy.pid}")
    assert not os.path.exists("/tmp/phlox-test-other-user.phlox")
    assert still_runs(busy)


@pytest.mark.skipif(not AS_ROOT, reason="only root can drop CAP_SYS_PTRACE and still be root")
def test_root_without_the_capability(start, workdir):
    other = start(["/usr/bin/python3", "-c", BUSY], user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")
    assert other.stdout.readline() == "ready\n"
    done = subprocess.run(["setpriv", "--bounding-set=-sys_ptrace", PHLOX, "record", "-p", str(other.pid)], capture_output=True, text=True,
                          timeout=60)
    check(done, PERMISSION, "CAP_SYS_PTRACE", "--cap-add SYS_PTRACE")


def test_a_command_that_is_not_there(workdir):
    check(phlox("record", "--", "no-such-command-of-any-kind"), NOT_STARTED, "no-such-command-of-any-kind")
    check(phlox("record", "--", "/etc/passwd"), NOT_STARTED, "/etc/passwd")
    assert os.listdir() == []


def test_a_program_that_is_no_python_and_ends(workdir):
    check(phlox("record", "--", "true"), GONE, "ended before a Python")
    assert os.listdir() == []


def test_a_program_that_is_no_python_is_not_waited_for_beyond_the_duration(workdir):
    done = phlox("record", "-d", "0.5", "--", "sleep", "4")
    assert done.returncode == NOT_PYTHON, done.stderr
    for words in ("is not a Python process", "sleep", "runs on"):
        assert words in done.stderr
    assert os.listdir() == []


@pytest.mark.parametrize("name", ["no/such/folder/a.phlox", "no/such/folder/a.svg", "folder.phlox", "folder.svg"])
def test_output_that_cannot_be_written_is_found_out_before_anything_starts(workdir, name):
    (workdir / "folder.phlox").mkdir()
    (workdir / "folder.svg").mkdir()
    check(phlox("record", "-o", name, "--", "touch", "started"), OUTPUT, name)
    assert not (workdir / "started").exists()


def test_an_extension_that_says_nothing(workdir):
    check(phlox("record", "-o", "app.py", "--", "touch", "started"), USAGE, "app.py", ".phlox")
    assert os.listdir() == []


def test_the_disk_becomes_full(busy, workdir):
    folder = workdir / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(folder)], capture_output=True).returncode != 0:
        pytest.skip("may not mount a small file system")
    try:
        done = phlox("record", "-p", busy.pid, "-r", "5000", "--max-overhead", "off", "-d", "30", "-o", folder / "a.phlox")
        assert done.returncode == OUTPUT, done.stderr
        assert "full" in done.stderr
        assert count(folder / "a.phlox") > 0
        assert still_runs(busy)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_the_process_is_killed_in_the_middle(busy, start, workdir):
    recorder = start([PHLOX, "record", "-p", busy.pid, "-o", "a.phlox"], stderr=subprocess.PIPE)
    wait_until(lambda: is_recording("a.phlox"), "samples")
    busy.kill()
    busy.wait()
    _, err = recorder.communicate(timeout=30)
    assert recorder.returncode == 0, err
    assert f"process {busy.pid} ended" in err and "complete" in err
    assert count("a.phlox") > 0


def test_the_recorder_is_killed_in_the_middle(busy, start, workdir):
    recorder = start([PHLOX, "record", "-p", busy.pid, "-o", "a.phlox"], stderr=subprocess.PIPE)
    wait_until(lambda: is_recording("a.phlox"), "samples")
    began = time.monotonic_ns()
    wait_until(lambda: time.monotonic_ns() - began > 1_500_000_000, "a second and a half of recording")
    killed = time.monotonic_ns()  # the clock of the recording
    recorder.kill()
    recorder.wait()
    assert still_runs(busy)
    with contextlib.closing(sqlite3.connect("a.phlox")) as db:
        (epoch,) = db.execute("select value from meta where key = 'sample_epoch_ns'").fetchone()
        (last,) = db.execute("select max(start_us * 1000 + wall_ns) from sample").fetchone()
    assert killed - (int(epoch) + last) < 500_000_000
    done = phlox("export", "a.phlox", "-f", "collapsed")
    assert done.returncode == 0, done.stderr
    assert "work" in done.stdout


def test_a_launched_program_outlives_a_killed_recorder(start, workdir):
    recorder = start([PHLOX, "record", "-o", "a.phlox", "--", PYTHON, "-c", "import os\nprint(os.getpid(), flush=True)\n" + BUSY],
                     stderr=subprocess.PIPE)
    pid = int(recorder.stdout.readline())
    try:
        wait_until(lambda: is_recording("a.phlox"), "samples")
        recorder.kill()
        recorder.wait()
        assert state_of(pid) in "RSD"
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_second_ctrl_c_ends_at_once(start, workdir):
    # A program that ignores Ctrl-C: phlox waits for it after the first one.
    app = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nimport os\nprint(os.getpid(), flush=True)\n" + BUSY
    recorder = start([PHLOX, "record", "-o", "a.phlox", "--", PYTHON, "-c", app], stderr=subprocess.PIPE)
    pid = int(recorder.stdout.readline())
    try:
        wait_until(lambda: is_recording("a.phlox"), "samples")
        recorder.send_signal(signal.SIGINT)
        line = ""
        while "waiting for it" not in line:
            line = recorder.stderr.readline()
            assert line, "it ended instead of waiting"
        time.sleep(0.3)  # sooner, it would belong to the first one
        recorder.send_signal(signal.SIGINT)
        assert recorder.wait(timeout=30) == 130
        assert state_of(pid) in "RSD"
        assert count("a.phlox") > 0
    finally:
        os.kill(pid, signal.SIGKILL)


WORDS = """

record -p
record
record -p 1 -- true
record -p x
record -p 0
record --
record python3 app.py
record -p 1 -r 0
record -p 1 -r nan
record -p 1 -d -1
record -p 1 --max-overhead 0
record -p 1 --mode magic
record -p 1 --hands-off --mode ptrace
record -p 1 --no-such-option
record -p 1 --by colour
record -p 1 -o a.svg --thread (
recrod -p 1
export
export a.phlox -f gif
export a.phlox -o a.gif
export a.phlox --state asleep
help me
completions cmd
""".splitlines()[1:]


@pytest.mark.parametrize("words", WORDS)
def test_words_that_are_off(workdir, words):
    check(phlox(*words.split()), USAGE)
    assert os.listdir() == []


def test_a_file_that_is_no_recording(workdir):
    (workdir / "a.phlox").write_text("nothing of the kind")
    check(phlox("export", "a.phlox"), INPUT, "a.phlox")
    check(phlox("export", "b.phlox"), INPUT, "b.phlox")


def test_an_export_into_a_closed_pipe_is_an_error_and_not_a_death(busy, workdir):
    assert phlox("record", "-p", busy.pid, "-d", "0.3", "-o", "a.phlox").returncode == 0
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run([PHLOX, "export", "a.phlox"], stdout=write_end, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (OUTPUT, "")


@pytest.mark.parametrize("words", [["dump", "-p", "PID"], ["dump", "--json", "-p", "PID"], ["report", "a.phlox"], ["report", "--json", "a.phlox"],
                                   ["diff", "a.phlox", "a.phlox"], ["export", "a.phlox", "-f", "svg"], ["help"], ["man"], ["--version"],
                                   ["completions", "bash"], ["pyflame", "-d", "-p", "PID"]], ids=" ".join)
def test_a_reader_that_goes_away_is_no_error(busy, workdir, words):
    assert phlox("record", "-p", busy.pid, "-d", "0.3", "-o", "a.phlox").returncode == 0
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run([PHLOX, *(str(busy.pid) if word == "PID" else word for word in words)], stdout=write_end, stderr=subprocess.PIPE,
                          text=True, timeout=60)
    os.close(write_end)
    assert done.stderr == ""
    assert done.returncode == (-signal.SIGPIPE if words[0] == "pyflame" else OUTPUT)


def test_a_recording_for_a_reader_that_goes_away_is_kept(busy, workdir, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(workdir))
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run([PHLOX, "record", "-p", str(busy.pid), "-d", "0.3", "-o", "-"], stdout=write_end, stderr=subprocess.PIPE, text=True,
                          timeout=60)
    os.close(write_end)
    assert done.returncode == OUTPUT
    assert "errno" not in done.stderr and "Broken pipe" not in done.stderr
    kept = re.search(r"what was recorded is in (\S+)", done.stderr).group(1)
    assert count(kept) > 0


def test_the_documented_statuses_are_those_of_the_program():
    source = (ROOT / "src/phlox/cli/exit_status.h").read_text()
    page = (ROOT / "docs/exit-status.md").read_text()
    numbers = set(re.findall(r"return (\d+);", source)) | set(re.findall(r"= (\d+);", source))
    assert numbers == set(re.findall(r"^\| (\d+) \|", page, re.M))


def test_a_python_not_covered_says_which(start, workdir):
    # What makes a process a CPython to a reader: the library's symbols, and a version in them.
    (workdir / "future.c").write_text("""
        #include <stdio.h>
        #include <unistd.h>
        const unsigned long Py_Version = 0x036300f0;
        char _PyRuntime[65536] = {1};
        int main(void) { puts("ready"); fflush(stdout); pause(); return 0; }
    """)
    subprocess.run(["cc", "-rdynamic", "-o", "python3.99", "future.c"], check=True)
    future = start([workdir / "python3.99"])
    assert future.stdout.readline() == "ready\n"
    check(phlox("record", "-p", future.pid, "-o", "a.phlox"), UNSUPPORTED, "3.99")
    assert not os.path.exists("a.phlox")
    assert still_runs(future)
