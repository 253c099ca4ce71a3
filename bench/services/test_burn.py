"""For pytest-xdist: tests that compute."""
import os

import pytest


def crunch(count):
    total = 0
    for _ in range(count):
        total += sum(j * j for j in range(100))
    return total


@pytest.mark.parametrize("turn", range(int(os.environ.get("TESTS", "24"))))
def test_crunch(turn):
    assert crunch(30000) > 0
