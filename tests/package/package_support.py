"""The package of the tree, with the phlox that was built for the tests; PHLOX_BIN names another."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PHLOX_BUILD_DIR", ROOT / "build" / "dev"))
PHLOX = os.environ.get("PHLOX_BIN", str(BUILD / "phlox"))

BUSY = """
import time
def hot(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(i * i for i in range(300))
"""


def interpreters():
    """One of each version that the package supports, ordinary builds."""
    listed = os.environ.get("PHLOX_PYTHONS", "")
    found = {}
    if listed.endswith(".list"):
        for row in pathlib.Path(listed).read_text().splitlines():
            _, path, _, version, flags = row.split("\t")
            minor = int(version.split(".")[1])
            if version.startswith("3.") and minor >= 9 and flags == "-" and minor not in found and is_usable(path):
                found[minor] = path
    return [pytest.param(found[minor], id=f"3.{minor}") for minor in sorted(found)] or [sys.executable]


def is_usable(python):
    """It was built with SQLite, and is not in a root of its own, where neither this tree nor our phlox is."""
    return subprocess.run([python, "-c", "import sqlite3, ctypes, os, sys; sys.exit(str(os.stat('/').st_ino) != sys.argv[1])",
                           str(os.stat("/").st_ino)], capture_output=True).returncode == 0


def environment():
    return {**os.environ, "PHLOX_BIN": PHLOX, "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1"}


def run(python, program, *arguments, **options):
    return subprocess.run([python, *([] if program is None else ["-c", program]), *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          env=environment(), **options)


def said(done):
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout.splitlines()[-1])
