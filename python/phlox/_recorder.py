"""Recorders of another program or of this one; each is a separate process."""
from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
import weakref
from types import TracebackType
from typing import List, Optional, Sequence, Type, Union

from ._errors import PhloxError
from ._program import environment, find_program
from ._recording import Recording, load

Path = Union[str, "os.PathLike[str]"]

# How long a recorder may take until it records; its start takes some 20 ms.
_PATIENCE = 60.0
_YAMA = "/proc/sys/kernel/yama/ptrace_scope"
_PR_SET_PTRACER = 0x59616D61  # include/uapi/linux/prctl.h


def _options(duration: Optional[float], rate: Optional[Union[float, str]], native: bool, max_overhead: Optional[Union[float, str]],
             options: Sequence[str]) -> List[str]:
    words: List[str] = []
    if duration is not None:
        words += ["--duration", str(duration)]
    if rate is not None:
        words += ["--rate", str(rate)]
    if native:
        words.append("--native")
    if max_overhead is not None:
        words += ["--max-overhead", str(max_overhead)]
    return words + list(options)


class _Place:
    """Where a recording goes: a file of the caller's, or one that goes away with the Recording."""

    def __init__(self, output: Optional[Path]) -> None:
        self.folder: Optional[str] = None
        if output is None:
            self.folder = tempfile.mkdtemp(prefix="phlox-")
            self.path = os.path.join(self.folder, "recording.phlox")
        else:
            self.path = os.fspath(output)
            if not self.path.endswith(".phlox"):
                raise ValueError(f"a recording is called NAME.phlox, not {self.path!r}; Recording.export() makes other files of it")

    def load(self) -> Recording:
        recording = load(self.path)
        if self.folder is not None:
            weakref.finalize(recording, shutil.rmtree, self.folder, ignore_errors=True)
        return recording

    def drop(self) -> None:
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


class Recorder:
    """Records a process from start() to stop(). The recorder is a separate process; if it ends, the program runs on."""

    def __init__(self, pid: int, output: Optional[Path] = None, *, rate: Optional[Union[float, str]] = None, native: bool = False,
                 max_overhead: Optional[Union[float, str]] = None, options: Sequence[str] = ()) -> None:
        self.pid = pid
        self._words = _options(None, rate, native, max_overhead, options)
        self._output = output
        self._place: Optional[_Place] = None
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._said: Optional[str] = None  # the file that its standard error goes to

    def start(self) -> Recorder:
        """Returns when it records."""
        if self._process is not None:
            raise RuntimeError("this recorder has been started already")
        program = find_program()
        self._place = _Place(self._output)
        descriptor, self._said = tempfile.mkstemp(prefix="phlox-")
        ready, to_be_ready = -1, -1
        gate = _must_be_allowed(self.pid)
        try:
            ready, to_be_ready = os.pipe()
            command = [program, "record", "--ready-fd", str(to_be_ready), "--pid", str(self.pid), "--output", self._place.path, *self._words]
            if gate:
                # exec() keeps the process id, which has to be known before it looks at us.
                command = ["/bin/sh", "-c", 'read -r _ && exec "$0" "$@" </dev/null', *command]
            # In a session of its own: a terminal's Ctrl-C is for the program, and ends a recorder at once when it comes twice.
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE if gate else subprocess.DEVNULL, stdout=descriptor,
                                             stderr=descriptor, start_new_session=True, env=environment(), pass_fds=[to_be_ready])
            os.close(to_be_ready)
            to_be_ready = -1
            if self._process.stdin is not None:
                _allow(self._process.pid)
                self._process.stdin.write(b"\n")
                self._process.stdin.close()
            self._wait_until_it_records(ready)
        except BaseException:
            self._give_up()
            raise
        finally:
            for one in (descriptor, ready, to_be_ready):
                if one >= 0:
                    os.close(one)
        return self

    @property
    def recorder_pid(self) -> Optional[int]:
        """The process that records; None: none does."""
        return None if self._process is None else self._process.pid

    def stop(self) -> Recording:
        """Ends the recording properly."""
        if self._process is None or self._place is None:
            raise RuntimeError("this recorder has not been started")
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGINT)
        status = self._process.wait()
        said = self._what_it_said()
        place = self._place
        self._give_up(drop=False)
        if status != 0:
            place.drop()
            raise PhloxError.from_output(said, status)
        return place.load()

    def _wait_until_it_records(self, ready: int) -> None:
        """Until it writes a line to the other end of this pipe."""
        assert self._process is not None
        end = time.monotonic() + _PATIENCE
        pipe = select.poll()
        pipe.register(ready, select.POLLIN)
        # The pipe ends with the recorder, unless a fork of ours has kept its other end.
        while not pipe.poll(100) and self._process.poll() is None and time.monotonic() < end:
            pass
        if pipe.poll(0) and os.read(ready, 4096):
            return
        try:
            status = self._process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise PhloxError(f"the recorder did not begin within {_PATIENCE:.0f} s") from None
        raise PhloxError.from_output(self._what_it_said(), status)

    def _what_it_said(self) -> str:
        if self._said is None:
            return ""
        with open(self._said, encoding="utf-8", errors="replace") as file:
            return file.read()

    def _give_up(self, drop: bool = True) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._said is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._said)
        if drop and self._place is not None:
            self._place.drop()
        self._process, self._place, self._said = None, None, None


