"""phlox record --on: each condition against a real program, inside the kernel and from outside. What is written must be of the time of
the incident, hold the cause, and belong to its owner alone."""
import contextlib
import os
import pathlib
import queue
import re
import signal
import socket
import sqlite3
import stat
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

from live_support import INTERPRETERS, PHLOX, SLOWER
from test_kernel import possible

PROGRAM = pathlib.Path(__file__).parent / "programs" / "triggers.py"
SYSTEM = "/usr/bin/python3"
# What a condition judges are rows, and these are alike for all interpreters (test_truth, test_kernel).
PYTHONS = [SYSTEM]
if os.environ.get("PHLOX_EVERY_VERSION"):
    PYTHONS = list({(one.major, one.minor): one.path for one in reversed(INTERPRETERS) if one.flags == "-" and (one.major, one.minor) >= (3, 7)}.values())[::-1]
WAYS = ["kernel", "no-kernel"] if possible() else ["no-kernel"]
everywhere = pytest.mark.parametrize("which", PYTHONS, ids=lambda path: path.strip("/").replace("/", "-")[-30:])
each_way = pytest.mark.parametrize("way", WAYS)
kernel_only = pytest.mark.skipif(not possible(), reason="phlox doctor: --mode kernel cannot be had here")
WITHIN = 60 * SLOWER  # seconds: what needs longer hangs


class Lines:
    """The lines of a stream, waited for with a deadline."""

    def __init__(self, stream):
        self.seen, self.queue = [], queue.Queue()
        threading.Thread(target=self.read, args=(stream,), daemon=True).start()

    def read(self, stream):
        for line in stream:
            self.queue.put(line.rstrip("\n"))
        self.queue.put(None)

    def wait(self, pattern, within=WITHIN):
        for line in self.seen:
            if re.search(pattern, line):
                return line
        end = time.monotonic() + within
        while True:
            line = self.queue.get(timeout=max(0.01, end - time.monotonic()))
            assert line is not None, (pattern, self.seen)
            self.seen.append(line)
            if re.search(pattern, line):
                return line


@pytest.fixture
def start():
    """Starts the program, or a recorder of it."""
    processes = []

    def start_(*command, **options):
        one = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        one.out, one.err = Lines(one.stdout), Lines(one.stderr)
        processes.append(one)
        return one

    yield start_
    for one in processes:
        if one.poll() is None:
            one.kill()
        one.wait()


@pytest.fixture
def program(start):
    def program_(python=SYSTEM, **options):
        one = start(python, PROGRAM, **options)
        one.out.wait("ready")
        return one

    return program_


@pytest.fixture
def watch(start, tmp_path):
    """A recorder that is recording; `folder` has its incidents."""
    def watch_(target, *conditions, way=WAYS[0], before=1, after=0.3, more=()):
        on = [word for condition in conditions for word in ("--on", condition)]
        one = start(PHLOX, "record", "-v", "--mode", way, *on, "--before", before, "--after", after, *more, "-o", tmp_path / "incidents", "-p", target.pid)
        one.folder = tmp_path / "incidents"
        one.err.wait("recording into")
        seen_samples(one.folder / "recording.phlox", before + 0.5)
        return one

    return watch_


def seen_samples(recording, seconds):
    """Until so much was recorded."""
    end = time.monotonic() + WITHIN
    while time.monotonic() < end:
        if recording.exists():
            with contextlib.closing(sqlite3.connect(f"file:{recording}?mode=ro", uri=True)) as db:
                if (db.execute("SELECT max(start_us) - min(start_us) FROM sample").fetchone()[0] or 0) > seconds * 1e6:
                    return
        time.sleep(0.05)
    raise AssertionError("nothing was recorded")


def tell(target, *words):
    target.stdin.write(" ".join(str(word) for word in words) + "\n")
    target.stdin.flush()


def stop(recorder):
    recorder.send_signal(signal.SIGINT)
    assert recorder.wait(WITHIN) in (0, 130), recorder.err.seen


