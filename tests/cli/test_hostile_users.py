"""Root records, and another user puts things in its way: links, pipes, files that name what they may not read."""
import os
import pathlib
import shutil
import sqlite3
import stat
import subprocess
import sys
import time

import pytest
from cli_support import phlox

NOBODY = 65534
UNDER_SUDO = {"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY)}

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="root alone may do what another user may not")


@pytest.fixture
def theirs(tmp_path_factory):
    """A folder of the user nobody, which all users can reach."""
    folder = pathlib.Path(subprocess.run(["mktemp", "-d", "/tmp/theirs-XXXXXX"], check=True, capture_output=True, text=True).stdout.strip())
    os.chown(folder, NOBODY, NOBODY)
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def precious(tmp_path):
    """A folder of root's with a file in it."""
    tmp_path.chmod(0o700)
    file = tmp_path / "precious"
    file.write_text("root's own")
    return file


def sudo(*arguments, **keywords):
    return phlox(*arguments, env={**os.environ, **UNDER_SUDO}, **keywords)


def record(output, *arguments):
    return sudo("record", *arguments, "-o", output, "--", "/usr/bin/python3", "-c", "sum(range(30000000))")


def untouched(file):
    there = file.stat()
    return file.read_text() == "root's own" and there.st_uid == 0 and sorted(p.name for p in file.parent.iterdir()) == [file.name]


def of_nobody(file):
    there = file.lstat()
    return stat.S_ISREG(there.st_mode) and (there.st_uid, there.st_gid) == (NOBODY, NOBODY)


@pytest.mark.parametrize("suffix", ["-shm", "-wal", "-journal"])
@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symlink", "hard link"])
def test_a_link_next_to_a_recording_is_not_followed(theirs, precious, suffix, link):
    link(precious, f"{theirs}/a.phlox{suffix}")
    record(theirs / "a.phlox")
    assert untouched(precious)


def test_a_folder_that_becomes_a_link_is_not_followed(theirs, precious):
    """The user nobody may change the name of the folder at any time; files that only root may write stay as they are."""
    os.symlink(precious.parent, theirs / "way")
    for output in ("a.phlox", "a.svg", "a.html"):
        done = record(theirs / "way" / output)
        assert done.returncode != 0 and "cannot write" in done.stderr, done.stderr
    assert untouched(precious)


def test_links_that_come_and_go_while_it_records(theirs, precious):
    """../shared/cases/attack/sudo_chown_race.c, for every file next to it."""
    race = subprocess.Popen([sys.executable, "-c", """
import os, sys
os.setgid(65534), os.setuid(65534)
os.chdir(sys.argv[1])
while True:
    for end in ("-shm", "-wal", "-journal", ""):
        try:
            os.rename("a.phlox" + end, "away")
            os.symlink(sys.argv[2], "a.phlox" + end)
            os.unlink("a.phlox" + end)
        except OSError:
            pass
""", str(theirs), str(precious)])
    try:
        for _ in range(4):
            record(theirs / "a.phlox")
            assert untouched(precious)
    finally:
        race.kill()
        race.wait()


def test_what_is_written_for_a_user_is_theirs(theirs):
    assert record(theirs / "a.phlox").returncode == 0
    for output in ("b.svg", "b.html"):
        done = sudo("export", theirs / "a.phlox", "-o", theirs / output)
        assert done.returncode == 0, done.stderr
    done = sudo("snapshot", theirs / "a.phlox", "-o", theirs / "c.phlox")
    assert done.returncode == 0, done.stderr
    assert sorted(file.name for file in theirs.iterdir()) == ["a.phlox", "b.html", "b.svg", "c.phlox"]
    assert all(of_nobody(file) for file in theirs.iterdir())


def test_root_writes_for_a_user_where_root_alone_may_put_links(precious):
    done = record(precious.parent / "a.phlox")
    assert done.returncode == 0, done.stderr
    assert of_nobody(precious.parent / "a.phlox")


