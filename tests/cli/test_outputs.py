"""What is written, what stays as it was: no recording is lost to an output, and nothing half-written stays behind."""
import contextlib
import os
import pathlib
import re
import signal
import sqlite3
import subprocess

import pytest
from cli_support import BUSY, PHLOX, PYTHON, count, has_open, is_recording, phlox, still_runs, wait_until

USAGE, OUTPUT, INPUT = 2, 117, 118


@pytest.fixture
def recording(busy, workdir):
    """a.phlox, and what it holds."""
    assert phlox("record", "-p", busy.pid, "-d", "0.4", "-o", "a.phlox").returncode == 0
    return pathlib.Path("a.phlox").read_bytes()


def is_as_it_was(recording):
    return pathlib.Path("a.phlox").read_bytes() == recording


def under_another_name(kind):
    """The recording by a name that `-o` may give it."""
    if kind == "itself":
        return "a.phlox"
    if kind == "another way":
        return "../" + os.path.basename(os.getcwd()) + "/./a.phlox"
    name = {"symlink": "link.svg", "hard link": "hard.svg", "symlink to a link": "second.svg"}[kind]
    os.link("a.phlox", "hard.svg")
    os.symlink("a.phlox", "link.svg")
    os.symlink("link.svg", "second.svg")
    return name


@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize("kind", ["itself", "another way", "symlink", "hard link", "symlink to a link"])
def test_an_export_never_writes_over_what_it_reads(recording, kind, force):
    name = under_another_name(kind)
    done = phlox("export", "a.phlox", "-f", "svg", "-o", name, *force)
    assert done.returncode == USAGE, done.stderr
    assert "a.phlox" in done.stderr and "would be destroyed" in done.stderr
    assert is_as_it_was(recording)


@pytest.mark.parametrize("descriptor", ["/dev/fd/3", "/proc/self/fd/3", "/dev/stdout", "-", "write", "append"])
def test_nor_through_a_descriptor(recording, descriptor):
    option = "" if descriptor in ("write", "append") else f"-o {descriptor}"
    redirect = "3<>a.phlox" if descriptor.endswith("3") else ">>a.phlox" if descriptor == "append" else "1<>a.phlox"
    done = subprocess.run(["sh", "-c", f"{PHLOX} export a.phlox -f collapsed {option} {redirect}"], capture_output=True, text=True, timeout=60)
    assert done.returncode == USAGE, done.stderr
    assert "would be destroyed" in done.stderr
    assert is_as_it_was(recording)


