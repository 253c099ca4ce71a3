"""phlox record: what goes in, what comes out, and what it leaves alone."""
import json
import os
import pathlib
import re
import signal
import stat
import subprocess

import pytest
from cli_support import BUSY, PHLOX, PYTHON, count, is_recording, phlox, still_runs, wait_until

pytestmark = [pytest.mark.smoke, pytest.mark.live]


def script(workdir, text, name="app.py"):
    path = workdir / name
    path.write_text(text)
    return path


def test_attach_for_a_time_leaves_a_recording_and_the_program(busy, workdir):
    done = phlox("record", "-p", busy.pid, "-d", "0.5", "-o", "a.phlox")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert count("a.phlox") > 0
    assert "wrote a.phlox" in done.stderr
    assert re.search(r"\d+ samples", done.stderr)
    assert os.listdir() == ["a.phlox"]
    assert still_runs(busy)


def test_the_default_name_has_program_process_and_time(workdir):
    app = script(workdir, BUSY)
    done = phlox("record", "--", PYTHON, app, "0.4")
    assert done.returncode == 0, done.stderr
    (name,) = [n for n in os.listdir() if n.endswith(".phlox")]
    assert re.fullmatch(r"app-\d+-\d{8}-\d{6}\.phlox", name)


def test_a_recording_is_private(busy, workdir):
    assert phlox("record", "-p", busy.pid, "-d", "0.2", "-o", "a.phlox").returncode == 0
    assert stat.S_IMODE(os.stat("a.phlox").st_mode) == 0o600


@pytest.mark.parametrize("name, pattern", [("a.svg", r"(?s)^<(\?xml|svg).*hot"), ("a.txt", r"hot.* \d+\n"), ("a.collapsed", r"hot.* \d+\n")])
def test_the_extension_chooses_the_output(busy, workdir, name, pattern):
    done = phlox("record", "-p", busy.pid, "-d", "0.5", "-o", name)
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir()) == [name, name + ".phlox"]
    assert re.search(pattern, open(name).read())


def test_dash_is_collapsed_on_standard_output(busy, workdir):
    done = phlox("record", "-p", busy.pid, "-d", "0.5", "-o", "-")
    assert done.returncode == 0, done.stderr
    assert re.search(r"work .*hot.* \d+\n", done.stdout)
    assert os.listdir() == []


def test_the_choices_of_the_view_hold_for_the_output(busy, workdir):
    done = phlox("record", "-p", busy.pid, "-d", "0.5", "-o", "-", "--by", "line,thread")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Thread .*\(<string>:\d+\)", done.stdout)


@pytest.mark.parametrize("code", [0, 1, 42])
def test_the_exit_status_of_the_program_is_passed_through(workdir, code):
    app = script(workdir, f"import time, sys\ntime.sleep(0.3)\nsys.exit({code})")
    done = phlox("record", "-o", "a.phlox", "--", PYTHON, app)
    assert done.returncode == code, done.stderr
    assert count("a.phlox") > 0


def test_os_exit_is_an_end_like_any_other(workdir):
    app = script(workdir, "import os, time\ntime.sleep(0.3)\nos._exit(3)")
    done = phlox("record", "-o", "a.phlox", "--", PYTHON, app)
    assert done.returncode == 3, done.stderr
    assert "exit 3" in done.stderr and "complete" in done.stderr


def test_the_signal_that_ended_the_program_is_passed_through(workdir):
    app = script(workdir, "import os, signal, time\ntime.sleep(0.3)\nos.kill(os.getpid(), signal.SIGKILL)")
    done = phlox("record", "-o", "a.phlox", "--", PYTHON, app)
    assert done.returncode == 128 + 9, done.stderr
    assert "SIGKILL" in done.stderr
    assert count("a.phlox") > 0