def test_a_page_with_source_is_for_its_owner_alone(tmp_path):
    app = tmp_path / "app.py"
    app.write_text("def hot():\n    return sum(range(1000))\nfor _ in range(30000): hot()\n")
    done = phlox("record", "--source", "-o", tmp_path / "a.html", "--", "/usr/bin/python3", app)
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE((tmp_path / "a.html").stat().st_mode) == 0o600


def named_program(file):
    """A program whose code says that it is of this file."""
    return f"code = compile('import time\\nend = time.monotonic() + 60\\nprint(1, flush=True)\\nwhile time.monotonic() < end: sum(range(200))\\n', {str(file)!r}, 'exec')\nexec(code)"


@pytest.fixture
def named(precious):
    """A program of the user nobody; its code claims to come from a file that only root may read."""
    secret = precious.parent / "settings.py"
    secret.write_text("\n".join(f"SECRET = 'nobody is to see this, line {i}'" for i in range(9)))
    started = subprocess.Popen(["/usr/bin/python3", "-c", named_program(secret)], stdout=subprocess.PIPE, user=NOBODY, group=NOBODY, extra_groups=[])
    assert started.stdout.readline() == b"1\n"
    yield started.pid
    started.kill()
    started.wait()


def test_what_a_program_names_is_read_with_its_rights(named, tmp_path):
    output = tmp_path / "a.phlox"
    for _ in range(5):
        done = phlox("dump", "-p", named)
        assert done.returncode == 0 and "settings.py" in done.stdout, done.stderr
        assert "nobody is to see" not in done.stdout
    assert phlox("record", "-p", named, "-d", "0.5", "-o", output).returncode == 0
    said = phlox("report", "--source", output)
    assert said.returncode == 0 and "settings.py" in said.stdout and "nobody is to see" not in said.stdout


def test_an_old_recording_of_another_user_shows_what_all_may_read(named, tmp_path):
    output = tmp_path / "a.phlox"
    assert phlox("record", "-p", named, "-d", "0.5", "-o", output).returncode == 0
    with sqlite3.connect(output) as database:
        database.execute("DELETE FROM meta WHERE key LIKE 'source_rights.%'")
    assert "nobody is to see" not in phlox("report", "--source", output).stdout


@pytest.mark.parametrize("suffix", ["-shm", "-wal", "-journal"])
def test_a_pipe_next_to_a_recording_blocks_nothing(tmp_path, suffix):
    output = tmp_path / "a.phlox"
    assert phlox("record", "-o", output, "--", "/usr/bin/python3", "-c", "sum(range(30000000))").returncode == 0
    os.mkfifo(f"{output}{suffix}")
    begun = time.monotonic()
    phlox("report", output, timeout=20)
    phlox("record", "-o", output, "--", "/usr/bin/python3", "-c", "sum(range(30000000))", timeout=20)
    assert time.monotonic() - begun < 20


def test_the_cache_of_root_is_not_in_the_home_of_another(theirs, tmp_path):
    """As `sudo -E` leaves the variables."""
    environment = {name: value for name, value in os.environ.items() if name != "XDG_CACHE_HOME"}
    done = phlox("record", "--native", "-o", tmp_path / "a.phlox", "--", "/usr/bin/python3", "-c", "sum(range(9000000))",
                 env={**environment, "HOME": str(theirs)})
    assert done.returncode == 0, done.stderr
    assert not (theirs / ".cache").exists()


def test_nor_in_a_cache_of_another_in_a_home_of_root(theirs, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "XDG_CACHE_HOME"}
    (tmp_path / ".cache").mkdir()
    os.chown(tmp_path / ".cache", theirs.stat().st_uid, -1)
    done = phlox("record", "--native", "-o", tmp_path / "a.phlox", "--", "/usr/bin/python3", "-c", "sum(range(9000000))",
                 env={**environment, "HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert os.listdir(tmp_path / ".cache") == []