class Incident:
    """The files of the only incident of a folder."""

    def __init__(self, recorder):
        recorder.err.wait("incident: wrote")
        (self.path,) = recorder.folder.glob("incident-*.phlox")
        self.page, self.text = self.path.with_suffix(".html"), self.path.with_suffix(".txt")
        self.db = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)
        self.meta = dict(self.db.execute("SELECT key, value FROM meta"))
        self.time, self.kind, self.words, self.in_short = self.meta["incident.1"].split("\t")
        for file in (self.path, self.page, self.text):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
        page = self.page.read_text()
        assert "<html" in page[:2000] and f"Incident: {self.in_short} at " in page, self.in_short
        text = self.text.read_text()
        assert text.startswith("Incident (local time)\n") and self.words in text

    def covers(self, before, after):
        """It begins so long before its cause and ends so long after it; rows take up to a second."""
        start, end = int(self.meta["start_monotonic_ns"]), int(self.meta["end_monotonic_ns"])
        assert -0.1 <= (int(self.time) - start) / 1e9 - before <= 1.1, (self.time, self.meta)
        assert (end - int(self.time)) / 1e9 >= after - 0.1, (self.time, end)
        first, last = self.db.execute("SELECT min(start_us * 1000), max(start_us * 1000 + wall_ns) FROM sample").fetchone()
        epoch = int(self.meta["sample_epoch_ns"])
        assert epoch + first >= start - 1e6 and epoch + last <= end + 1e6
        return self

    def wall_of(self, function):
        """Seconds of samples with this function on the stack."""
        parents = {i: (parent, frame) for i, parent, frame in self.db.execute("SELECT id, parent, frame FROM stack")}
        wanted = {i for (i,) in self.db.execute("SELECT id FROM frame WHERE function = ?", (function,))}

        def has(stack):
            while stack:
                stack, frame = parents[stack]
                if frame in wanted:
                    return True
            return False

        return sum(wall for stack, wall in self.db.execute("SELECT stack, sum(wall_ns) FROM sample GROUP BY stack") if has(stack)) / 1e9


@everywhere
@each_way
def test_a_stall_of_an_event_loop(program, watch, which, way):
    target = program(which)
    recorder = watch(target, "stall=200ms", way=way, before=2, after=1)
    tell(target, "stall")
    found = Incident(recorder)
    assert found.kind == "stall" and "stall_here (triggers.py:" in found.words, found.words
    found.covers(before=2, after=1.3)
    assert 0.3 < found.wall_of("stall_here") < 0.8
    stop(recorder)


@everywhere
@each_way
def test_a_thread_that_holds_the_gil(program, watch, which, way):
    target = program(which)
    recorder = watch(target, "gil=150ms", way=way)
    for _ in range(8):  # from outside, one may be missed
        tell(target, "gil")
        with contextlib.suppress(queue.Empty):
            recorder.err.wait("incident: gil", within=4)
            break
    found = Incident(recorder)
    assert found.kind == "gil" and re.search(r"thread (?:\S+ \(\d+\)|\d+) held it for \d+ ms in hold_the_gil \(triggers.py:", found.words), found.words
    assert found.wall_of("hold_the_gil") > 0.15
    stop(recorder)


@everywhere
@each_way
def test_much_cpu_time(program, watch, which, way):
    target = program(which)
    recorder = watch(target, "cpu=20%/2s", way=way)
    tell(target, "spin", 60)
    found = Incident(recorder)
    assert found.kind == "cpu" and f"process {target.pid} (" in found.words, found.words
    assert found.wall_of("spin_here") > 0.5
    stop(recorder)


@each_way
def test_waiting_for_a_cpu(program, watch, start, way):
    cpu = {min(os.sched_getaffinity(0))}
    target = program(preexec_fn=lambda: os.sched_setaffinity(0, cpu))
    recorder = watch(target, "cpu-wait=20%/2s", way=way)
    for _ in range(3):
        start(SYSTEM, "-c", "while True: pass", preexec_fn=lambda: os.sched_setaffinity(0, cpu))
    tell(target, "spin", 60)
    found = Incident(recorder)
    assert found.kind == "cpu-wait" and "waited for a CPU for" in found.words, found.words
    stop(recorder)


@pytest.fixture
def limited_group():
    """A control group with 200 MB, of either version."""
    own = [line.split(":", 2) for line in open("/proc/self/cgroup").read().splitlines()]
    path = next((path for _, controllers, path in own if "memory" in controllers.split(",")), None)
    unified = path is None
    root = pathlib.Path("/sys/fs/cgroup" if unified else "/sys/fs/cgroup/memory")
    group = root / f"phlox-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / ("memory.max" if unified else "memory.limit_in_bytes")).write_text("200000000")
    except OSError as error:
        if group.exists():
            group.rmdir()
        pytest.skip(f"no control group can be made here: {error}")
    yield group
    group.rmdir()


