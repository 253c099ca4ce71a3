"""pytest --phlox: one recording of the test run, with the tests as labels of their time.

    pytest --phlox                                          # pytest.phlox
    phlox report --label test_slow pytest.phlox             # what one test does
    phlox export --by label pytest.phlox -o tests.svg       # all of them, side by side

The recorder is a process of its own. What tests start is in the recording, too, and with pytest-xdist so is every worker: each test is
then a label of its worker's time alone.
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
    workerinput = getattr(config, "workerinput", None)
    if workerinput is not None:
        config.pluginmanager.register(_Worker(workerinput.get("phlox_recorder")), "phlox-worker")
        return
    plugin = _Labels(output, config)
    config.pluginmanager.register(plugin, "phlox-labels")
    if _runs_in_workers(config):
        config.pluginmanager.register(_Overseer(plugin), "phlox-overseer")


def _runs_in_workers(config: pytest.Config) -> bool:
    return bool(config.getoption("numprocesses", None) or config.getoption("tx", None))


def _advice(output: str) -> str:
    return f"phlox report --label TEST {output}; phlox export --by label {output} -o tests.svg"


class _Worker:
    """One process of pytest-xdist: it tells the one that records when each test ran, with the test's last report."""

    def __init__(self, recorder: Optional[int]) -> None:
        self._start = 0
        if recorder is not None:
            from ._recorder import allow_if_needed

            allow_if_needed(recorder)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, None, None]:
        self._start = time.monotonic_ns()
        yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, call: Any) -> Generator[None, Any, None]:
        outcome = yield
        if call.when == "teardown":
            # As text: execnet takes no integer of 64 bits on every version.
            outcome.get_result().phlox_label = f"{self._start}\t{time.monotonic_ns()}\t{os.getpid()}"


class _Overseer:
    """The process that only hands tests out. Each worker must let the recorder look at it."""

    def __init__(self, labels: _Labels) -> None:
        self._labels = labels

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["phlox_recorder"] = self._labels.recorder_pid()

    def pytest_runtest_logreport(self, report: Any) -> None:
        told: Optional[str] = getattr(report, "phlox_label", None)
        if told is not None:
            start, end, pid = told.split("\t")
            self._labels.add(int(start), int(end), report.nodeid, int(pid))


class _Labels:
    def __init__(self, output: str, config: pytest.Config) -> None:
        self._output = os.path.abspath(output)
        self._config = config
        self._recorder: Optional[Recorder] = None
        self._labels: List[Tuple[int, int, str, Optional[int]]] = []
        self._said = ""

    def recorder_pid(self) -> Optional[int]:
        return None if self._recorder is None else self._recorder.recorder_pid

    def add(self, start: int, end: int, name: str, pid: Optional[int] = None) -> None:
        """Of process `pid` and what it starts alone; without, of all processes."""
        self._labels.append((start, end, name, pid))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        from ._errors import PhloxError
        from ._recorder import Recorder

        recorder = Recorder(os.getpid(), self._output, rate=self._config.getoption("--phlox-rate"),
                            native=self._config.getoption("--phlox-native"))
        try:
            self._recorder = recorder.start()
        except PhloxError as error:
            raise pytest.UsageError(f"--phlox: {error}") from None

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, None, None]:
        """Set-up and tear-down are the test's: fixtures of a module are charged to the first that asks for them."""
        start = time.monotonic_ns()  # the recording's clock
        yield
        self.add(start, time.monotonic_ns(), item.nodeid)

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
            for start, end, name, pid in self._labels:
                of_process = "" if pid is None else f"\t{pid}"
                file.write(f"{start}\t{end}\t{' '.join(name.split())}{of_process}\n")
            file.flush()
            run(["label", self._output, file.name])

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._said:
            terminalreporter.write_line(self._said)
