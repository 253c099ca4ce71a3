"""phlox top on a terminal, read as a person reads it: what the screen shows, and what a key changes."""
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest
from cli_support import LIMIT, PHLOX, PYTHON, READS, count, is_recording, looks_in_the_kernel, phlox, still_runs, wait_until
from host_facts import kernel_tells_names

# Of the tests' environment: `make check` collects this file with the system's Python, and takes none of it.
pyte = pytest.importorskip("pyte")
pytestmark = pytest.mark.live

WAITS_FOR_THE_GIL = """
import threading, time
def crunch():
    return sum(i * i for i in range(200))
def run():
    while True: crunch()
def rest():
    while True: time.sleep(0.5)
threading.Thread(target=run, name="cruncher", daemon=True).start()
threading.Thread(target=rest, name="rester", daemon=True).start()
print("ready", flush=True)
run()
"""


SPINS_THEN_RESTS = """
import sys, threading, time
go = True
def spin():
    while go: sum(range(99))
    time.sleep(3600)
threading.Thread(target=spin, name="spinner", daemon=True).start()
print("ready")
sys.stdin.readline()
go = False
time.sleep(3600)
"""


class Scrolling(pyte.Screen):
    """With SU and SD, which pyte does not know and ncurses sends to an xterm."""

    def scroll_up(self, count=1):
        self.scroll(self.index, count, bottom=True)

    def scroll_down(self, count=1):
        self.scroll(self.reverse_index, count, bottom=False)

    def scroll(self, by_one, count, bottom):
        top, last = self.margins or (0, self.lines - 1)
        before, self.cursor.y = self.cursor.y, last if bottom else top
        for _ in range(count or 1):
            by_one()
        self.cursor.y = before


class Stream(pyte.ByteStream):
    csi = {**pyte.ByteStream.csi, "S": "scroll_up", "T": "scroll_down"}


class Screen:
    """A terminal of its own with phlox top on it."""

    def __init__(self, *arguments, program=(PHLOX, "top"), columns=80, rows=24, **environment):
        self.master, self.slave = pty.openpty()
        self.screen = Scrolling(columns, rows)
        self.stream = Stream(self.screen)
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.slave)
        self.raw = b""

        def become_foreground():
            os.setsid()
            # What a shell starts in the background finds them ignored, and phlox lets them be.
            for one in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTSTP):
                signal.signal(one, signal.SIG_DFL)
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen([*program, *map(str, arguments)], stdin=self.slave, stdout=self.slave, stderr=self.slave, preexec_fn=become_foreground,
                                        env={**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", **environment})

    def resize(self, columns, rows):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
        self.screen.resize(rows, columns)

    def read(self, seconds=0.1):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and select.select([self.master], [], [], left)[0]:
            block = os.read(self.master, 65536)
            self.raw += block
            self.stream.feed(block)

    @property
    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self):
        return "\n".join(self.lines)

    def until(self, condition, what):
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            self.read()
            if condition(self.text):
                return self.text
        pytest.fail(f"waited for {what}:\n{self.text}")

    def press(self, keys):
        os.write(self.master, keys.encode())

    def ends(self):
        end = time.monotonic() + LIMIT
        while self.process.poll() is None and time.monotonic() < end:
            self.read()
        self.read()
        return self.process.wait(timeout=1)

    def is_restored(self):
        """The alternate screen was left, the cursor is there, and keys are lines again."""
        return b"\x1b[?1049l" in self.raw and not self.screen.cursor.hidden and termios.tcgetattr(self.slave)[:4] == self.before[:4]

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=5)
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def top():
    with contextlib.ExitStack() as stack:
        def open_(*arguments, **options):
            screen = Screen(*arguments, **options)
            stack.callback(screen.close)
            return screen
        yield open_


@pytest.fixture
def app(start):
    process = start([PYTHON, "-c", WAITS_FOR_THE_GIL])
    assert process.stdout.readline() == "ready\n"
    return process