@each_way
def test_a_control_group_whose_memory_is_nearly_full(program, watch, limited_group, way):
    target = program()
    (limited_group / "cgroup.procs").write_text(str(target.pid))
    recorder = watch(target, "memory=80%", way=way)
    tell(target, "memory", 100 << 20)
    target.out.wait("done memory")
    tell(target, "memory", 70 << 20)
    found = Incident(recorder)
    assert found.kind == "memory" and str(limited_group.name) in found.words and "of 200 MB" in found.words, found.words
    stop(recorder)
    target.kill()
    target.wait()


def test_a_group_without_a_limit_is_said(program, watch):
    groups = open("/proc/self/cgroup").read()
    target = program()
    recorder = watch(target, "memory=80%")
    stop(recorder)
    said = [line for line in recorder.err.seen if "has a memory limit" in line]
    limits = subprocess.run("cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null", shell=True, capture_output=True, text=True).stdout
    if "memory:/\n" in groups or groups == "0::/\n":
        assert said or limits.strip().isdigit()


@everywhere
@each_way
def test_a_line_in_a_log_file_that_is_rotated(program, watch, tmp_path, which, way):
    log = tmp_path / "app.log"
    log.write_text("ERROR before\n")
    target = program(which)
    recorder = watch(target, f"log={log}:^ERROR .*timed out", way=way)
    log.rename(tmp_path / "app.log.1")
    log.write_text("fine\nERROR pool\x1b[31m timed out\n")
    found = Incident(recorder)
    assert found.kind == "log" and found.words.endswith("app.log: ERROR pool [31m timed out"), found.words
    stop(recorder)


@each_way
def test_a_signal_to_phlox(program, watch, way):
    target = program()
    recorder = watch(target, "signal=USR2", way=way)
    recorder.send_signal(signal.SIGUSR2)
    found = Incident(recorder)
    assert found.kind == "signal" and "SIGUSR2" in found.words
    stop(recorder)


def native_names(db, which="SELECT id FROM frame"):
    """What each address of a file is called, the function that has the code first, then those that were inlined there; the addresses without a name.
    `which`: ids of frames, those of inlined functions apart."""
    which = {row[0] for row in db.execute(which)}
    columns = "frame.id, kind, path, address, inlined_in, function, qualified_name, file, line, first_line, role"
    rows = {row[0]: row[1:] for row in db.execute(f"SELECT {columns} FROM frame JOIN module ON module.id = frame.module")}
    inner = {row[3]: i for i, row in rows.items() if row[3] is not None}
    names, without = {}, []
    for i, (kind, path, address, outer, function, *_) in rows.items():
        if outer is not None or i not in which:
            continue
        if not function:
            without.append((kind, path, address))
            continue
        levels = names[kind, path, address] = [rows[i][4:]]
        while (i := inner.get(i)) is not None:
            levels.append(rows[i][4:])
    return names, without


@each_way
def test_native_names_of_an_incident_are_those_that_a_recording_gets_at_its_end(program, watch, way, tmp_path):
    target = program()
    recorder = watch(target, "signal=USR2", way=way, before=4, after=4, more=["--native"])
    recorder.send_signal(signal.SIGUSR2)
    incident = Incident(recorder).db
    names, without = native_names(incident, "WITH RECURSIVE used(id) AS (SELECT stack FROM sample UNION SELECT parent FROM stack JOIN used USING (id)) "
                                            "SELECT frame FROM stack JOIN used USING (id)")
    stop(recorder)
    assert len(names) > 10 and not without, (len(names), without)
    subprocess.run([PHLOX, "record", "--native", "--mode", way, "-d", "4", "-o", tmp_path / "whole.phlox", "-p", str(target.pid)], check=True, capture_output=True)
    with contextlib.closing(sqlite3.connect(tmp_path / "whole.phlox")) as db:
        at_the_end, _ = native_names(db)
    both = names.keys() & at_the_end.keys()
    assert len(both) > 10 and any(len(names[one]) > 1 for one in both) == any(len(at_the_end[one]) > 1 for one in both), (len(names), len(at_the_end), len(both))
    assert {one: names[one] for one in both} == {one: at_the_end[one] for one in both}


