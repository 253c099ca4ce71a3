"""Recordings, read by their documented format (docs/recording.md): plain SQL over plain tables.

Everything is as it was recorded: choices of a view (waiting left out, native frames folded, inlined functions set out) are made by
`phlox export` and `phlox report`, which export() and report() call.
"""
from __future__ import annotations

import contextlib
import errno
import importlib
import os
import stat
import tempfile
from functools import cached_property
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ._errors import PhloxError
from ._program import run

try:
    import sqlite3
except ImportError:  # Python was built without it. It can still record.
    sqlite3 = None  # type: ignore[assignment]

Path = Union[str, "os.PathLike[str]"]

_OF_OTHERS = "what other tools recorded: phlox import FILE"

APPLICATION_ID = 0x50686C78
FORMATS = (1, 2, 3)

_CPU = ("unknown", "running", "runnable", "blocked")
_GIL = ("unknown", "none", "holds", "waits", "not applicable")
_QUALITY = ("ok", "cut", "unproved", "detached", "rejected")
_KIND = ("python", "native", "kernel", "marker")
_EVENT = ("recording starts", "recording ends", "process starts", "process ends", "exec", "fork", "thread starts", "thread ends", "lost",
          "rate changes", "way of reading changes")


class Process(NamedTuple):
    id: int
    pid: int
    namespace_pid: int
    parent: Optional[int]  # the id of a Process
    executable: str
    command_line: str
    python_version: str
    python_build: str
    mode: str
    how_ended: str


class Thread(NamedTuple):
    id: int
    process: Process
    tid: int  # the kernel's; 0: not known
    python_id: int  # threading.get_ident(); 0: not a Python thread
    interpreter: int
    name: str
    kernel_name: str
    start_s: float  # since the recording began
    end_s: Optional[float]  # None: it was still there


class Module(NamedTuple):
    id: int
    path: str
    build_id: str


class Frame(NamedTuple):
    id: int
    kind: str  # "python", "native", "kernel", "marker"
    function: str
    qualified_name: str
    file: str
    first_line: int
    line: int
    module: Optional[Module]
    address: int
    inlined_in: Optional[int]  # the id of the frame that it was inlined into


class Stack:
    """A frame and what called it. Iterates over its frames, innermost first."""

    __slots__ = ("id", "frame", "parent")

    def __init__(self, id: int, frame: Frame, parent: Optional[Stack]) -> None:
        self.id, self.frame, self.parent = id, frame, parent

    def __iter__(self) -> Iterator[Frame]:
        at: Optional[Stack] = self
        while at is not None:
            yield at.frame
            at = at.parent

    def __repr__(self) -> str:
        return f"<Stack {self.id}: {self.frame.qualified_name} ({self.frame.file}:{self.frame.line})>"


class Span(NamedTuple):
    """Of one thread's time, with one stack and one state."""

    thread: Thread
    start_s: float  # since the recording began
    wall_s: float
    cpu_s: float
    samples: int
    stack: Optional[Stack]  # None: no Python frame on the thread
    cpu: str  # "running", "runnable", "blocked", "unknown"
    gil: str  # "none", "holds", "waits", "not applicable", "unknown"
    collecting: bool
    system_call: Optional[int]
    quality: str  # "ok", "cut", "unproved", "detached", "rejected"
    cpu_number: Optional[int]
    event: Optional[str] = None  # of an import that has several: which one this is of, "cache-misses"
    value: Optional[int] = None  # and what it counted; None where that is the time


class Event(NamedTuple):
    kind: str
    time_s: float
    process: Optional[Process]
    thread: Optional[Thread]
    value: int
    text: str


def _words_of(label: str) -> str:
    """Without the process that a label is of, which stands behind a tab."""
    words, tab, pid = label.rpartition("\t")
    return words if tab and pid.isdigit() else label


class Label(NamedTuple):
    """A time of the recording that was given a name."""

    start_s: float
    end_s: float
    text: str