def test_its_pages_say_what_the_program_does(app, top, workdir):
    screen = top("-p", app.pid)
    text = screen.until(lambda t: "crunch" in t, "functions")
    assert f"pid {app.pid}: " in screen.lines[0] and "GIL held" in screen.lines[1]
    assert "SELF  TOTAL   SELF  TOTAL  FUNCTION" in screen.lines[3]
    screen.press("2")
    screen.until(lambda t: "LINE OF" in t and "<string>:4" in t, "lines")
    screen.press("3")
    text = screen.until(lambda t: "STATES" in t and "MainThread" in t and "cruncher" in t and "rester" in t, "threads")
    bars = {line.split("]")[1].split()[0]: line.split("[")[1].split("]")[0] for line in text.splitlines() if "]" in line}
    assert "." * 7 in bars["rester"], text
    assert set(bars["MainThread"]) & set("#+g") and bars["MainThread"].count(".") < 7, text
    screen.press("4")
    screen.until(lambda t: "COMMAND" in t and str(app.pid) in "\n".join(t.splitlines()[3:]), "processes")
    screen.press("?")
    screen.until(lambda t: "freeze" in t and "quit" in t, "help")
    screen.press("\x1b")
    screen.until(lambda t: "COMMAND" in t, "the page again")
    screen.press("q")
    assert screen.ends() == 0, screen.text
    assert screen.is_restored() and still_runs(app)


def test_a_filter_a_thread_a_stack_and_a_frozen_screen(app, top, workdir):
    screen = top("-p", app.pid)
    screen.until(lambda t: "crunch" in t, "functions")
    screen.press("s/crunch$\r")
    text = screen.until(lambda t: "/crunch$/" in t and "run " not in "\n".join(t.splitlines()[4:]), "what matches")
    screen.press("\r")
    text = screen.until(lambda t: "innermost first" in t and "run" in t, "a stack")
    assert text.index("crunch") < text.index("  run "), text
    screen.press("\x1b\x7f3")
    screen.until(lambda t: "rester" in t, "threads")
    screen.press("/rester\r")
    screen.until(lambda t: "cruncher" not in "\n".join(t.splitlines()[4:]), "one thread")
    screen.press("\r")
    screen.until(lambda t: "thread rester" in t, "the thread alone")
    screen.press(" ")
    screen.until(lambda t: "frozen" in t.splitlines()[0], "a frozen screen")
    before = screen.lines[4:-1]
    screen.read(2.5)
    assert screen.lines[4:-1] == before
    screen.press("/(\r")
    screen.until(lambda t: "not a regular expression: (" in t, "a complaint")


def test_what_is_frozen_is_picked_from(top, start, workdir):
    program = start([PYTHON, "-u", "-c", SPINS_THEN_RESTS], stdin=subprocess.PIPE)
    assert program.stdout.readline() == "ready\n"
    screen = top("-p", program.pid, "--window", "2")
    screen.until(lambda t: "spin" in t, "functions")
    screen.press(" ")
    screen.until(lambda t: "frozen" in t.splitlines()[0], "a frozen screen")
    program.stdin.write("rest\n")
    program.stdin.flush()
    screen.read(3)  # longer than the window: of the last seconds nothing would be left
    screen.press("3")
    screen.until(lambda t: "spinner" in t, "threads")
    screen.press("/spinner\r\r")
    text = screen.until(lambda t: "thread spinner" in t and "FUNCTION" in t, "the thread alone")
    assert re.search(r"^ *\d+\.\d +\d+\.\d +\d+\.\d +\d+\.\d  spin\b", text, re.M), text
    screen.press("\x1b3")
    screen.until(lambda t: "MainThread" in t and "spinner" in t, "all of them again")


def test_what_was_seen_becomes_a_recording(app, top, workdir):
    screen = top("-p", app.pid)
    screen.until(lambda t: "crunch" in t, "functions")
    screen.read(2)  # until it was committed
    screen.press("w")
    screen.until(lambda t: "wrote " in t, "the name")
    [name] = [name for name in os.listdir(".") if name.endswith(".phlox")]
    assert name in screen.text and os.listdir(".") == [name]
    assert os.stat(name).st_mode & 0o777 == 0o600
    report = phlox("report", name)
    assert report.returncode == 0 and "crunch" in report.stdout and "killed" not in report.stdout
    screen.press("q")
    assert screen.ends() == 0