def _must_be_allowed(pid: int) -> bool:
    """Of ourselves, where Yama lets only whoever a process names look at it, but for its parents."""
    if pid != os.getpid():
        return False
    try:
        with open(_YAMA, encoding="ascii") as file:
            return file.read().strip() == "1"
    except OSError:
        return False


def _allow(pid: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)


def allow_if_needed(recorder: int) -> None:
    """Lets a process that is not our child look at us, where Yama asks for that."""
    if _must_be_allowed(os.getpid()):
        _allow(recorder)


class profile(contextlib.ContextDecorator):
    """`with phlox.profile() as p:` records the block with a recorder in another process; p.recording is there after it.

    As a decorator it records each call: `@phlox.profile("call.phlox")`. `output`: a file NAME.phlox; without, the recording goes away with
    the Recording. `rate`, `native`, `max_overhead` and `options` are those of `phlox record`.
    """

    def __init__(self, output: Optional[Path] = None, *, rate: Optional[Union[float, str]] = None, native: bool = False,
                 max_overhead: Optional[Union[float, str]] = None, options: Sequence[str] = ()) -> None:
        self._output, self._native = output, native
        self._rate, self._max_overhead, self._options = rate, max_overhead, options
        self._recorder: Optional[Recorder] = None
        self._recording: Optional[Recording] = None

    @property
    def recording(self) -> Recording:
        if self._recording is None:
            raise RuntimeError("the recording is there when the block is over")
        return self._recording

    def __enter__(self) -> profile:
        # Of the process that we are now: a decorator may be called after a fork.
        self._recorder = Recorder(os.getpid(), self._output, rate=self._rate, native=self._native, max_overhead=self._max_overhead,
                                  options=self._options).start()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        assert self._recorder is not None
        recorder, self._recorder = self._recorder, None
        try:
            self._recording = recorder.stop()
        except PhloxError:
            if error is None:  # what the block raised is the news
                raise


def record(pid: Optional[int] = None, command: Optional[Sequence[str]] = None, *, duration: Optional[float] = None,
           output: Optional[Path] = None, rate: Optional[Union[float, str]] = None, native: bool = False,
           max_overhead: Optional[Union[float, str]] = None, options: Sequence[str] = ()) -> Recording:
    """Records a running process, or a command from its start, until `duration` (seconds) is over or it ends. Blocks until then.

    `output`: a file NAME.phlox; without, the recording goes away with the Recording. `rate`, `native` and `max_overhead` are those of `phlox
    record`, `options` any others of its words. A command has our standard input, output and error output: where phlox cannot start it, or finds no
    Python, its words stand there too.
    """
    if (pid is None) == (command is None):
        raise ValueError("a pid or a command: one of them")
    place = _Place(output)
    words = [find_program(), "record", *(["--pid", str(pid)] if pid is not None else ["--quiet"]), "--output", place.path,
             *_options(duration, rate, native, max_overhead, options), *(["--", *command] if command is not None else [])]
    before = _identity(place.path)
    with tempfile.TemporaryFile() as said:
        status = subprocess.run(words, stdin=subprocess.DEVNULL if command is None else None,
                                stderr=said if command is None else None,
                                env=environment() if command is None else None).returncode
        said.seek(0)
        text = said.read().decode("utf-8", "replace")
    # The status of a command is the program's own.
    if status != 0 and (command is None or _identity(place.path) in (None, before)):
        place.drop()
        if command is not None:
            raise PhloxError(f"nothing was recorded of {command[0]} (exit status {status}): standard error has why", status=status)
        raise PhloxError.from_output(text, status)
    return place.load()


def _identity(path: str) -> Optional[tuple[int, int]]:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
