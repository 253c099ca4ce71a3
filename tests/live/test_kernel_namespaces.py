"""Kernel sampling by a recorder in a PID namespace of its own, as in a container: threads and processes have other numbers there than the kernel's."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

from live_support import INTERPRETERS, PHLOX
from test_kernel import possible

HERE = pathlib.Path(__file__).parent
ALONE = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"]
# Stacks, names, times, births, ends, wakers and wait targets: each goes by numbers of threads or processes.
TESTS = ["test_kernel.py::test_families_of_functions_never_mix", "test_kernel.py::test_all_of_a_thread_s_time_is_there",
         "test_kernel.py::test_what_a_program_starts_is_recorded_too", "test_kernel_births.py::test_a_child_that_becomes_another_program_is_recorded_as_that",
         "test_kernel_waits.py::test_wakers", "test_kernel_waits.py::test_what_a_wait_was_for"]

FEW = [version for version in ("3.11", "3.14") if any(version in python.name for python in INTERPRETERS)] or [python.name for python in INTERPRETERS]

pytestmark = pytest.mark.skipif(not possible() or subprocess.run([*ALONE, "true"], capture_output=True).returncode != 0,
                                reason="no kernel sampling, or no PID namespaces here")


@pytest.mark.parametrize("depth", [1, 3])
def test_the_truths_hold_in_a_pid_namespace(tmp_path, depth):
    script = tmp_path / "tests.sh"
    script.write_text('[ "$(cat /proc/self/comm)" = cat ] && exec "$@"')
    # The name of a Unix socket has room for 108 bytes, so the inner tests get a short folder.
    with tempfile.TemporaryDirectory(prefix="pid", dir="/tmp") as inside:
        command = [*ALONE * depth, "sh", script, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--override-ini=addopts=",
                   f"--basetemp={inside}/t", "-k", " or ".join(FEW), *(HERE / test for test in TESTS)]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=HERE.parent.parent, env={**os.environ, "PYTEST_ADDOPTS": ""})
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed and int(passed.group(1)) >= len(TESTS) and "skipped" not in done.stdout, done.stdout[-2000:]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become a user with two capabilities")
def test_bpf_and_perfmon_are_enough(tmp_path):
    tmp_path.chmod(0o777)
    for folder in tmp_path.parents:
        if folder != pathlib.Path("/tmp") and folder.is_relative_to("/tmp"):
            folder.chmod(0o755)
    shutil.copy(PHLOX, tmp_path / "phlox")
    capabilities = "+bpf,+perfmon,+sys_ptrace"
    with subprocess.Popen(["/usr/bin/python3", "-c", "while True: sum(range(1000))"]) as program:
        try:
            done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", f"--inh-caps={capabilities}", f"--ambient-caps={capabilities}",
                                   tmp_path / "phlox", "record", "--mode", "kernel", "-p", str(program.pid), "-d", "1", "-o", tmp_path / "a.phlox"],
                                  capture_output=True, text=True, cwd=tmp_path)
        finally:
            program.kill()
    assert done.returncode == 0 and "in the kernel (BPF)" in done.stderr, done.stderr
