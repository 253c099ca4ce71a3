"""Why threads that can run have no CPU: a quota of their control group."""
import contextlib
import json
import os
import pathlib
import sqlite3
import subprocess
import sys

import pytest

from live_support import PHLOX
from test_kernel import possible

BURN = "import hashlib, os\nprint('ready', os.getpid(), flush=True)\nwhile True: hashlib.sha256(b'x' * 100000)"


@pytest.fixture
def tight_group():
    """The file that moves a process into a control group which may use half a CPU."""
    for root, quota, words in (("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "50000"), ("/sys/fs/cgroup", "cpu.max", "50000 100000")):
        group = pathlib.Path(root) / f"phlox_test_{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / quota).write_text(words)
            yield group / "cgroup.procs"
            return
        except OSError:
            continue
        finally:
            group.rmdir()
    pytest.skip("no control group of the CPU controller can be made here")


def test_on_how_many_cpus_it_may_run_is_kept(tmp_path):
    one = min(os.sched_getaffinity(0))
    with subprocess.Popen(["taskset", "-c", str(one), sys.executable, "-c", BURN], stdout=subprocess.PIPE, text=True) as target:
        try:
            assert target.stdout.readline().startswith("ready")
            subprocess.run([PHLOX, "record", "-p", str(target.pid), "-d", "0.3", "-o", tmp_path / "a.phlox"], check=True, capture_output=True)
        finally:
            target.kill()
            target.wait()
    with contextlib.closing(sqlite3.connect(tmp_path / "a.phlox")) as recording:
        assert recording.execute("SELECT value FROM meta WHERE key = 'cpus_allowed'").fetchall() == [("1",)]


@pytest.mark.parametrize("mode", [(), ("--mode", "kernel")], ids=["looks", "kernel"])
def test_a_quota_that_is_used_up_is_named(mode, tight_group, tmp_path):
    if mode and not possible():
        pytest.skip("phlox doctor: --mode kernel cannot be had here")
    with subprocess.Popen([sys.executable, "-c", BURN], stdout=subprocess.PIPE, text=True) as target:
        try:
            assert target.stdout.readline().startswith("ready")
            tight_group.write_text(str(target.pid))
            recording = tmp_path / "a.phlox"
            subprocess.run([PHLOX, "record", *mode, "-p", str(target.pid), "-d", "2", "-o", recording], check=True, capture_output=True)
        finally:
            target.kill()
            target.wait()
    said = json.loads(subprocess.run([PHLOX, "report", "--json", recording], check=True, capture_output=True).stdout)
    (finding,) = [one for one in said["findings"] if one["kind"] == "cpu_wait"]
    assert finding["names"]["because"] == "quota"
    assert finding["numbers"]["quota_cpus"] == 0.5
    # On a busy host, other programs leave it less than its quota in most periods.
    assert finding["numbers"]["quota_used_up"] >= 1
    assert 0.2 < finding["numbers"]["share"] < 0.8
