"""A test that hangs fails, and the run goes on."""
import signal

import pytest

LONGEST = 600  # seconds


@pytest.fixture(autouse=True)
def ends():
    def hangs(*_):
        pytest.fail(f"still not over after {LONGEST} s")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(LONGEST)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
