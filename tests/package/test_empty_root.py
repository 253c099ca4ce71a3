"""The static program (make static) in a root that has nothing in it: it looks at a program, resolves names and sends by TLS."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from package_support import BUSY, ROOT

STATIC = pathlib.Path(os.environ.get("PHLOX_STATIC") or ROOT / "build/release/phlox-static")
pytestmark = [pytest.mark.live, pytest.mark.skipif(not STATIC.exists(), reason="not built: make static"),
              pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a program another root")]


@pytest.fixture
def target():
    mark = f"empty-root-{os.getpid()}"
    with subprocess.Popen([sys.executable, "-c", BUSY + "print(1, flush=True)\nhot(300)", mark], stdout=subprocess.PIPE) as busy:
        busy.stdout.readline()
        yield busy.pid, mark
        busy.kill()


def in_empty_root(folder, *words):
    """The program's words, run in a root that has it and /proc."""
    (folder / "proc").mkdir()
    shutil.copy(STATIC, folder / "phlox")
    script = 'mount --rbind /proc "$0/proc" && exec chroot "$0" /phlox "$@"'
    return subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", script, folder, *map(str, words)], capture_output=True,
                          text=True, timeout=120)


def test_it_lacks_nothing():
    said = subprocess.run([STATIC, "--version"], capture_output=True, text=True, check=True).stdout
    assert re.search(r"^features: .*", said, re.M) and " no (" not in said, said


def test_it_dumps_a_program(target, tmp_path):
    done = in_empty_root(tmp_path, "dump", "--json", "-p", target[0])
    assert done.returncode == 0, done.stderr
    assert "hot" in json.dumps(json.loads(done.stdout))


def test_it_records_native_stacks(target, tmp_path):
    done = in_empty_root(tmp_path, "record", "--native", "-d", "1", "-o", "/a.phlox", "-p", target[0])
    assert done.returncode == 0, done.stderr
    report = subprocess.run([STATIC, "report", tmp_path / "a.phlox"], capture_output=True, text=True, check=True).stdout
    assert "hot" in report, report


def test_it_resolves_names_and_proves_certificates(target, tmp_path):
    script = ROOT / "tests/package/empty_root.py"
    done = subprocess.run(["unshare", "--net", "--mount", "--propagation", "private", sys.executable, script, STATIC, tmp_path / "root", target[1]],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    said = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    assert said == dict.fromkeys(("by address", "by /etc/hosts", "by DNS", "SSL_CERT_FILE", "its usual place"), "arrived"), done.stdout