def test_the_program_gets_its_arguments_and_streams_as_they_are(workdir):
    app = script(workdir, "import sys, time\ntime.sleep(0.2)\nprint(sys.argv[1:], sys.stdin.read())")
    done = phlox("record", "-o", "a.phlox", "--", PYTHON, app, "-p", "1", "--", "a b", input="in")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['-p', '1', '--', 'a b'] in\n"


SAYS_SIGNALS = """
import signal, sys, time
def say(number, frame):
    print(signal.Signals(number).name, flush=True)
    sys.exit(5)
for name in sys.argv[1:]:
    signal.signal(getattr(signal, name), say)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGINT"])
def test_signals_are_forwarded(start, workdir, name):
    app = script(workdir, SAYS_SIGNALS)
    recorder = start([PHLOX, "record", "-o", "a.phlox", "--", PYTHON, app, name], stderr=subprocess.PIPE)
    assert recorder.stdout.readline() == "ready\n"
    wait_until(lambda: is_recording("a.phlox"), "samples")
    recorder.send_signal(getattr(signal, name))
    out, err = recorder.communicate(timeout=30)
    assert out == name + "\n", err
    assert recorder.returncode == 5, err
    assert count("a.phlox") > 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_ends_a_recording_properly(busy, start, workdir, number):
    recorder = start([PHLOX, "record", "-p", busy.pid, "-o", "a.phlox"], stderr=subprocess.PIPE)
    wait_until(lambda: is_recording("a.phlox"), "samples")
    recorder.send_signal(number)
    _, err = recorder.communicate(timeout=30)
    assert recorder.returncode == 0, err
    assert "wrote a.phlox" in err
    assert os.listdir() == ["a.phlox"]
    assert still_runs(busy)


def test_duration_ends_the_recording_and_not_the_program(workdir):
    app = script(workdir, BUSY + "\nprint('over')")
    done = phlox("record", "-d", "0.3", "-o", "a.phlox", "--", PYTHON, app, "1.5")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ready\nover\n"
    assert "runs on" in done.stderr


def test_execve_of_another_python_goes_on(workdir):
    app = script(workdir, "import os, sys, time\ntime.sleep(0.3)\n"
                          "os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(1)'])")
    done = phlox("record", "-o", "a.phlox", "--", PYTHON, app)
    assert done.returncode == 0, done.stderr
    assert count("a.phlox", "process") == 2


def test_execve_of_what_is_no_python_ends_with_the_duration(start, workdir):
    # The recording has begun when its file is there.
    app = script(workdir, "import os, sys, time\nprint('ready', flush=True)\nwhile not os.path.exists(sys.argv[1]):\n    time.sleep(0.05)\n"
                          "time.sleep(0.4)\nos.execvp('sleep', ['sleep', '50'])")
    process = start([PYTHON, app, workdir / "a.phlox"])
    assert process.stdout.readline() == "ready\n"
    done = phlox("record", "-p", process.pid, "-d", "2.5", "-o", "a.phlox")
    assert done.returncode == 0, done.stderr
    assert "became another program" in done.stderr and "sleep" in done.stderr
    assert process.poll() is None
    assert count("a.phlox", "process") == 1


def test_quiet_prints_only_errors(busy, workdir):
    done = phlox("record", "-q", "-p", busy.pid, "-d", "0.2", "-o", "a.phlox")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert phlox("record", "-q", "-p", 2**22 + 1).stderr != ""


def test_verbose_says_which_python_was_found_and_how(busy, workdir):
    done = phlox("record", "-v", "-p", busy.pid, "-d", "0.2", "-o", "a.phlox")
    assert re.search(r"CPython 3\.\d+.*found by", done.stderr)
    assert re.search(r"found by \S.* in /.*: the row of 3\.\d+ .*interpreters from 0x[0-9a-f]+", done.stderr)


@pytest.mark.parametrize("command", [["dump", "-p"], ["record", "-d", "0.2", "-o", "a.phlox", "-p"]])
def test_verbose_says_what_was_tried_in_vain(start, workdir, command):
    # A file that speaks of Python, and in which none is.
    pathlib.Path("python3.12-not").write_bytes(pathlib.Path("/bin/cat").read_bytes() + b"PYTHONHOME")
    os.chmod("python3.12-not", 0o755)
    process = start([os.path.abspath("python3.12-not"), "-"], stdin=subprocess.PIPE)
    wait_until(lambda: "python3.12-not" in os.readlink(f"/proc/{process.pid}/exe"), "exec")
    wait_until(lambda: "libc.so" in pathlib.Path(f"/proc/{process.pid}/maps").read_text(), "libc")
    done = phlox("-v", *command, process.pid)
    assert done.returncode != 0
    for strategy in ("symbol", "section .PyRuntime", "debug-offsets cookie", "scan of writable memory"):
        assert re.search(rf"tried {re.escape(strategy)} in \S*python3\.12-not: \S", done.stderr), done.stderr
    quiet = phlox(*command, process.pid)
    assert "phlox: tried" not in quiet.stderr


def test_no_colours_and_no_progress_line_without_a_terminal(busy, workdir):
    done = phlox("record", "-p", busy.pid, "-d", "0.3", "-o", "a.phlox")
    assert "\x1b" not in done.stderr and "\r" not in done.stderr


def run_on_terminal(arguments, columns=0, **environment):
    import fcntl
    import pty
    import struct
    import termios

    master, slave = pty.openpty()
    if columns:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    process = subprocess.Popen([PHLOX, *map(str, arguments)], stderr=slave, env={**os.environ, "TERM": "xterm", **environment})
    os.close(slave)
    seen = b""
    while True:
        try:
            block = os.read(master, 4096)
        except OSError:  # the last writer is gone
            break
        seen += block
    os.close(master)
    return process.wait(), seen.decode()


def test_a_progress_line_on_a_terminal(busy, workdir):
    status, seen = run_on_terminal(["record", "-p", busy.pid, "-r", "200", "-d", "0.6", "-o", "a.phlox"])
    assert status == 0
    assert re.search(r"\r\x1b\[Krecording 0\.\d s, \d+ samples, \d+ Hz of 200, \d+ rejected", seen)


def test_no_color_is_heeded():
    _, coloured = run_on_terminal(["record", "-p", 2**22 + 1], NO_COLOR="")
    _, plain = run_on_terminal(["record", "-p", 2**22 + 1], NO_COLOR="1")
    assert "\x1b[1;31m" in coloured
    assert "\x1b" not in plain


@pytest.mark.skipif(os.geteuid() != 0, reason="sudo's variables mean something to root only")
def test_under_sudo_the_program_and_the_file_are_the_calling_users(workdir):
    app = "import os, time\ntime.sleep(0.3)\nprint(os.getuid(), os.getgid(), os.environ['HOME'])"
    done = phlox("record", "-o", "a.phlox", "--", "/usr/bin/python3", "-c", app, env={**os.environ, "SUDO_UID": "1", "SUDO_GID": "1"})
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1 1 /usr/sbin\n"
    there = os.stat("a.phlox")
    assert (there.st_uid, there.st_gid, stat.S_IMODE(there.st_mode)) == (1, 1, 0o600)


def on_a_terminal_of_its_own(arguments):
    """Starts phlox as the foreground of a new terminal: what is typed there goes to it and to what it launched."""
    import fcntl
    import pty
    import termios

    master, slave = pty.openpty()

    def become_foreground():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen([PHLOX, *map(str, arguments)], stdin=slave, stdout=slave, stderr=slave, preexec_fn=become_foreground,
                               env={**os.environ, "TERM": "xterm"})
    os.close(slave)
    return process, master


def read_until(master, text, seen=""):
    while text not in seen:
        try:
            seen += os.read(master, 4096).decode()
        except OSError:
            raise AssertionError(f"the terminal closed before {text!r}: {seen}") from None
    return seen


COUNTS_INTERRUPTS = """
import signal, sys, time
interrupts = 0
def count(number, frame):
    global interrupts
    interrupts += 1