def test_a_signal_that_is_a_condition_does_not_reach_the_program(start, tmp_path):
    recorder = start(PHLOX, "record", "-v", "--on", "signal=USR1", "--after", "0.5", "-o", tmp_path / "incidents", "--", SYSTEM, PROGRAM)
    recorder.folder = tmp_path / "incidents"
    recorder.out.wait("ready")
    seen_samples(recorder.folder / "recording.phlox", 0.5)
    recorder.send_signal(signal.SIGUSR1)
    Incident(recorder)
    tell(recorder, "quit")
    assert recorder.wait(WITHIN) == 0
    assert "USR1" not in recorder.out.seen


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def post(port, path="/incident", **headers):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=b"why", headers=headers, method="POST")
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.status


@each_way
def test_a_request_to_the_loopback_port(program, watch, way):
    port = free_port()
    target = program()
    recorder = watch(target, f"http=127.0.0.1:{port}", way=way)
    recorder.err.wait("POST /incident on port")
    with pytest.raises(urllib.error.HTTPError, match="403"):
        post(port, Origin="http://example.com")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        post(port, "/other")
    assert not [line for line in recorder.err.seen if "incident: " in line]
    assert post(port) == 202
    found = Incident(recorder)
    assert found.kind == "http"
    stop(recorder)


@kernel_only
@everywhere
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV], ids=lambda number: number.name)
def test_the_black_box_of_a_process_that_another_kills(program, watch, which, number):
    target = program(which)
    recorder = watch(target, "death", way="kernel")
    os.kill(target.pid, number)
    found = Incident(recorder)
    assert found.kind == "death", found.words
    assert found.words.startswith(f"{number.name} ended process {target.pid} (") and f"({os.getpid()}) sent it" in found.words, found.words
    # The recording ends with the program, and the incident with it.
    assert recorder.wait(WITHIN) == 0
    assert number.name in found.text.read_text().split("\n\n", 1)[1]


@kernel_only
def test_what_becomes_true_during_an_incident_is_said_and_belongs_to_it(program, watch):
    target = program()
    recorder = watch(target, "death", "signal=USR1", way="kernel", after=30)
    recorder.send_signal(signal.SIGUSR1)
    recorder.err.wait("incident: signal: ")
    os.kill(target.pid, signal.SIGKILL)
    recorder.err.wait(f"incident, also: death: SIGKILL ended process {target.pid} ")
    assert recorder.wait(WITHIN) == 0
    (text,) = recorder.folder.glob("incident-*.txt")
    assert "SIGKILL" in text.read_text().split("\n\n", 1)[0]


@kernel_only
def test_an_end_that_was_asked_for_is_no_incident(program, watch):
    target = program()
    recorder = watch(target, "death", way="kernel")
    target.terminate()
    assert recorder.wait(WITHIN) == 0
    assert not list(recorder.folder.glob("incident-*"))


def test_outside_the_kernel_the_end_of_the_program_is_known_and_the_rest_is_said(start, tmp_path):
    recorder = start(PHLOX, "record", "--mode", "no-kernel", "--on", "death", "-o", tmp_path / "incidents", "--", SYSTEM, PROGRAM)
    recorder.folder = tmp_path / "incidents"
    recorder.out.wait("ready")
    recorder.err.wait("only the end of the program itself is known")
    seen_samples(recorder.folder / "recording.phlox", 0.5)
    tell(recorder, "die", int(signal.SIGSEGV))
    found = Incident(recorder)
    assert found.words.startswith("SIGSEGV ended process "), found.words
    assert recorder.wait(WITHIN) == 128 + signal.SIGSEGV


def test_what_the_mode_cannot_see_is_said(program, watch):
    recorder = watch(program(), "death", "stall=200ms", "gil=100ms", way="no-kernel")
    recorder.err.wait("--on death: how a process ends is known only when phlox samples inside the kernel")
    recorder.err.wait("--on stall: outside the kernel stalls are found by samples")
    recorder.err.wait("--on gil: outside the kernel")
    stop(recorder)


def test_no_more_than_so_many_an_hour(program, watch):
    port = free_port()
    recorder = watch(program(), f"http=127.0.0.1:{port}", more=["--max-incidents", "1"])
    recorder.err.wait("POST /incident on port")
    post(port)
    Incident(recorder)
    post(port)
    recorder.err.wait(r"no incident is written of this: http: .*after 1 in an hour; --max-incidents")
    stop(recorder)
    assert len(list(recorder.folder.glob("incident-*.phlox"))) == 1


