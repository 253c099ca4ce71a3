"""Each test that takes `python` runs on every interpreter; `record` records a process with the built phlox. All are `live`."""
import subprocess

import pytest

from live_support import INTERPRETERS, PHLOX, Recording


def pytest_collection_modifyitems(items):
    for item in items:  # of the whole session
        if item.nodeid.startswith("tests/live/"):
            item.add_marker(pytest.mark.live)


def pytest_generate_tests(metafunc):
    if "python" in metafunc.fixturenames:
        # @since(3, 8): the program of this test is in a language that older ones do not speak.
        since = getattr(metafunc.function, "since", (2, 7))
        chosen = [p for p in INTERPRETERS if (p.major, p.minor) >= since]
        if getattr(metafunc.function, "once_a_version", False):
            chosen = list({(p.major, p.minor, p.flags): p for p in reversed(chosen)}.values())[::-1]
        metafunc.parametrize("python", chosen, ids=[p.name for p in chosen])


@pytest.fixture
def record(tmp_path):
    """record(pid, seconds, *options) -> Recording. Without a way of its own not from inside the kernel, which has tests of its own."""
    def run(pid, seconds, *options, expect=0):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.phlox"
        way = [] if {"--way", "--hands-off"} & set(options) else ["--way", "no-kernel"]
        done = subprocess.run([PHLOX, "record", *way, "-p", str(pid), "-d", str(seconds), "-o", str(path), *map(str, options)],
                              capture_output=True, text=True, timeout=seconds + 60)
        assert done.returncode == expect, done.stderr
        return Recording(path)
    return run