@pytest.mark.parametrize("size", [(40, 10), (80, 24), (200, 60), (12, 3), (1, 1)])
def test_any_size_while_it_runs(app, top, workdir, size):
    screen = top("-p", app.pid)
    screen.until(lambda t: "crunch" in t, "functions")
    screen.resize(*size)
    screen.process.send_signal(signal.SIGWINCH)
    screen.read(1.5)
    assert screen.process.poll() is None
    if size[1] > 9:
        screen.until(lambda t: "crunch" in t, "functions again")
    screen.press("q")
    assert screen.ends() == 0
    assert screen.is_restored()


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGSEGV, signal.SIGABRT, "\x03"])
def test_the_terminal_comes_back_on_every_way_out(app, top, workdir, way):
    screen = top("-p", app.pid)
    screen.until(lambda t: "crunch" in t, "functions")
    screen.press(way) if isinstance(way, str) else screen.process.send_signal(way)
    screen.ends()
    assert screen.is_restored(), screen.raw[-300:]
    assert still_runs(app)


def test_ctrl_z_gives_the_terminal_to_the_shell_and_fg_takes_it_back(app, top, workdir):
    shell = top(program=["bash", "--norc", "--noprofile", "--noediting", "-i"], PS1="prompt> ", columns=100)
    shell.until(lambda t: "prompt>" in t, "a prompt")
    shell.press(f"{PHLOX} top -p {app.pid}\r")
    shell.until(lambda t: "crunch" in t, "functions")
    shell.raw = b""
    shell.press("\x1a")
    shell.until(lambda t: "Stopped" in t, "the shell")
    assert shell.is_restored()
    shell.resize(90, 30)
    shell.raw = b""
    shell.press("fg\r")
    shell.until(lambda t: "crunch" in t and "q quit" in shell.lines[29], "the screen, of its new size")
    assert b"\x1b[?1049h" in shell.raw and shell.screen.cursor.hidden
    shell.press("3")
    shell.until(lambda t: "STATES" in t and "cruncher" in t, "threads")
    shell.raw = b""
    shell.press("q")
    shell.until(lambda t: b"\x1b[?1049l" in shell.raw and "prompt>" in t, "the shell again")
    assert shell.is_restored() and still_runs(app)


def test_the_end_of_the_program_is_shown_and_the_numbers_stay(top, workdir):
    screen = top("--", PYTHON, "-c", "import time\nprint('not on the screen')\ndef work():\n  end = time.time() + 2\n  while time.time() < end: sum(range(99))\nwork()")
    text = screen.until(lambda t: "ended: exit 0" in t, "the end")
    assert "work" in text and "not on the screen" not in text, text
    screen.press("q")
    assert screen.ends() == 0
    said = screen.until(lambda t: "printed is in" in t, "where its output is").replace("\n", "")
    path = said.split("printed is in ")[1].split()[0]
    with open(path) as file:
        assert file.read() == "not on the screen\n"
    os.unlink(path)
    os.rmdir(os.path.dirname(path))


def test_a_program_that_runs_on_prints_on(top, workdir):
    # phlox leads the session here, which no shell has it do: the program would get SIGHUP.
    screen = top("--", PYTHON, "-c", "import signal, time\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\ndef toil():\n  end = time.monotonic() + 5\n  while time.monotonic() < end: pass\nwhile True: toil(); print('still here', flush=True)")
    screen.until(lambda t: "toil" in "\n".join(t.splitlines()[4:]), "a screen")
    screen.press("q")
    assert screen.ends() == 0
    said = screen.until(lambda t: "prints to" in t, "where it prints").replace("\n", "")
    pid, path = re.search(r"runs on as process (\d+), and prints to (\S+)", said).groups()
    try:
        wait_until(lambda: os.path.getsize(path) > 0, "its words")
        with open(path) as file:
            assert file.readline() == "still here\n"
    finally:
        os.kill(int(pid), signal.SIGKILL)
        os.unlink(path)
        os.rmdir(os.path.dirname(path))


def test_a_program_ended_by_ctrl_c_is_not_reported_as_running(top, workdir):
    screen = top("--", PYTHON, "-c", "import time\ntry:\n  while True: sum(range(99))\nexcept KeyboardInterrupt: time.sleep(0.3)")
    screen.until(lambda t: "module" in t, "functions")
    screen.press("\x03")
    assert screen.ends() == 0
    assert "runs on" not in screen.text, screen.text


def test_what_takes_long_to_end_after_ctrl_c_is_waited_for(top, workdir):
    screen = top("--", PYTHON, "-c", "import time\ntry:\n  while True: sum(range(99))\nexcept KeyboardInterrupt: time.sleep(2.5)")
    screen.until(lambda t: "module" in t, "functions")
    screen.press("\x03")
    screen.until(lambda t: "waiting for the program to end" in t, "that it waits")
    assert screen.process.poll() is None
    assert screen.ends() == 0
    assert "runs on" not in screen.text, screen.text