def test_a_folder_that_is_full_of_incidents_gets_no_more(program, watch):
    port = free_port()
    recorder = watch(program(), f"http=127.0.0.1:{port}", more=["--incident-space", "1k"])
    recorder.err.wait("POST /incident on port")
    post(port)
    first = Incident(recorder)
    post(port)
    recorder.err.wait("no more are written there until some are removed")
    assert list(recorder.folder.glob("incident-*.phlox")) == [first.path]
    for file in recorder.folder.glob("incident-*"):
        file.unlink()
    post(port)
    end = time.monotonic() + WITHIN
    while not list(recorder.folder.glob("incident-*.txt")):
        assert time.monotonic() < end
        time.sleep(0.05)
    stop(recorder)


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=700", "tmpfs", folder], capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_is_said_and_what_was_written_stays(program, start, small_disk):
    port = free_port()
    target = program()
    recorder = start(PHLOX, "record", "-v", "--on", f"http=127.0.0.1:{port}", "--before", "2", "--after", "0.3", "-o", small_disk / "incidents", "-p", target.pid)
    recorder.folder = small_disk / "incidents"
    recorder.err.wait("POST /incident on port")
    seen_samples(recorder.folder / "recording.phlox", 2)
    post(port)
    first = Incident(recorder)
    rest = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
    (small_disk / "other").write_bytes(bytes(max(0, rest - 300_000)))
    post(port)
    recorder.err.wait(r"phlox: cannot write .*incident-|phlox: .*(No space|full)")
    assert first.path.exists() and first.db.execute("SELECT count(*) FROM sample").fetchone()[0] > 0
    left = {file.name for file in recorder.folder.iterdir()}
    assert not [name for name in left if re.search(r"\.\d+-[0-9a-f]+$", name)], left
    (small_disk / "other").unlink()
    recorder.send_signal(signal.SIGINT)
    recorder.wait(WITHIN)


@pytest.mark.parametrize("words, said", [
    (["--on", "stal=1s"], "there is no condition 'stal'"),
    (["--on", "death,stall=1s"], "there is more than one condition"),
    (["--on", "stall=1h"], "is not a time from 20ms to 10s"),
    (["--on", "log=/no/such/file:x"], "cannot read /no/such/file"),
    (["--on", "log=/etc/passwd:("], "is no regular expression"),
    (["--on", "http=0.0.0.0:80"], "is not an address and a port of the loopback interface"),
    (["--on", "death", "--keep", "10s"], "is too short for these incidents"),
    (["--on", "death", "--append"], "--on does not go with --append"),
    (["--on", "death", "--max-incidents", "0"], "is not a number above 0"),
    (["--before", "10s"], "need --on"),
])
def test_a_wrong_request_is_refused_before_anything_starts(tmp_path, words, said):
    done = subprocess.run([PHLOX, "record", *words, "-o", tmp_path / "incidents", "--", SYSTEM, "-c", "print('started')"], capture_output=True, text=True)
    assert done.returncode != 0 and said in done.stderr and "hint: " in done.stderr, done.stderr
    assert "started" not in done.stdout
    assert not list(tmp_path.glob("incidents/*"))


@pytest.mark.parametrize("output", ["x.phlox", "x.svg", "-", None])
def test_the_output_must_be_a_folder(tmp_path, output):
    done = subprocess.run([PHLOX, "record", "--on", "death", *([] if output is None else ["-o", output]), "--", SYSTEM, "-c", ""], capture_output=True, text=True, cwd=tmp_path)
    said = "--on needs -o: a folder" if output is None else f"-o names a folder, not a file such as {output}"
    assert done.returncode != 0 and said in done.stderr and "hint: for example: -o incidents" in done.stderr, done.stderr


def test_no_folder_of_others_and_no_link_is_used(tmp_path):
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    link = tmp_path / "link"
    link.symlink_to(real)
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    file = tmp_path / "file"
    file.write_text("")
    for folder in (link, shared, file):
        done = subprocess.run([PHLOX, "record", "--on", "death", "-o", folder, "--", SYSTEM, "-c", ""], capture_output=True, text=True)
        assert done.returncode != 0 and re.search("is no folder|other users may write into the folder", done.stderr), done.stderr
    assert not list(real.iterdir()) and not list(shared.iterdir())
