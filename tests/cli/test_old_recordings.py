"""Recordings that released versions wrote (tests/recording/old/VERSION) are read by this one, in every view, with the same sums."""
import json
import shutil

import pytest
from cli_support import ROOT, phlox

OLD = sorted((ROOT / "tests/recording/old").glob("*/*.phlox"))
# As the version itself reported them; the total is wall time (ns).
SUMS = json.loads((ROOT / "tests/recording/old/sums.json").read_text())
FORMATS = ("svg", "html", "collapsed", "speedscope", "pprof", "firefox", "perfetto", "chrome", "callgrind", "pstats", "jsonl", "csv")


def name_of(path):
    return f"{path.parent.name}/{path.name}"


@pytest.fixture(params=OLD, ids=name_of)
def old(request, tmp_path):
    shutil.copy(request.param, tmp_path / "old.phlox")
    return request.param, tmp_path / "old.phlox"


def sums_of(path):
    done = phlox("report", "--json", "--show", "everything", path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    return {"total": report["total"], "samples": report["samples"], "threads": report["seen"]["threads"]}


def test_there_are_some():
    assert {name_of(path) for path in OLD} == set(SUMS)


def test_its_sums_are_those_of_then(old):
    path, copy = old
    assert sums_of(copy) == SUMS[name_of(path)]


def test_every_view_of_it_works(old, tmp_path):
    _, copy = old
    for command, *more in (("report",), ("diff", copy), ("top", "-n", "1"), ("snapshot", "-o", tmp_path / "copy.phlox")):
        done = phlox(command, copy, *more)
        assert done.returncode == 0, (command, done.stderr)
    for name in FORMATS:
        done = phlox("export", copy, "-f", name, "-o", tmp_path / f"out.{name}")
        assert done.returncode == 0 and (tmp_path / f"out.{name}").stat().st_size > 0, (name, done.stderr)
