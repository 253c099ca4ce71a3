"""Servers, pools and runners of tests, each whole in one recording: every process is there, and its CPU time is what the kernel charged to it.
bench/run.py services measures the same for longer."""
import pathlib
import subprocess
import sys

import pytest

from cli_support import PHLOX, ROOT

sys.path.insert(0, str(ROOT / "bench"))
from harness import services  # noqa: E402

pytestmark = [pytest.mark.live, pytest.mark.alone]
NEEDS = {"gunicorn": "gunicorn", "uwsgi": None, "celery": "celery", "pool": None, "xdist": "xdist", "loky": "joblib"}
# The master of a server, the trackers of loky and the parent of a pool, in addition to the workers.
WORKERS = {"gunicorn": 4, "uwsgi": 2, "celery": 2, "pool": 10, "xdist": 2, "loky": 2}


@pytest.mark.parametrize("name", services.NAMES)
def test_a_service_is_whole_in_one_recording(name, tmp_path):
    python = services.python_of()
    if NEEDS[name] and subprocess.run([python, "-c", f"import {NEEDS[name]}"], capture_output=True).returncode != 0:
        pytest.skip(f"no {NEEDS[name]} here (tools/requirements-test.txt)")
    if name == "uwsgi" and not pathlib.Path(services.UWSGI).exists():
        pytest.skip("uWSGI could not be had on this machine (tools/get-pythons.sh names it)")
    result = getattr(services.Services(PHLOX, python, str(tmp_path), 3), name)()
    assert len(result["processes"]) > WORKERS[name], result
    assert result["missing"] == [], result
    # 3 % as measured over a while (bench/results/tables.md); a few ticks of a start that is not seen weigh more in three seconds.
    for one in result["processes"]:
        if one["kernel_s"] is not None and one["kernel_s"] >= 0.1 and name != "pool":
            assert abs(one["phlox_s"] - one["kernel_s"]) < 0.03 * one["kernel_s"] + 0.04, one
    assert result["phlox_s"] > 0.85 * result["kernel_s"], result
    if name == "pool":
        assert result["children_seen"] <= result["children"] and result["children_seen"] > result["children"] / 2, result["said"]
