"""The small form of `make bench BENCH=conclusions`: a few of its programs; nothing that phlox says of them is wrong."""
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from host_facts import node_inflates  # noqa: E402
from harness import conclusion_judges as judges  # noqa: E402
from harness.conclusion_cases import CASES  # noqa: E402
from harness.conclusions import Bench  # noqa: E402

PHLOX = pathlib.Path(os.environ.get("PHLOX_BUILD_DIR", ROOT / "build" / "dev")) / "phlox"


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return Bench(str(PHLOX), sys.executable, str(tmp_path_factory.mktemp("conclusions")), 0.4)


@pytest.mark.live
@pytest.mark.skipif(not node_inflates(), reason="the page's words need Node.js 18")
@pytest.mark.parametrize("case", [case for case in CASES if case.small], ids=lambda case: case.name.replace(" ", "-"))
def test_nothing_that_is_concluded_is_wrong(bench, case):
    row = bench.judge(case)
    assert row["verdict"] != judges.WRONG, [claim for claim in row["claims"] if claim[1] == judges.WRONG]
    assert any(verdict == judges.RIGHT for _, verdict, _ in row["claims"])
