"""What is done to Phlox, and what must hold afterwards. A trial is one attempt: it returns nothing, or raises Broken with what did not
hold. Each takes a random.Random, so that an attempt can be repeated by its seed."""
import array
import contextlib
import os
import pathlib
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "fuzz" / "corpus"

# Counts in shared memory, so that its progress is seen without asking it.
COUNTS = """
import mmap, os, struct, sys, threading
counts = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 4096)
def work(n):
    while True:
        sum(i * i for i in range(200))
        struct.pack_into("Q", counts, 8 * n, struct.unpack_from("Q", counts, 8 * n)[0] + 1)
def deep(n, depth):
    work(n) if depth == 0 else deep(n, depth - 1)
threading.Thread(target=deep, args=(1, 50), daemon=True).start()
print("ready", flush=True)
deep(0, 20)
"""
THREADS = 2

# One thread computes in two bytes of machine code and one sleeps in the kernel, so neither touches the memory that is changed.
RESTS = """
import ctypes, mmap, threading, time
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(b"\\xeb\\xfe")  # jmp to itself
spin = ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
class Named:
    def method(self, depth):
        return self.method(depth - 1) if depth else spin()
def generates():
    yield ctypes.CDLL(None).pause()
threading.Thread(target=Named().method, args=(30,), daemon=True).start()
time.sleep(0.05)
print("ready", flush=True)
list(generates())
"""

MODES = {
    **({"kernel": ("--mode", "kernel")} if os.geteuid() == 0 else {}),
    "same-cpu": ("--mode", "same-cpu"),
    "ptrace": ("--mode", "ptrace"),
    "native-ptrace": ("--native", "--native-source", "ptrace", "--mode", "no-kernel"),
}
FAST = ("-r", "1000", "--max-overhead", "off")
MOST_MEMORY = 1 << 30  # bytes
LONGEST = 20  # seconds from Ctrl-C, or from the start of what ends by itself
LONGEST_HOLD = 1.0  # seconds for which a thread may be stopped once its recorder is gone or stopped


class Broken(Exception):
    pass


def documented():
    return {0, *map(int, re.findall(r"^\| (\d+) \|", (ROOT / "docs/exit-status.md").read_text(), re.M))}


