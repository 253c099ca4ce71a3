"""pytest --phlox: one recording of the test run, with the tests as labels of their time.

    pytest --phlox                                          # pytest.phlox
    phlox report --label test_slow pytest.phlox             # what one test does
    phlox export --by label pytest.phlox -o tests.svg       # all of them, side by side

The recorder is a process beside. With pytest-xdist each worker is recorded, into a file of its own.
"""
from __future__ import annotations

import os
import tempfile
import time
from typing import TYPE_CHECKING, Any, Generator, List, Optional, Tuple

import pytest

if TYPE_CHECKING:
    from ._recorder import Recorder

_DEFAULT = "pytest.phlox"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("phlox", "a recording of the test run (phlox)")
    group.addoption("--phlox", nargs="?", const=_DEFAULT, metavar="FILE", help=f"record the run into FILE, NAME.phlox (default: {_DEFAULT})")
    group.addoption("--phlox-rate", metavar="HZ", help="looks a second, as phlox record -r")
    group.addoption("--phlox-native", action="store_true", help="frames of C, C++ and Rust too")


def pytest_configure(config: pytest.Config) -> None:
    output: Optional[str] = config.getoption("--phlox")
    if output is None or config.option.collectonly or config.option.help:
        return
    # nargs="?" takes the next word, which may have been meant for pytest.
    if not output.endswith(".phlox"):
        raise pytest.UsageError(f"--phlox: a recording is called NAME.phlox, not '{output}' (write --phlox={_DEFAULT} {output})")
    worker: Optional[str] = getattr(config, "workerinput", {}).get("workerid")
    if worker is None and _runs_in_workers(config):
        config.pluginmanager.register(_Overseer(output), "phlox-overseer")
        return
    config.pluginmanager.register(_Labels(_of_worker(output, worker), config), "phlox-labels")


def _runs_in_workers(config: pytest.Config) -> bool:
    return bool(config.getoption("numprocesses", None) or config.getoption("tx", None))


def _of_worker(output: str, worker: Optional[str]) -> str:
    return output if worker is None else f"{output[:-len('.phlox')]}-{worker}.phlox"


def _advice(output: str) -> str:
    return f"phlox report --label TEST {output}; phlox export --by label {output} -o tests.svg"


class _Overseer:
    """The process that only hands tests out."""

    def __init__(self, output: str) -> None:
        self._output = output

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        pattern = _of_worker(self._output, "*")
        terminalreporter.write_line(f"phlox: a recording of each worker in {pattern}; {_advice(_of_worker(self._output, 'gw0'))}")


class _Labels:
    def __init__(self, output: str, config: pytest.Config) -> None:
        self._output = os.path.abspath(output)
        self._config = config
        self._recorder: Optional[Recorder] = None
        self._labels: List[Tuple[int, int, str]] = []
        self._said = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        from ._errors import PhloxError
        from ._recorder import Recorder

        recorder = Recorder(os.getpid(), self._output, rate=self._config.getoption("--phlox-rate"),
                            native=self._config.getoption("--phlox-native"),
                            options=["--no-follow"])  # the workers of xdist record themselves
        try:
            self._recorder = recorder.start()
        except PhloxError as error:
            raise pytest.UsageError(f"--phlox: {error}") from None

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, None, None]:
        """Set-up and tear-down are the test's: fixtures of a module are charged to the first that asks for them."""
        start = time.monotonic_ns()  # the recording's clock
        yield
        self._labels.append((start, time.monotonic_ns(), item.nodeid))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        from ._errors import PhloxError

        if self._recorder is None:
            return
        recorder, self._recorder = self._recorder, None
        try:
            recorder.stop()
            self._put_labels()
            self._said = f"phlox: {len(self._labels)} tests recorded; {_advice(os.path.relpath(self._output))}"
        except PhloxError as error:
            self._said = f"phlox: {error}"

    def _put_labels(self) -> None:
        from ._program import run

        with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="phlox-", suffix=".tsv") as file:
            for start, end, name in self._labels:
                file.write(f"{start}\t{end}\t{' '.join(name.split())}\n")
            file.flush()
            run(["label", self._output, file.name])

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._said:
            terminalreporter.write_line(self._said)