@pytest.mark.parametrize("command", [["report"], ["report", "--json"], ["diff", "a.phlox"], ["diff", "--json", "a.phlox"]])
def test_reports_do_not_go_into_the_recording_either(recording, command):
    with open("a.phlox", "a") as output:
        done = subprocess.run([PHLOX, *command, "a.phlox"], stdout=output, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == USAGE, done.stderr
    assert is_as_it_was(recording)


def test_a_difference_never_replaces_one_of_its_sides(recording):
    os.link("a.phlox", "diff.svg")
    os.link("a.phlox", "b.phlox")
    for before, after in (("a.phlox", "b.phlox"), ("b.phlox", "diff.svg")):
        done = phlox("diff", before, after, "-o", "diff.svg", "--force")
        assert done.returncode == USAGE, done.stderr
        assert is_as_it_was(recording)


def test_what_belongs_to_a_recording_that_was_cut_off_is_not_written_over(busy, start, workdir):
    recorder = start([PHLOX, "record", "-p", busy.pid, "-o", "a.phlox"], stderr=subprocess.PIPE)
    wait_until(lambda: is_recording("a.phlox"), "samples")
    recorder.kill()
    recorder.wait()
    before = pathlib.Path("a.phlox-wal").read_bytes()
    done = phlox("export", "a.phlox", "-f", "collapsed", "-o", "a.phlox-wal")
    assert done.returncode == USAGE, done.stderr
    assert pathlib.Path("a.phlox-wal").read_bytes() == before


@pytest.mark.parametrize("command", [["export", "b.phlox", "-f", "collapsed", "-o", "a.phlox"], ["export", "b.phlox", "-o", "a.svg"],
                                     ["diff", "b.phlox", "b.phlox", "-o", "a.svg"], ["record", "-d", "0.2", "-o", "a.svg", "-p"],
                                     ["pyflame", "-s", "0.2", "-o", "a.phlox", "-p"]])
def test_a_recording_is_replaced_by_something_else_only_when_asked(recording, busy, command):
    os.link("a.phlox", "a.svg")
    pathlib.Path("b.phlox").write_bytes(recording)
    words = [*command, busy.pid] if command[-1] == "-p" else command
    done = phlox(*words)
    assert done.returncode in (OUTPUT, 1), done.stderr
    assert "is a recording, and would be replaced" in done.stderr
    assert is_as_it_was(recording)
    if command[0] != "pyflame":
        assert phlox(*words, "--force").returncode == 0
        assert b"SQLite" not in pathlib.Path(command[command.index("-o") + 1]).read_bytes()[:16]


def test_what_is_no_recording_is_replaced_as_ever(recording):
    pathlib.Path("a.svg").write_text("an old picture")
    done = phlox("export", "a.phlox", "-o", "a.svg")
    assert done.returncode == 0, done.stderr
    assert "<svg" in pathlib.Path("a.svg").read_text()


def test_what_stood_in_the_file_of_a_descriptor_stays(recording):
    done = subprocess.run(["sh", "-c", f"(echo first; {PHLOX} export a.phlox -f collapsed -o /dev/stdout) >out.txt"], timeout=60)
    assert done.returncode == 0
    lines = pathlib.Path("out.txt").read_text().splitlines()
    assert lines[0] == "first" and "hot" in lines[1] + lines[-1]


def test_a_recorder_that_finds_nothing_to_record_leaves_the_recording_that_was_there(recording, start):
    done = phlox("record", "-o", "a.phlox", "--", "true")
    assert done.returncode != 0
    assert is_as_it_was(recording)
    sleeper = start(["sleep", "60"])
    wait_until(lambda: "sleep" in os.readlink(f"/proc/{sleeper.pid}/exe"), "exec")
    assert phlox("record", "-o", "a.phlox", "-p", sleeper.pid).returncode != 0
    assert is_as_it_was(recording)


def test_a_replaced_recording_is_reported(recording, busy):
    done = phlox("record", "-p", busy.pid, "-d", "0.3", "-o", "a.phlox")
    assert done.returncode == 0, done.stderr
    assert "in place of the recording that was there" in done.stderr
    assert os.listdir() == ["a.phlox"]


def test_a_recording_that_is_being_written_is_not_replaced(busy, start, workdir):
    recorder = start([PHLOX, "record", "-p", busy.pid, "-o", "a.phlox"], stderr=subprocess.PIPE)
    wait_until(lambda: is_recording("a.phlox"), "samples")
    done = phlox("record", "-p", busy.pid, "-d", "0.2", "-o", "a.phlox")
    assert done.returncode == OUTPUT, done.stderr
    assert f"process {recorder.pid} is using it" in done.stderr
    recorder.send_signal(signal.SIGINT)
    recorder.wait(timeout=30)
    assert count("a.phlox") > 0


def test_of_two_recorders_that_begin_at_once_one_has_the_file(busy, start, workdir):
    for _ in range(5):
        both = [start([PHLOX, "record", "-p", busy.pid, "-d", "1.5", "-o", "a.phlox"], stderr=subprocess.PIPE) for _ in range(2)]
        words = [recorder.communicate(timeout=60)[1] for recorder in both]
        assert sorted(recorder.returncode for recorder in both) == [0, OUTPUT], words
        assert count("a.phlox") > 20


def test_of_two_recorders_that_append_at_once_one_waits_for_the_other(busy, start, workdir):
    """Both gave their rows the same numbers. And a process that goes on has its threads only once."""
    assert phlox("record", "-p", busy.pid, "-d", "0.3", "-o", "a.phlox").returncode == 0
    for _ in range(5):
        both = [start([PHLOX, "record", "--append", "-p", busy.pid, "-d", "0.2", "-o", "a.phlox"], stderr=subprocess.PIPE) for _ in range(2)]
        words = [recorder.communicate(timeout=60)[1] for recorder in both]
        assert [recorder.returncode for recorder in both] == [0, 0], words
    with contextlib.closing(sqlite3.connect("a.phlox")) as db:
        assert db.execute("SELECT count(*) FROM process").fetchone() == (1,)
        assert db.execute("SELECT count(*), count(DISTINCT tid) FROM thread").fetchone() == (1, 1)
    assert "work" in phlox("export", "a.phlox", "-f", "collapsed").stdout


@pytest.mark.parametrize("output", ["a.svg", "a.txt", "a.phlox"])
def test_a_killed_recorder_leaves_a_recording_and_nothing_half_written(busy, start, workdir, output):
    recorder = start([PHLOX, "record", "-p", busy.pid, "-o", output], stderr=subprocess.PIPE)
    kept = "a.phlox" if output == "a.phlox" else output + ".phlox"
    wait_until(lambda: is_recording(kept), "samples")
    recorder.kill()
    recorder.wait()
    assert {name.removesuffix("-wal").removesuffix("-shm").removesuffix("-journal") for name in os.listdir()} == {kept}
    assert "work" in phlox("export", kept, "-f", "collapsed").stdout


def test_a_killed_export_leaves_nothing(recording, start):
    with contextlib.closing(sqlite3.connect("a.phlox", isolation_level=None)) as db:
        db.execute("begin exclusive")  # for which it waits, its output open
        exporter = start([PHLOX, "export", "a.phlox", "-o", "a.svg"], stderr=subprocess.PIPE)
        wait_until(lambda: has_open(exporter, "a.phlox"), "an open input")
        exporter.kill()
        exporter.wait()
    assert [name for name in os.listdir() if not name.startswith("a.phlox")] == []


def test_a_picture_keeps_its_recording_next_to_it(busy, workdir):
    done = phlox("record", "-p", busy.pid, "-d", "0.4", "-o", "a.svg")
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir()) == ["a.svg", "a.svg.phlox"]
    assert re.search(r"wrote a\.svg \(\d+ KB\), and beside it the recording a\.svg\.phlox \(\d+ KB\)", done.stderr)
    assert "phlox report a.svg.phlox" in done.stderr
    assert count("a.svg.phlox") > 0


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM"])
def test_a_recorder_in_the_background_of_a_script_ends_on_a_signal(busy, start, workdir, how):
    # A shell without job control starts what follows & with SIGINT ignored.
    shell = start(["sh", "-c", f"{PHLOX} record -p {busy.pid} -o a.phlox & echo $!; wait $!; echo ended $?"], stderr=subprocess.PIPE)
    pid = int(shell.stdout.readline())
    try:
        wait_until(lambda: is_recording("a.phlox"), "samples")
        ignored = int(re.search(r"SigIgn:\t(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1), 16)
        assert ignored & 1 << (signal.SIGINT - 1)
        os.kill(pid, getattr(signal, how))
        out, err = shell.communicate(timeout=30)
        assert out == "ended 0\n", err
        assert "wrote a.phlox" in err
    finally:
        if shell.poll() is None:
            os.kill(pid, signal.SIGKILL)
    assert still_runs(busy)


def test_a_launched_program_in_the_background_still_finds_sigint_ignored(start, workdir):
    app = "import signal, time; print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN, flush=True); time.sleep(0.4)"
    shell = start(["sh", "-c", f"{PHLOX} record -o a.phlox -- {PYTHON} -c '{app}' & wait $!"], stderr=subprocess.PIPE)
    assert shell.communicate(timeout=30)[0] == "True\n"


def test_a_hangup_is_still_ignored_under_nohup(busy, start, workdir):
    recorder = start(["nohup", PHLOX, "record", "-p", busy.pid, "-d", "1.5", "-o", "a.phlox"], stderr=subprocess.PIPE)
    wait_until(lambda: is_recording("a.phlox"), "samples")
    recorder.send_signal(signal.SIGHUP)
    _, err = recorder.communicate(timeout=30)
    assert recorder.returncode == 0, err
    assert float(re.search(r"(\d+\.\d) s: ", err).group(1)) >= 1.4


def test_a_recording_of_nothing_says_so(workdir):
    # As its recorder leaves it when it is killed before its first commit.
    phlox("record", "-o", "a.phlox", "--", PYTHON, "-c", BUSY, "0.3")
    db = sqlite3.connect("a.phlox")
    for table in ("meta", "process", "thread", "module", "frame", "stack", "state", "sample", "event", "counter"):
        db.execute(f"delete from {table}")
    db.commit()
    db.close()
    for command in ("report", "export"):
        done = phlox(command, "a.phlox")
        assert done.returncode == INPUT, done.stderr
        assert "killed in its first moments" in done.stderr and "a.phlox-wal" in done.stderr
    # And as one of before left it.
    db = sqlite3.connect("b.phlox")
    db.executescript("PRAGMA application_id=0x50686c78; PRAGMA user_version=1")
    db.close()
    done = phlox("report", "b.phlox")
    assert done.returncode == INPUT and "killed in its first moments" in done.stderr


def test_a_recorder_killed_at_any_moment_leaves_what_opens_or_says_why(busy, start, workdir):
    for milliseconds in range(0, 60, 3):
        recorder = start([PHLOX, "record", "-q", "-p", busy.pid, "-o", "a.phlox"], stderr=subprocess.PIPE)
        try:
            recorder.wait(timeout=milliseconds / 1000)
        except subprocess.TimeoutExpired:
            pass
        recorder.kill()
        recorder.wait()
        assert {name.removesuffix("-wal").removesuffix("-shm").removesuffix("-journal") for name in os.listdir()} <= {"a.phlox"}
        if os.path.exists("a.phlox"):
            done = phlox("export", "a.phlox", "-f", "collapsed")
            assert done.returncode == 0 or "killed in its first moments" in done.stderr, done.stderr
        # Where one is replaced, the whole new one has another name for a moment (base/new_file.h).
        for name in os.listdir():
            os.unlink(name)


def killed_after(seconds, *options, pid):
    recorder = subprocess.Popen([PHLOX, "record", "-q", "-p", str(pid), "-o", "a.phlox", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        recorder.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        pass
    recorder.kill()
    recorder.wait()


def test_a_recorder_killed_at_any_moment_leaves_the_old_recording_or_its_own(recording, busy, start):
    db = sqlite3.connect("a.phlox")
    db.execute("insert or replace into meta values ('test', 'old')")
    db.commit()
    db.close()
    old = pathlib.Path("a.phlox").read_bytes()
    stayed = 0
    for milliseconds in range(0, 600, 30):
        for name in os.listdir():
            os.unlink(name)
        pathlib.Path("a.phlox").write_bytes(old)
        killed_after(milliseconds / 1000, pid=busy.pid)
        done = phlox("export", "a.phlox", "-f", "collapsed")
        assert done.returncode == 0 and done.stdout, done.stderr
        if count("a.phlox", "meta where key = 'test'"):
            assert pathlib.Path("a.phlox").read_bytes() == old
            stayed += 1
    assert stayed > 0
    pathlib.Path("a.phlox").write_bytes(old)
    recorder = start([PHLOX, "record", "-q", "-p", busy.pid, "-o", "a.phlox"])
    wait_until(lambda: count("a.phlox", "meta where key = 'test'") == 0, "the new one")
    recorder.kill()
    recorder.wait()
    assert "work" in phlox("export", "a.phlox", "-f", "collapsed").stdout


def test_a_recording_of_nothing_leaves_the_old_one(recording, workdir):
    done = phlox("record", "--name", "no-such-program-runs-here", "-d", "0.4", "-o", "a.phlox")
    assert done.returncode not in (0, 2), done.stderr
    assert "a.phlox is as it was" in done.stderr
    assert is_as_it_was(recording)
    assert os.listdir() == ["a.phlox"]


def test_a_recording_that_is_renamed_is_noticed_and_found(busy, start, workdir):
    recorder = start([PHLOX, "record", "-p", busy.pid, "-d", "30", "-o", "a.phlox"], stderr=subprocess.PIPE)
    wait_until(lambda: is_recording("a.phlox") and count("a.phlox") > 3, "samples")
    os.rename("a.phlox", "b.phlox")
    _, err = recorder.communicate(timeout=15)
    assert recorder.returncode == OUTPUT, err
    new = f"{os.getcwd()}/b.phlox"
    assert f"a.phlox was renamed to {new} while it was recorded" in err and f"what was recorded is in {new}" in err, err
    assert os.listdir() == ["b.phlox"]
    assert count("b.phlox") > 3
    assert "killed" not in phlox("report", "b.phlox").stdout


@pytest.mark.parametrize("output", ["a.phlox", "a.svg"])
def test_a_removed_recording_is_reported_as_lost(busy, start, workdir, output):
    kept = "a.phlox" if output == "a.phlox" else "a.svg.phlox"
    recorder = start([PHLOX, "record", "-p", busy.pid, "-d", "30", "-o", output], stderr=subprocess.PIPE)
    wait_until(lambda: is_recording(kept) and count(kept) > 3, "samples")
    os.unlink(kept)
    _, err = recorder.communicate(timeout=15)
    assert recorder.returncode == OUTPUT, err
    assert f"{kept} was removed while it was recorded: what was recorded is lost" in err, err
    assert "what was recorded is in" not in err and "wrote" not in err, err
    assert os.listdir() == []


def test_a_recording_whose_folder_is_renamed_is_whole(busy, start, workdir):
    os.mkdir("one")
    recorder = start([PHLOX, "record", "-p", busy.pid, "-d", "1.5", "-o", "one/a.phlox"], stderr=subprocess.PIPE)
    wait_until(lambda: is_recording("one/a.phlox") and count("one/a.phlox") > 3, "samples")
    os.rename("one", "two")
    _, err = recorder.communicate(timeout=30)
    assert recorder.returncode == 0, err
    assert f"wrote {os.getcwd()}/two/a.phlox" in err and "one/a.phlox" not in err.split("wrote", 1)[1], err
    assert os.listdir("two") == ["a.phlox"] and count("two/a.phlox") > 3


def test_a_journal_that_names_another_file_does_not_have_it_removed(recording, workdir):
    """The rollback journal of a pair from someone else: when SQLite applies it, the super-journal that it names is removed."""
    magic = bytes.fromhex("d9d505f920a163d7")
    victim = pathlib.Path("victim").resolve()
    victim.write_text("of somebody's own")
    name = os.fsencode(victim)
    pages = os.path.getsize("a.phlox") // 4096
    header = magic + b"".join(n.to_bytes(4, "big") for n in (0, 1, pages, 512, 4096))
    lock_page = (0x40000000 // 4096 + 1).to_bytes(4, "big")
    super_journal = lock_page + name + len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big") + magic
    pathlib.Path("a.phlox-journal").write_bytes(header.ljust(512, b"\0") + super_journal)
    phlox("report", "a.phlox")
    assert victim.read_text() == "of somebody's own"