def states_of(pid):
    """Of each thread: its state, and the process that traces it."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            status = (task / "status").read_text()
            found.append((re.search(r"^State:\t(\w)", status, re.M)[1], int(re.search(r"^TracerPid:\t(\d+)", status, re.M)[1])))
    return found


class Program:
    """A program that counts, in a folder of its own."""

    def __init__(self, python):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="phlox-trust-"))
        self.counts_file = self.folder / "counts"
        self.counts_file.write_bytes(bytes(4096))
        self.process = subprocess.Popen([python, "-c", COUNTS, self.counts_file], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.process.stdout.readline()
        self.pid = self.process.pid
        self.counted()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)

    def counts(self):
        return array.array("Q", self.counts_file.read_bytes()[: 8 * THREADS])

    def counted(self):
        """Every thread works."""
        before, end = self.counts(), time.monotonic() + 10
        while not all(now > then for then, now in zip(before, self.counts())):
            if time.monotonic() > end or self.process.poll() is not None:
                raise Broken("the program does not go on")
            time.sleep(0.002)

    def is_free(self):
        return all(state in "RSD" and tracer == 0 for state, tracer in states_of(self.pid))

    def let_go(self):
        """-> seconds until no thread is stopped or traced."""
        begin = time.monotonic()
        while not self.is_free():
            if time.monotonic() - begin > LONGEST_HOLD:
                raise Broken(f"a thread stands: {states_of(self.pid)}")
            time.sleep(0.001)
        return time.monotonic() - begin


def check_status(what, status, text, also=()):
    if status not in documented() and status not in also:
        raise Broken(f"{what}: ended with {status}: {text[-300:]}")


def run(phlox, *arguments, cwd=None, seconds=LONGEST):
    """-> (status, output). It ends in time, by itself, within its memory."""
    def limited():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    out = tempfile.TemporaryFile()
    process = subprocess.Popen([phlox, *map(str, arguments)], stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=cwd, preexec_fn=limited)
    end = time.monotonic() + seconds
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > end:
            process.kill()
            process.wait()
            raise Broken(f"{' '.join(map(str, arguments[:2]))} does not end within {seconds} s")
        time.sleep(0.002)
    process.returncode = os.waitstatus_to_exitcode(status)
    out.seek(0)
    text = out.read().decode(errors="replace")
    check_status(" ".join(map(str, arguments[:2])), process.returncode, text)
    if used.ru_maxrss * 1024 > MOST_MEMORY:
        raise Broken(f"{' '.join(map(str, arguments[:2]))} used {used.ru_maxrss >> 10} MiB")
    return process.returncode, text


def rows_of(path):
    try:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            return database.execute("SELECT count(*) FROM sample").fetchone()[0]
    except sqlite3.Error:
        return 0


def afterwards(phlox, program, recording, must_hold):
    """After a kill: the program goes on, and what was recorded can be read."""
    program.let_go()
    program.counted()
    if must_hold or rows_of(recording):
        status, text = run(phlox, "report", recording)
        if status:
            raise Broken(f"the recording is lost: {text[-300:]}")


def kill_at_an_instant(phlox, python, random):
    mode = random.choice(list(MODES))
    with Program(python) as program:
        recording = program.folder / "a.phlox"
        begin = time.monotonic()
        recorder = subprocess.Popen([phlox, "record", "-q", "-p", str(program.pid), "-o", recording, *FAST, *MODES[mode]], stderr=subprocess.DEVNULL)
        time.sleep(random.uniform(0, 2.5))
        recorder.kill()
        recorder.wait()
        # Half a second may be lost, and a slow machine takes its time until the first sample.
        afterwards(phlox, program, recording, time.monotonic() - begin > 2 and recording.exists())


CALLS = {}  # of each kind of run, once in a process


def calls_of(kind, phlox, folder, arguments, ends_by_itself):
    """The system calls of a run, with how often each was made."""
    if kind not in CALLS:
        CALLS[kind] = watch_calls(phlox, folder, arguments, ends_by_itself)
    return CALLS[kind]


def watch_calls(phlox, folder, arguments, ends_by_itself):
    made = folder / "made"
    process = subprocess.Popen(["strace", "-f", "-qq", "-o", made, "--", phlox, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
    if not ends_by_itself:
        time.sleep(1.5)
        child = traced(process)
        if child:
            os.kill(child, signal.SIGINT)
    process.wait(60)
    found = {}
    for name in re.findall(r"^\d+ +(\w+)\(", made.read_text(errors="replace"), re.M):
        found[name] = found.get(name, 0) + 1
    return found


def traced(process):
    """The process that strace has started."""
    with contextlib.suppress(OSError):
        for child in map(int, pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()):
            if os.readlink(f"/proc/{child}/exe") != os.readlink(f"/proc/{process.pid}/exe"):
                return child
    return None


def kill_at_a_call(phlox, python, random):
    mode = random.choice(list(MODES))
    with Program(python) as program:
        recording = program.folder / "a.phlox"
        command = ("record", "-q", "-p", str(program.pid), "-o", recording, "-d", "1", "-r", "200", *MODES[mode])
        made = calls_of(mode, phlox, program.folder, command, True)
        recording.unlink(missing_ok=True)
        call = random.choice(sorted(made))
        when = random.randint(1, made[call])
        subprocess.run(["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={when}", "--", phlox, *command],
                       stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=60, check=False)
        afterwards(phlox, program, recording, False)


def stop_the_recorder(phlox, python, random, instants=50):
    """-> (instants, seconds of the longest hold): one recorder is stopped that often."""
    mode = random.choice(list(MODES))
    longest = 0
    with Program(python) as program:
        recording = program.folder / "a.phlox"
        recorder = subprocess.Popen([phlox, "record", "-q", "-p", str(program.pid), "-o", recording, *FAST, *MODES[mode]], stderr=subprocess.DEVNULL)
        try:
            end = time.monotonic() + 10
            while not recording.exists() and time.monotonic() < end:
                time.sleep(0.01)
            time.sleep(0.3)
            for _ in range(instants):
                time.sleep(random.uniform(0.001, 0.02))
                recorder.send_signal(signal.SIGSTOP)
                while recorder.poll() is None and states_of(recorder.pid)[0][0] != "T":
                    time.sleep(0.0002)
                longest = max(longest, program.let_go())
                program.counted()
                recorder.send_signal(signal.SIGCONT)
            recorder.send_signal(signal.SIGINT)
            if recorder.wait(LONGEST):
                raise Broken(f"the recorder ended with {recorder.returncode}")
        finally:
            recorder.send_signal(signal.SIGCONT)
            recorder.kill()
            recorder.wait()
    return longest


COMMANDS = {
    "record": ("record", "-p", "{pid}", "-o", "a.phlox"),
    "record-no-kernel": ("record", "--mode", "no-kernel", "-p", "{pid}", "-o", "a.phlox"),
    "top": ("top", "-p", "{pid}"),
    "dump": ("dump", "-p", "{pid}"),
    "report": ("report", "whole.phlox"),
    "diff": ("diff", "whole.phlox", "whole.phlox"),
    "export": ("export", "whole.phlox", "-o", "a.svg"),
    "import": ("import", "in.txt", "-o", "b.phlox"),
}
UNTIL_INTERRUPTED = ("record", "record-no-kernel", "top")
# If these fail, the C library ends the program itself, or the program could not have been started. After a failed rt_sigprocmask,
# which the kernel fails for wrong arguments only, pthread_create() unblocks every signal.
OF_THE_C_LIBRARY = {"futex", "rt_sigprocmask", "execve", "exit", "exit_group", "rt_sigreturn", "restart_syscall", "arch_prctl", "brk", "set_tid_address", "set_robust_list", "rseq"}
ERRORS = ("EPERM", "ENOMEM", "EMFILE", "EAGAIN", "EINTR", "EIO", "ENOSYS", "EINVAL", "ENOSPC", "EACCES")


def refuse_a_call(phlox, python, random):
    command = random.choice(list(COMMANDS))
    with Program(python) as program:
        (program.folder / "in.txt").write_text("".join(f"main;work;function_{i} 1\n" for i in range(2000)))
        if "whole.phlox" in COMMANDS[command]:
            run(phlox, "record", "-q", "-p", program.pid, "-d", "0.5", "-o", program.folder / "whole.phlox")
        arguments = [word.format(pid=program.pid) for word in COMMANDS[command]]
        waits = command in UNTIL_INTERRUPTED
        made = calls_of(command, phlox, program.folder, arguments, not waits)
        for left in ("a.phlox", "b.phlox", "a.svg"):
            (program.folder / left).unlink(missing_ok=True)
        call = random.choice(sorted(set(made) - OF_THE_C_LIBRARY))
        when = f"{random.randint(1, min(made[call], 200))}{random.choice(('', '+'))}"
        error = random.choice(ERRORS)
        if call == "mmap" and when in ("1", "1+"):  # The loader's own memory, without which it crashes.
            when = when.replace("1", "2")
        what = f"{command}: {call} number {when} fails with {error}"
        out = tempfile.TemporaryFile()
        process = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={when}", "--",
                                    phlox, *arguments], stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=program.folder)
        try:
            if waits:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(1.5)
                child = traced(process)
                if process.poll() is None and child:
                    os.kill(child, signal.SIGINT)
            process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            child = traced(process)
            if child:
                os.kill(child, signal.SIGKILL)
            process.kill()
            process.wait()
            raise Broken(f"{what}: it does not end") from None
        out.seek(0)
        text = out.read().decode(errors="replace")
        # Before main(), the loader says what failed, and ends with 127; it knows no other.
        check_status(what, process.returncode, text, (-signal.SIGINT, 128 + signal.SIGINT) if waits else ())
        program.let_go()
        program.counted()
        if rows_of(program.folder / "a.phlox"):
            status, text = run(phlox, "report", program.folder / "a.phlox")
            if status:
                raise Broken(f"{what}: the recording is lost: {text[-300:]}")


def writable(pid):
    """The ranges in which an interpreter keeps its objects: no stack, nothing that is shared."""
    found = []
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        words = line.split(None, 5)
        begin, end = (int(word, 16) for word in words[0].split("-"))
        name = words[5] if len(words) > 5 else ""
        if words[1] == "rw-p" and end - begin <= 64 << 20 and (not name or name == "[heap]" or "python" in name):
            found.append((begin, end))
    return found


def change_memory(pid, random):
    ranges = writable(pid)
    part = random.choice((0.0005, 0.005, 0.05, 0.5))
    pointers_only = random.random() < 0.7
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for begin, end in ranges:
            with contextlib.suppress(OSError):
                memory.seek(begin)
                words = array.array("Q", memory.read(end - begin))
                for at in random.sample(range(len(words)), int(len(words) * part)):
                    if pointers_only and not any(b <= words[at] < e for b, e in ranges):
                        continue
                    into = random.choice(ranges)
                    words[at] = random.choice((0, 1, random.getrandbits(64), 2**64 - 1, random.randrange(*into), random.randrange(*into) & ~15, words[at] ^ 1 << random.randrange(64),
                                               words[random.randrange(len(words))]))
                memory.seek(begin)
                memory.write(words.tobytes())


@contextlib.contextmanager
def resting(python):
    with subprocess.Popen([python, "-c", RESTS], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        try:
            process.stdout.readline()
            yield process
        finally:
            process.kill()


def corrupt_memory(phlox, python, random):
    """The program does not notice: what Phlox reads is nonsense."""
    while True:
        with tempfile.TemporaryDirectory(prefix="phlox-trust-") as folder, resting(python) as process:
            change_memory(process.pid, random)
            time.sleep(0.02)
            if process.poll() is not None:  # The kernel itself uses some words of a thread (rseq), and kills it.
                continue
            run(phlox, "dump", *random.choice(((), ("--locals",), ("--native",), ("--json",))), "-p", process.pid)
            run(phlox, "record", "-q", "-p", process.pid, "-d", "0.2", "-r", "500", "-o", f"{folder}/a.phlox", *MODES[random.choice(list(MODES))])
            return


def mutate(content, random):
    content = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 5, 30))):
        if not content:
            break
        at = random.randrange(len(content))
        what = random.randrange(5)
        if what == 0:
            content[at] ^= 1 << random.randrange(8)
        elif what == 1:
            width = random.choice((1, 2, 4, 8))
            content[at : at + width] = random.choice((b"\xff" * width, b"\0" * width, random.randbytes(width), b"\x7f" + b"\xff" * (width - 1)))
        elif what == 2:
            del content[at : at + random.choice((1, 8, 100, 4096))]
        elif what == 3:
            other = random.randrange(len(content))
            content[at:at] = content[other : other + random.choice((1, 8, 100, 4096))]
        else:
            del content[at:]
    return bytes(content)


def mutate_a_file(phlox, recordings, random):
    """A recording, or a file of another tool, with some bytes changed."""
    files = [*recordings, *recordings, *(path for path in sorted(CORPUS.rglob("*")) if path.is_file())]
    path = random.choice(files)
    with tempfile.TemporaryDirectory(prefix="phlox-trust-") as folder:
        changed = pathlib.Path(folder) / path.name
        changed.write_bytes(mutate(path.read_bytes(), random))
        run(phlox, *random.choice((("report", changed), ("report", "--json", changed), ("export", changed, "-o", f"{folder}/a.svg"), ("export", changed, "-o", f"{folder}/a.html"))))