def test_a_second_ctrl_c_leaves_it_running(top, workdir):
    screen = top("--", PYTHON, "-c", "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\nwhile True: sum(range(99))")
    screen.until(lambda t: "module" in t, "functions")
    screen.press("\x03")
    screen.until(lambda t: "waiting for the program to end" in t, "that it waits")
    screen.press("\x03")
    assert screen.ends() == 0
    said = screen.until(lambda t: "prints to" in t, "that it runs").replace("\n", "")
    pid, path = re.search(r"runs on as process (\d+), and prints to (\S+)", said).groups()
    os.kill(int(pid), signal.SIGKILL)
    os.unlink(path)
    os.rmdir(os.path.dirname(path))


def test_a_refresh_sends_little(app, top, workdir):
    screen = top("-p", app.pid)
    screen.until(lambda t: "crunch" in t, "functions")
    screen.read(4)
    before = len(screen.raw)
    screen.read(5)
    assert 0 < (len(screen.raw) - before) / 5 < 1500


def test_without_colour(app, top, workdir):
    screen = top("-p", app.pid, NO_COLOR="1")
    screen.until(lambda t: "crunch" in t, "functions")
    screen.press("3")
    screen.until(lambda t: "STATES" in t, "threads")
    assert not re.search(rb"\x1b\[(\d+;)*[34][0-7]m", screen.raw), screen.raw
    assert all(screen.screen.buffer[y][x].fg == "default" for y in range(24) for x in range(80))


def test_a_growing_recording(app, top, start, workdir):
    recorder = start([PHLOX, "record", "-q", "-o", "a.phlox", "-p", app.pid])
    wait_until(lambda: is_recording("a.phlox") and count("a.phlox") > 3, "samples")
    screen = top("a.phlox")
    screen.until(lambda t: "crunch" in t and "still being recorded" in t, "functions")
    first = screen.lines[0]
    screen.until(lambda t: t.splitlines()[0] != first, "more time")
    recorder.send_signal(signal.SIGINT)
    assert recorder.wait(timeout=LIMIT) == 0
    screen.until(lambda t: "of a recording" in t, "its end")
    screen.press("w")
    screen.until(lambda t: "wrote " in t, "a copy")
    [copy] = [name for name in os.listdir(".") if name.endswith(".phlox") and name != "a.phlox"]
    assert re.fullmatch(r"a-\d{8}-\d{6}\.phlox", copy) and "crunch" in phlox("report", copy).stdout


@pytest.mark.skipif(not kernel_tells_names(), reason="/proc/kallsyms has no addresses for us")
def test_frames_of_the_kernel_have_names(start):
    program = start([PYTHON, "-c", READS])
    assert program.stdout.readline() == "ready\n"
    done = phlox("top", "--native", "-n", "1", "--interval", "2", "--filter", "read_zero", "-p", program.pid)
    assert done.returncode == 0, done.stderr
    if "no kernel frames" in done.stderr:
        pytest.skip("this host does not grant kernel frames")
    assert re.search(r"read_zero +kernel", done.stdout), done.stdout


READS_A_SOCKET = """
import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
print(server.getsockname()[1], flush=True)
client.recv(1)
"""


@pytest.mark.skipif(not looks_in_the_kernel(), reason="only the kernel's capture records wait targets")
def test_a_recording_names_what_a_thread_waits_for(start, workdir):
    program = start([PYTHON, "-c", READS_A_SOCKET])
    port = program.stdout.readline().strip()
    assert phlox("record", "-p", program.pid, "-d", "1", "-o", "a.phlox").returncode == 0
    shown = phlox("top", "-n", "1", "--page", "threads", "a.phlox").stdout
    assert f"a socket, 127.0.0.1:{port}" in shown, shown


def test_text_where_there_is_no_terminal(app, workdir):
    done = phlox("top", "-n", "2", "--interval", "0.7", "-p", app.pid)
    assert done.returncode == 0, done.stderr
    tables = done.stdout.split("\n\n")
    assert len(tables) == 2 and all("crunch" in table and "FUNCTION" in table for table in tables), done.stdout
    assert "\x1b" not in done.stdout
    filtered = phlox("top", "-n", "1", "--interval", "0.7", "--page", "threads", "--filter", "rester", "-p", app.pid).stdout
    assert "rester" in filtered and "MainThread" not in filtered


