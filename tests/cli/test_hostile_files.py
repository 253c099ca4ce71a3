"""Recordings and programs of an attacker who wants phlox to run, read or show what it should not."""
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess

import pytest
from cli_support import PHLOX, phlox


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    output = tmp_path_factory.mktemp("hostile") / "a.phlox"
    done = phlox("record", "-o", output, "--", "/usr/bin/python3", "-c", "sum(range(6000000))")
    assert done.returncode == 0, done.stderr
    return output


def changed(recording, folder, *statements):
    copy = folder / "b.phlox"
    shutil.copy(recording, copy)
    with sqlite3.connect(copy) as database:
        for statement in statements:
            database.execute(statement)
    return copy


HOSTILE = {
    # The changes come first: they would run the triggers.
    "trigger": ["DELETE FROM meta WHERE key = 'end_monotonic_ns'", "UPDATE process SET end_ns = 0",
                "CREATE TRIGGER t AFTER UPDATE ON process BEGIN INSERT INTO meta SELECT hex(randomblob(9)), 'x' FROM frame a, frame b, frame c, frame d, frame e; END",
                "CREATE TRIGGER l AFTER INSERT ON event BEGIN INSERT INTO meta SELECT hex(randomblob(9)), 'x' FROM frame a, frame b, frame c, frame d, frame e; END"],
    "computed column": ["ALTER TABLE meta RENAME TO old", "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT AS (hex(zeroblob(5000000))) VIRTUAL)", "INSERT INTO meta (key) SELECT key FROM old",
                        "DROP TABLE old"],
    "default": ["ALTER TABLE state ADD COLUMN more TEXT DEFAULT 'x'"],
    "view of its own": ["CREATE VIEW mine AS SELECT * FROM frame a, frame b"],
    "index of its own": ["CREATE INDEX mine ON frame (abs(line))"],
    "virtual table": ["CREATE VIRTUAL TABLE mine USING rtree (id, a, b)"],
}


@pytest.mark.parametrize("what", HOSTILE)
def test_nothing_in_a_recording_is_run(recording, tmp_path, what):
    copy = changed(recording, tmp_path, *HOSTILE[what])
    labels = tmp_path / "labels.tsv"
    labels.write_text("0\t1\tone\n")
    for arguments in (("report", copy), ("snapshot", copy, "-o", tmp_path / "c.phlox"), ("label", copy, labels), ("export", copy, "-o", tmp_path / "c.svg")):
        done = phlox(*arguments, timeout=20)
        assert done.returncode not in (0, -6) and "is damaged" in done.stderr, (arguments, done.stderr)
    assert not (tmp_path / "c.phlox").exists()


NAMES = {"escape": b"\x1b]0;title\x07", "c1": "\u009b31m".encode(), "turned": "\u202egnp".encode(), "invalid": b"\xff\xfe", "del": b"\x7f"}
RAW = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]")


def raw(output):
    output.decode()
    return RAW.search(output)


@pytest.mark.parametrize("name", NAMES)
def test_no_name_steers_a_terminal(tmp_path, name):
    folder = os.fsencode(tmp_path) + b"/" + NAMES[name]
    os.mkdir(folder)
    missing, text = folder + b"/none.phlox", folder + b"/text.phlox"
    pathlib.Path(os.fsdecode(text)).write_text("no recording")
    for arguments in (["report", missing], ["report", text], ["export", missing, "-o", folder + b"/a.svg"], ["record", "-o", folder + b"/no/a.phlox", "--", "true"],
                      ["record", "--", folder + b"/no"], ["import", missing], ["snapshot", missing], ["label", missing, text], ["diff", missing, text]):
        done = subprocess.run([PHLOX, *arguments], capture_output=True, timeout=60)
        assert done.returncode != 0 and done.stderr, arguments
        assert raw(done.stdout + done.stderr) is None, (arguments, done.stderr)


def test_json_has_no_raw_controls(tmp_path):
    program = tmp_path / "app.py"
    program.write_text("import sys, time\ndef f(): sum(range(200))\nname = 'a\\u009bb\\x7fc\\u202ed'\n"
                       "f.__code__ = f.__code__.replace(co_name=name, **({'co_qualname': name} if hasattr(f.__code__, 'co_qualname') else {}))\n"
                       "end = time.monotonic() + 0.5\nwhile time.monotonic() < end: f()\n")
    assert phlox("record", "-o", tmp_path / "a.phlox", "--", "/usr/bin/python3", program).returncode == 0
    done = subprocess.run([PHLOX, "report", "--json", tmp_path / "a.phlox"], capture_output=True, timeout=60)
    assert done.returncode == 0 and raw(done.stdout) is None and rb"\u009b" in done.stdout


def test_cells_are_no_formulas(tmp_path):
    program = tmp_path / "app.py"
    program.write_text("import time\ndef f(): sum(range(200))\nname = '=cmd|x'\n"
                       "f.__code__ = f.__code__.replace(co_name=name, **({'co_qualname': name} if hasattr(f.__code__, 'co_qualname') else {}), co_filename='@sum')\n"
                       "end = time.monotonic() + 0.5\nwhile time.monotonic() < end: f()\n")
    assert phlox("record", "-o", tmp_path / "a.phlox", "--", "/usr/bin/python3", program).returncode == 0
    assert phlox("export", tmp_path / "a.phlox", "-o", tmp_path / "a.csv").returncode == 0
    text = (tmp_path / "a.csv").read_text()
    assert "'=cmd" in text and not re.search(r'(?:^|[,"])[=+@]', text, re.M), text[:2000]
