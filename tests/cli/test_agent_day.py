"""A day of phlox agent, in a minute (agent_day.py)."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import agent_day
from cli_support import PHLOX, PYTHON


@pytest.mark.live
@pytest.mark.alone
@pytest.mark.skipif(os.geteuid() != 0 or not agent_day.COLLECTOR.exists() or not all(map(shutil.which, ("cc", "unshare", "mount"))),
                    reason="needs root, cc, and the collector of tools/get-otelcol.sh")
def test_nothing_is_lost_and_the_agent_stays_small(tmp_path):
    done = subprocess.run(["unshare", "-m", sys.executable, agent_day.__file__, "--phlox", PHLOX, "--python", PYTHON, "--minutes", "1", "--interval", "1"],
                          capture_output=True, text=True, timeout=600, check=False, env={**os.environ, "TMPDIR": str(tmp_path)}, cwd=pathlib.Path(agent_day.__file__).parent)
    checks = [json.loads(line) for line in done.stdout.splitlines()]
    # At its start it reads all programs; the shares are those of an hour.
    failed = [one for one in checks if not one["passed"] and one["check"] not in ("its CPU is small", "the programs' loss is small")]
    assert len(checks) == 10 and not failed, done.stdout + done.stderr