signal.signal(signal.SIGINT, count)
print("ready", flush=True)
while not interrupts: time.sleep(0.02)
time.sleep(0.5)
print("interrupts", interrupts, flush=True)
sys.exit(7)
"""


def test_ctrl_c_typed_at_the_terminal_reaches_the_program_once(workdir):
    recorder, master = on_a_terminal_of_its_own(["record", "-o", "a.phlox", "--", PYTHON, script(workdir, COUNTS_INTERRUPTS)])
    try:
        read_until(master, "ready")
        wait_until(lambda: is_recording("a.phlox"), "samples")
        os.write(master, b"\x03")
        seen = read_until(master, "interrupts ")
        assert recorder.wait(timeout=30) == 7
        seen = read_until(master, "\n", seen[seen.index("interrupts "):])
        assert seen.startswith("interrupts 1\r\n")
        assert count("a.phlox") > 0
    finally:
        recorder.kill()
        os.close(master)


def test_the_program_can_read_from_the_terminal(workdir):
    app = "print('ready', flush=True)\nprint('heard', input().upper(), flush=True)"
    recorder, master = on_a_terminal_of_its_own(["record", "-q", "-o", "a.phlox", "--", PYTHON, "-c", app])
    try:
        read_until(master, "ready")
        wait_until(lambda: is_recording("a.phlox"), "samples")
        os.write(master, b"typed\n")
        read_until(master, "heard TYPED")
        assert recorder.wait(timeout=30) == 0
    finally:
        recorder.kill()
        os.close(master)


def test_a_caller_learns_that_recording_has_begun(busy, workdir):
    ready, to_be_ready = os.pipe()
    recorder = subprocess.Popen([PHLOX, "record", "--ready-fd", str(to_be_ready), "-p", str(busy.pid), "-o", 'a "b".phlox'], pass_fds=[to_be_ready], stderr=subprocess.PIPE)
    os.close(to_be_ready)
    with open(ready, encoding="ascii") as line:  # to the end of the pipe: phlox has closed it, and records
        assert json.loads(line.read()) == {"recording": 'a "b".phlox'}
    assert recorder.poll() is None
    wait_until(lambda: is_recording('a "b".phlox'), "the first samples")
    recorder.send_signal(signal.SIGINT)
    recorder.communicate()
    assert recorder.returncode == 0


def test_a_program_that_phlox_starts_does_not_keep_the_callers_pipe_open(workdir):
    ready, to_be_ready = os.pipe()
    app = script(workdir, "import os, sys\ntry: os.fstat(int(sys.argv[1]))\nexcept OSError: print('closed', flush=True)\n" + BUSY.replace("sys.argv[1]", "'0.3'"))
    done = subprocess.run([PHLOX, "record", "--ready-fd", str(to_be_ready), "-o", "a.phlox", "--", PYTHON, app, str(to_be_ready)], pass_fds=[to_be_ready], capture_output=True, text=True)
    os.close(to_be_ready)
    with open(ready, encoding="ascii") as line:
        assert (line.read(), done.stdout.splitlines()[:1]) == ('{"recording":"a.phlox"}\n', ["closed"]), done.stderr


def test_a_caller_gets_nothing_of_a_recording_that_cannot_begin(workdir):
    ready, to_be_ready = os.pipe()
    done = subprocess.run([PHLOX, "record", "--ready-fd", str(to_be_ready), "-p", "1073741823"], pass_fds=[to_be_ready], capture_output=True, text=True)
    os.close(to_be_ready)
    with open(ready, encoding="ascii") as line:
        assert line.read() == "" and done.returncode != 0


@pytest.mark.parametrize("descriptor", ["three", "-1", "2", "1000"])
def test_only_an_open_descriptor_can_be_told(descriptor, workdir):
    done = phlox("record", "--ready-fd", descriptor, "-p", os.getpid())
    assert done.returncode == 2 and f"--ready-fd: '{descriptor}'" in done.stderr
    assert os.listdir() == []