def load(path: Path) -> Recording:
    """Opens what `phlox record` wrote. What another tool wrote: `phlox import FILE` makes a recording of it."""
    return Recording(path)


class Recording:
    """What was recorded. Rows are read when they are asked for; the file is open only meanwhile."""

    def __init__(self, path: Path) -> None:
        self.path = os.fspath(path)
        self._must_be_readable()
        application, version = self._identity()
        if application != APPLICATION_ID:
            raise PhloxError(f"{self.path} is an SQLite file, but no recording")
        if version not in FORMATS:
            raise PhloxError(f"{self.path} has format {version}; this phlox reads {FORMATS[-1]}", "pip install --upgrade phlox")
        self._has_events = version >= 2
        # Format 3 has other names.
        self._counters, self._mode = ("counter", "mode") if version >= 3 else ("tally", "way_of_reading")

    def _identity(self) -> Tuple[int, int]:
        """SQLite's application_id and user_version."""
        if sqlite3 is None:
            with open(self.path, "rb") as file:
                head = file.read(100)
            if not head.startswith(b"SQLite format 3\0") or len(head) < 100:
                raise PhloxError(f"{self.path} is no recording", _OF_OTHERS)
            return int.from_bytes(head[68:72], "big"), int.from_bytes(head[60:64], "big")
        with self._database() as database:
            try:
                (application,) = database.execute("PRAGMA application_id").fetchone()
                (version,) = database.execute("PRAGMA user_version").fetchone()
            except sqlite3.DatabaseError as error:
                raise PhloxError(f"{self.path} is no recording: {error}", _OF_OTHERS) from None
        return application, version

    def _must_be_readable(self) -> None:
        """SQLite says of each of these that it is unable to open it. (Opened here, and closed, it would lose locks that SQLite holds elsewhere.)"""
        try:
            is_folder = stat.S_ISDIR(os.stat(self.path).st_mode)
        except OSError as error:
            raise PhloxError(f"cannot open {self.path}: {error.strerror}", "is the path right?") from None
        if is_folder:
            raise PhloxError(f"cannot open {self.path}: it is a folder")
        if not os.access(self.path, os.R_OK):
            raise PhloxError(f"cannot open {self.path}: {os.strerror(errno.EACCES)}")

    def __repr__(self) -> str:
        return f"<Recording {self.path}>"

    @contextlib.contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        if sqlite3 is None:
            raise PhloxError("this Python has no sqlite3 module, which reads the rows of a recording", "report() and export() do not need it")
        uri = "file:" + os.path.abspath(self.path).replace("%", "%25").replace("?", "%3f").replace("#", "%23") + "?mode=ro"
        try:
            database = sqlite3.connect(uri, uri=True, timeout=10, check_same_thread=False)
        except sqlite3.OperationalError as error:
            raise PhloxError(f"cannot open {self.path}: {error}") from None
        try:
            # A file of somebody else's is data, and no program.
            database.execute("PRAGMA trusted_schema=OFF")
            yield database
        except sqlite3.OperationalError as error:
            raise PhloxError(f"{self.path} cannot be read: {error}") from None
        finally:
            database.close()

    def _rows(self, query: str) -> Iterator[Tuple[Any, ...]]:
        with self._database() as database:
            yield from database.execute(query)

    # --- what it is about -------------------------------------------------------------------------------------------------
    @cached_property
    def meta(self) -> Mapping[str, str]:
        """Facts of the recording: docs/recording.md names them."""
        return dict(self._rows("SELECT key, value FROM meta"))

    @cached_property
    def counters(self) -> Mapping[str, int]:
        """Counted facts, summed over processes: samples, rejected_moved, target_time_ns, …"""
        return dict(self._rows(f"SELECT name, sum(value) FROM {self._counters} GROUP BY name"))

    @cached_property
    def processes(self) -> Sequence[Process]:
        return [Process(*row) for row in self._rows(
            f"SELECT id, pid, namespace_pid, parent, executable, command_line, python_version, python_build, {self._mode}, how_ended "
            "FROM process ORDER BY id")]

    @cached_property
    def threads(self) -> Sequence[Thread]:
        start = self._start_ns
        return [Thread(id, self.processes[process - 1], tid, python_id, interpreter, name, kernel_name, (begun - start) / 1e9,
                       (ended - start) / 1e9 if ended else None)
                for id, process, tid, python_id, interpreter, name, kernel_name, begun, ended in self._rows(
                    "SELECT id, process, tid, python_id, interpreter, name, kernel_name, start_ns, end_ns FROM thread ORDER BY id")]

    @cached_property
    def modules(self) -> Sequence[Module]:
        return [Module(*row) for row in self._rows("SELECT id, path, build_id FROM module ORDER BY id")]

    @cached_property
    def labels(self) -> Sequence[Label]:
        """Times with a name (`phlox label`, `pytest --phlox`), in the order of their start."""
        if not list(self._rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'label'")):
            return []
        start = self._start_ns
        return [Label((begun - start) / 1e9, (ended - start) / 1e9, _words_of(text))
                for begun, ended, text in self._rows("SELECT start_ns, end_ns, text FROM label ORDER BY start_ns, id")]

    @cached_property
    def duration_s(self) -> float:
        """From the start to the end; of one that was cut off to the last span."""
        if "end_monotonic_ns" in self.meta:
            return (int(self.meta["end_monotonic_ns"]) - self._start_ns) / 1e9
        ((last,),) = self._rows("SELECT max(start_us * 1000 + wall_ns) FROM sample")
        return (self._epoch_ns + last - self._start_ns) / 1e9 if last is not None else 0.0

    @property
    def _start_ns(self) -> int:
        return int(self.meta.get("start_monotonic_ns", 0))

    @property
    def _epoch_ns(self) -> int:
        return int(self.meta.get("sample_epoch_ns", self._start_ns))

    # --- what was seen ----------------------------------------------------------------------------------------------------
    @cached_property
    def frames(self) -> Sequence[Frame]:
        modules = self.modules
        return [Frame(id, _KIND[kind], function, qualified_name, file, first_line, line, modules[module - 1] if module else None,
                      address & 0xFFFFFFFFFFFFFFFF, inlined_in)
                for id, kind, function, qualified_name, file, first_line, line, module, address, inlined_in in self._rows(
                    "SELECT id, kind, function, qualified_name, file, first_line, line, module, address, inlined_in FROM frame ORDER BY id")]

    @cached_property
    def _stacks(self) -> List[Stack]:
        frames = self.frames
        stacks: List[Stack] = []
        for id, parent, frame in self._rows("SELECT id, parent, frame FROM stack ORDER BY id"):
            stacks.append(Stack(id, frames[frame - 1], stacks[parent - 1] if parent else None))
        return stacks

    def stacks(self) -> Iterator[Stack]:
        """Every stack and part of one, callers before what they called."""
        return iter(self._stacks)

    def spans(self) -> Iterator[Span]:
        """In the order in which they were recorded."""
        threads, stacks = self.threads, self._stacks
        states = self._states
        offset = (self._epoch_ns - self._start_ns) / 1e9
        value_column = "value" if self._has_events else "NULL"
        for start, wall, cpu, samples, thread, stack, state, value in self._rows(
                f"SELECT start_us, wall_ns, cpu_ns, samples, thread, stack, state, {value_column} FROM sample ORDER BY rowid"):
            yield Span(threads[thread - 1], offset + start / 1e6, wall / 1e9, cpu / 1e9, samples, stacks[stack - 1] if stack else None,
                          *states[state], value)

    def events(self) -> Iterator[Event]:
        start, processes, threads = self._start_ns, self.processes, self.threads
        for kind, at, process, thread, value, text in self._rows("SELECT kind, time_ns, process, thread, value, text FROM event ORDER BY id"):
            yield Event(_EVENT[kind] if kind < len(_EVENT) else str(kind), (at - start) / 1e9, processes[process - 1] if process else None,
                        threads[thread - 1] if thread else None, value, text)

    @cached_property
    def _states(self) -> Dict[int, Tuple[str, str, bool, Optional[int], str, Optional[int], Optional[str]]]:
        event_column = "coalesce(event, 1)" if self._has_events else "1"
        return {id: (_CPU[cpu], _GIL[gil], bool(collecting), system_call, _QUALITY[quality], number, self.meta.get(f"event.{event}"))
                for id, cpu, gil, collecting, system_call, quality, number, event in self._rows(
                    f"SELECT id, cpu, gil, collecting, system_call, quality, cpu_number, {event_column} FROM state")}

    # --- as data frames ---------------------------------------------------------------------------------------------------
    def columns(self, table: str = "spans") -> Dict[str, List[Any]]:
        """What pandas() and polars() are made of. Tables:

        spans      a row a span; `function`, `file` and `line` are of the innermost frame, `stack` leads to table stacks
        stacks     a row a frame of a stack: `stack`, `depth` (0: innermost), then the frame
        threads    a row a thread
        labels     a row a label
        """
        columns = {"spans": self._span_columns, "stacks": self._stack_columns, "threads": self._thread_columns,
                   "labels": self._label_columns}
        if table not in columns:
            raise ValueError(f"there is no table {table!r}: choose from {', '.join(columns)}")
        return columns[table]()

    def _span_columns(self) -> Dict[str, List[Any]]:
        rows = [(s.thread.process.pid, s.thread.id, s.thread.name or s.thread.kernel_name, s.start_s, s.wall_s, s.cpu_s, s.samples,
                 s.stack.id if s.stack else None, s.stack.frame.qualified_name if s.stack else None, s.stack.frame.file if s.stack else None,
                 s.stack.frame.line if s.stack else None, *s[6:]) for s in self.spans()]
        return _transposed(("pid", "thread", "thread_name", "start_s", "wall_s", "cpu_s", "samples", "stack", "function", "file", "line",
                            *Span._fields[6:]), rows)

    def _stack_columns(self) -> Dict[str, List[Any]]:
        rows = [(stack.id, depth, f.kind, f.function, f.qualified_name, f.file, f.first_line, f.line, f.module.path if f.module else None)
                for stack in self.stacks() for depth, f in enumerate(stack)]
        return _transposed(("stack", "depth", "kind", "function", "qualified_name", "file", "first_line", "line", "module"), rows)

    def _thread_columns(self) -> Dict[str, List[Any]]:
        return _transposed(("id", "pid", *Thread._fields[2:]), [(t.id, t.process.pid, *t[2:]) for t in self.threads])

    def _label_columns(self) -> Dict[str, List[Any]]:
        return _transposed(Label._fields, [tuple(label) for label in self.labels])

    def pandas(self, table: str = "spans") -> Any:
        """A pandas.DataFrame of columns(table), where pandas is installed."""
        return importlib.import_module("pandas").DataFrame(self.columns(table))

    def polars(self, table: str = "spans") -> Any:
        """A polars.DataFrame of columns(table), where polars is installed."""
        return importlib.import_module("polars").DataFrame(self.columns(table), infer_schema_length=None)

    # --- by the program ---------------------------------------------------------------------------------------------------
    def export(self, output: Path, *options: str) -> None:
        """`phlox export`: a flame graph (.svg), a page, a file of another tool. Its words may follow: "--by", "line", …"""
        run(["export", self.path, "--output", os.fspath(output), *options])

    def exported(self, format: str, *options: str) -> str:
        """The same as text: exported("collapsed")."""
        with tempfile.TemporaryDirectory(prefix="phlox-") as folder:
            path = os.path.join(folder, "exported")
            run(["export", self.path, "--format", format, "--output", path, *options])
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read()

    def report(self, *options: str) -> str:
        """`phlox report`: where the time went, as text."""
        return run(["report", self.path, *options], text_from_stdout=True)


def _transposed(names: Sequence[str], rows: Sequence[Tuple[Any, ...]]) -> Dict[str, List[Any]]:
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}
