"""tools/run_tests.py on a build tree made of scripts: what ran is counted, what was tried again is named, nothing is lost."""
import os
import pathlib
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "tools" / "run_tests.py"
# What a GoogleTest binary does with --gtest_output, --gtest_filter and the shards, for tests whose first and later results are given.
BINARY = """#!{python}
import os, pathlib, sys
TESTS = {tests!r}  # name: (live, how it ends the first time, and later)
options = dict(word.split("=", 1) for word in sys.argv[1:])
chosen = options.get("--gtest_filter", ":".join(TESTS)).split(":")
shard, shards = int(os.environ.get("GTEST_SHARD_INDEX", 0)), int(os.environ.get("GTEST_TOTAL_SHARDS", 1))
cases, failed = "", False
for number, (name, (live, *ends)) in enumerate(TESTS.items()):
    if name not in chosen or number % shards != shard:
        continue
    been = pathlib.Path(__file__ + "." + name)
    end = ends[been.exists()]
    been.touch()
    print("[ RUN      ]", name, flush=True)
    if end == "dies":
        os.abort()
    failed |= end == "fails"
    suite, test = name.split(".")
    said = '<failure message="the reason"/>' if end == "fails" else ""
    mark = '<properties><property name="live" value="yes"/></properties>' if live else ""
    cases += f'<testcase classname="{{suite}}" name="{{test}}" status="run">{{said}}{{mark}}</testcase>'
pathlib.Path(options["--gtest_output"][4:]).write_text(f"<testsuites><testsuite>{{cases}}</testsuite></testsuites>")
sys.exit(failed)
"""
PASSES, FAILS, DIES = ["passes"] * 2, ["fails"] * 2, ["dies"] * 2
MENDS = ["fails", "passes"]


def run(folder, rooms, only, *options):
    (folder / "tests").mkdir(exist_ok=True)
    for room, tests in rooms.items():
        path = folder / "tests" / f"{room}_tests"
        path.write_text(BINARY.format(python=sys.executable, tests=tests))
        path.chmod(0o755)
    done = subprocess.run([PROGRAM, "--only", only, *options, folder], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PHLOX_VENV": str(pathlib.Path(sys.executable).parents[1]), "PHLOX_PYTHONS": "/usr/bin/python3"})
    return done.returncode, done.stdout.splitlines(), done.stdout + done.stderr


def test_rooms_are_added_up(tmp_path):
    status, lines, _ = run(tmp_path, {"elf": {"A.a": (False, *PASSES)}, "memory": {"B.b": (False, *PASSES), "B.c": (True, *PASSES)}}, "elf,memory")
    assert (status, lines[-1]) == (0, "3 passed, 0 failed")


def test_shards_of_a_room_are_all_of_it(tmp_path):
    status, lines, _ = run(tmp_path, {"unwind": {f"A.a{n}": (False, *PASSES) for n in range(7)}}, "unwind")
    assert (status, lines[-1]) == (0, "7 passed, 0 failed")


def test_a_live_test_gets_one_more_try_and_is_named(tmp_path):
    status, lines, _ = run(tmp_path, {"elf": {"A.a": (True, *MENDS), "A.b": (False, *PASSES)}}, "elf")
    assert (status, lines[-1]) == (0, "2 passed, 0 failed; 1 passed only when tried again: A a")


@pytest.mark.parametrize("test", [(True, *FAILS), (False, *MENDS)], ids=["live, twice", "not live"])
def test_a_failure_is_one(tmp_path, test):
    status, lines, said = run(tmp_path, {"elf": {"A.a": test, "A.b": (False, *PASSES)}}, "elf")
    assert (status, lines[-2:]) == (1, ["failed: A a", "1 passed, 1 failed"])
    assert "the reason" in said


def test_a_room_that_dies_fails_with_its_last_words(tmp_path):
    status, lines, said = run(tmp_path, {"elf": {"A.a": (False, *PASSES), "A.b": (True, *DIES)}, "memory": {"B.b": (False, *PASSES)}}, "elf,memory")
    assert status == 1 and lines[-1] == "1 passed, 1 failed"
    assert "[ RUN      ] A.b" in said


def test_a_missing_directory_is_reported(tmp_path):
    status, _, said = run(tmp_path, {}, "cellar")
    assert status == 1 and "no tests of cellar" in said


def test_of_pytest_too_only_what_is_live_is_tried_again_and_the_total_counts_all(tmp_path):
    """In its own tree: the program next to its tests."""
    tree = tmp_path / "tree"
    (tree / "tools").mkdir(parents=True)
    for name in ("run_tests.py", "test_totals.py"):
        (tree / "tools" / name).symlink_to(PROGRAM.with_name(name))
    (tree / "tests" / "room").mkdir(parents=True)
    (tree / "pyproject.toml").write_text((PROGRAM.parents[1] / "pyproject.toml").read_text())
    (tree / "tests" / "room" / "test_some.py").write_text("""
import pathlib, pytest
def first(name):
    try:
        pathlib.Path(__file__ + name).touch(exist_ok=False)
        return True
    except FileExistsError:
        return False
def test_good(): pass
def test_not_live(): assert not first("a")
@pytest.mark.live
def test_live(): assert not first("b")
@pytest.mark.live
@pytest.mark.alone
def test_alone(): assert not first("c")
@pytest.mark.alone
def test_skipped(): pytest.skip("for a reason")
""")
    (tree / "build").mkdir()
    done = subprocess.run([sys.executable, tree / "tools" / "run_tests.py", "--only", "room", tree / "build"], capture_output=True, text=True,
                          timeout=120, env={**os.environ, "PHLOX_VENV": str(pathlib.Path(sys.executable).parents[1]), "PHLOX_PYTHONS": "/usr/bin/python3"})
    assert done.returncode == 1
    room = "tests.room.test_some"
    assert done.stdout.splitlines()[-3:] == [
        f"skipped: {room} test_skipped", f"failed: {room} test_not_live",
        f"3 passed, 1 failed, 1 skipped; 2 passed only when tried again: {room} test_alone, {room} test_live"]


def test_of_each_version_and_kind_one_interpreter_is_taken(tmp_path):
    sys.path.insert(0, str(PROGRAM.parent))
    import run_tests

    listed = tmp_path / "pythons.list"
    rows = [("pyenv-3.11.7", "3.11.7", "-"), ("system", "3.11.2", "-"), ("debian-3.9", "3.9.2", "-"), ("debian-3.9-dbg", "3.9.2", "d"),
            ("pyenv-3.10.13", "3.10.13", "-"), ("standalone-3.10.16", "3.10.16", "-"), ("3.13t", "3.13.5", "t"), ("trixie-3.13", "3.13.5", "-")]
    listed.write_text("".join(f"{name}\t/p/{name}\tapt\t{version}\t{flags}\n" for name, version, flags in rows))
    taken = [line.split("\t")[0] for line in open(run_tests.differing_pythons(listed, tmp_path))]
    assert sorted(taken) == ["3.13t", "debian-3.9", "debian-3.9-dbg", "standalone-3.10.16", "system", "trixie-3.13"]
