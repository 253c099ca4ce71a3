"""Each test that takes `python` runs on every interpreter of PHLOX_PYTHONS; `record` records a process with the built phlox. All tests are `live`."""
import os
import subprocess

import pytest

from live_support import CACHE, INTERPRETERS, PHLOX, SLOWER, Recording


def pytest_collection_modifyitems(items):
    for item in items:  # items are those of the whole session
        if item.nodeid.startswith("tests/live/"):
            item.add_marker(pytest.mark.live)


def of_a_version(python):
    return python.major, python.minor, python.flags


def of_a_family(python):
    """Frame formats: objects up to 3.10, later one per version. Debug builds move fields but do not change
    the format: their rows of the version table are tested on all (test_truth, test_matrix)."""
    return python.major, max(python.minor, 10), python.flags.strip("d-")


def pytest_generate_tests(metafunc):
    if "python" in metafunc.fixturenames:
        # @since(3, 8): the test's program does not run on older versions.
        since = getattr(metafunc.function, "since", (2, 7))
        chosen = [p for p in INTERPRETERS if (p.major, p.minor) >= since]
        every = os.environ.get("PHLOX_EVERY_VERSION")
        few = getattr(metafunc.function, "few_pythons", False)
        if few or getattr(metafunc.function, "once_a_version", False):
            kind = of_a_version if every else of_a_family
            chosen = list({kind(p): p for p in reversed(chosen)}.values())[::-1]
        if few and not every:
            plain = [p for p in chosen if p.flags == "-"]
            chosen = plain[:1] + [max(plain[1:], key=lambda p: p.minor)] if plain[1:] else chosen[:1]
        metafunc.parametrize("python", chosen, ids=[p.name for p in chosen])


@pytest.fixture
def loops(monkeypatch):
    """Provides trio and anyio (3.10 and later), and uvloop (the system's Python), to programs that are started."""
    monkeypatch.setenv("PYTHONPATH", str(CACHE / "loops"))


@pytest.fixture
def record(tmp_path):
    """record(pid, seconds, *options) -> Recording. By default without the capture inside the kernel, which has its own tests."""
    def run(pid, seconds, *options, expect=0):
        seconds *= SLOWER
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.phlox"
        mode = [] if {"--mode", "--hands-off"} & set(options) else ["--mode", "no-kernel"]
        done = subprocess.run([PHLOX, "record", *mode, "-p", str(pid), "-d", str(seconds), "-o", str(path), *map(str, options)],
                              capture_output=True, text=True, timeout=seconds + 60)
        assert done.returncode == expect, done.stderr
        return Recording(path)
    return run