PERF_SCRIPT = "python3 {0}/{0} 1.5: 1000000 cpu-clock:\n\t401000 work+0x10 (/usr/bin/python3.11)\n\n"


@pytest.mark.parametrize("recorded, title", [
    ("main;work 10\n", "others.phlox"),
    (PERF_SCRIPT.format(71), "pid 71: python3"),
], ids=["collapsed", "perf script"])
def test_what_others_recorded_has_a_title(tmp_path, recorded, title):
    (tmp_path / "others").write_text(recorded)
    assert phlox("import", tmp_path / "others", "-o", tmp_path / "others.phlox").returncode == 0
    shown = phlox("top", tmp_path / "others.phlox").stdout.splitlines()[0]
    assert shown.startswith(f"phlox top  {title} "), shown


def test_processes_of_a_name_and_later_ones(top, start, workdir):
    programs = [start([PYTHON, "-c", WAITS_FOR_THE_GIL, "alike-for-top"]) for _ in range(2)]
    screen = top("--name", "alike-for-to[p]", "--page", "processes", columns=120)
    known = lambda t: {program.pid for program in programs if f" {program.pid} " in t}
    screen.until(lambda t: len(known(t)) == 2, "both")
    assert "Pythons whose command line matches 'alike-for-to[p]'" in screen.lines[0]
    programs.append(start([PYTHON, "-c", WAITS_FOR_THE_GIL, "alike-for-top"]))
    screen.until(lambda t: len(known(t)) == 3, "the third")
    screen.press("q")
    assert screen.ends() == 0 and all(still_runs(program) for program in programs)


def test_a_name_that_no_process_has(workdir):
    done = phlox("top", "--name", "nobody-is-call[e]d-so", "-n", "1", "--interval", "0.3")
    assert done.returncode == 0 and "no Python whose command line matches 'nobody-is-call[e]d-so' is running" in done.stderr, done.stderr


def test_text_on_a_terminal_that_cannot_move_its_cursor(app, top, workdir):
    screen = top("-p", app.pid, TERM="dumb")
    screen.until(lambda t: "crunch" in t, "text")
    assert b"plain text" in screen.raw
    screen.press("\x03")
    assert screen.ends() == 0
    assert b"\x1b" not in screen.raw


@pytest.mark.parametrize("words, status, said", [
    ([], 2, "give one of these: "),
    (["-p", "1", "a.phlox"], 2, "give one of these: "),
    (["--all", "a.phlox"], 2, "give one of these: "),
    (["--in", "1", "--all"], 2, "--in needs -p"),
    (["-n", "1", "--in", "0123456789ab", "-p", "1"], 111, "no process is in a container 0123456789ab"),
    (["--name", "("], 2, "no regular expression"),
    (["-n", "1", "--filter", "(", "-p", "1"], 2, "not a regular expression"),
    (["-n", "1", "nothing.phlox"], 118, "cannot open nothing.phlox"),
    (["-n", "1", "-p", str(2**22 + 1)], 111, "no process"),
    (["-n", "1", "--", "/nowhere/python"], 127, "/nowhere/python"),
])
def test_what_cannot_be_shown_says_why(workdir, words, status, said):
    done = phlox("top", *words)
    assert done.returncode == status and said in done.stderr, done.stderr


def test_what_a_killed_top_left_is_removed_by_the_next_one(busy, start, workdir, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(workdir))

    def folders():
        return {path.parent.name for path in workdir.glob("phlox-top-*/top.phlox")}
    killed = start([PHLOX, "top", "-p", busy.pid])
    wait_until(folders, "its folder")
    left = folders()
    killed.kill()
    killed.wait()
    runs_on = start([PHLOX, "top", "-p", busy.pid])
    wait_until(lambda: folders() - left, "the folder of the next one")
    assert not folders() & left
    used = folders()
    (workdir / "phlox-top-output").mkdir()  # kept, for what a program printed
    (workdir / "phlox-top-output" / "output.txt").write_text("printed")
    assert phlox("top", "-p", busy.pid, "-n", 1).returncode == 0
    assert folders() == used and (workdir / "phlox-top-output" / "output.txt").exists()
    runs_on.send_signal(signal.SIGINT)
    runs_on.wait(timeout=30)
    assert not folders()
