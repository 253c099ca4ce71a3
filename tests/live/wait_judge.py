"""Compares a program's log of its waits and of handing over the GIL with a recording."""
import bisect
import collections

SOON = 1_000_000  # ns: a thread that was given the GIL notices it within this time
EXACT = 5_000  # ns: starts are rounded
FUTEX = 202
LONGEST = 100_000_000  # ns: no thread leaves it free for that long

Row = collections.namedtuple("Row", "start end gil cpu stack wake call")


def rows_by_thread(recording):
    """tid -> rows in order, times in ns of the recording's clock."""
    (begin,) = recording.query("SELECT value FROM meta WHERE key = 'sample_epoch_ns'")[0]
    rows = collections.defaultdict(list)
    for tid, start_us, wall, *rest in recording.query(
            "SELECT t.tid, s.start_us, s.wall_ns, state.gil, state.cpu, s.stack, state.waker, state.system_call FROM sample s "
            "JOIN state ON state.id = s.state JOIN thread t ON t.id = s.thread ORDER BY s.start_us"):
        start = int(begin) + start_us * 1000
        rows[tid].append(Row(start, start + wall, *rest))
    return rows


class Handovers:
    """Counts of the handovers of a log, (time, from, to), that are within the recording."""

    def __init__(self, recording, log):
        self.rows = rows_by_thread(recording)
        self.starts = {tid: [row.start for row in rows] for tid, rows in self.rows.items()}
        self.looked_at = self.waited = self.held = 0
        self.wrong = []
        begin = max(rows[0].start for rows in self.rows.values())
        end = min(rows[-1].end for rows in self.rows.values())
        for at, before, after in log:
            if before and begin + 20_000_000 < at < end - 20_000_000:
                self.judge(at, before, after)

    def row_at(self, tid, at):
        i = bisect.bisect_right(self.starts.get(tid, []), at) - 1
        return self.rows[tid][i] if i >= 0 and self.rows[tid][i].end > at else None

    def last_wait(self, tid, at):
        """The wait for the GIL that ended last before this moment, or a little after it."""
        i = bisect.bisect_right(self.starts.get(tid, []), at) - 1
        for row in reversed(self.rows[tid][max(0, i - 40):i + 1]) if i >= 0 else ():
            if row.gil == 3:
                return row
        return None

    def ran(self, tid, begin, end):
        """It may have the GIL but no CPU, and then it writes the handover later."""
        i = bisect.bisect_left(self.starts[tid], begin - EXACT)
        return sum(min(row.end, end) - row.start for row in self.rows[tid][i:bisect.bisect_left(self.starts[tid], end)] if row.cpu == 1)

    def holder(self, tid, wait):
        """Which of the other threads held it last before the end of this wait."""
        last, holder = wait.end - LONGEST, None
        for other in self.rows:
            if other == tid:
                continue
            i = bisect.bisect_left(self.starts[other], wait.end - EXACT)
            for row in reversed(self.rows[other][max(0, i - 8):i]):
                if row.gil == 2:
                    if min(row.end, wait.end) > last:
                        last, holder = min(row.end, wait.end), other
                    break
        return holder

    def judge(self, at, before, after):
        self.looked_at += 1
        wait = self.last_wait(after, at)
        waited = wait is not None and self.ran(after, wait.end, at) < SOON
        self.waited += waited
        held = waited and self.holder(after, wait) == before
        self.held += held
        if not held:
            self.wrong.append((at, before, after, wait, wait and self.holder(after, wait)))


class WaitTargets:
    """Waits of a log, (kind, name, start, length), compared with their wait targets in a recording: `named` if equal, `unnamed` if the
    recording has none or only its kind, `wrong` otherwise. Counts waits of at least `least` within the recording."""

    def __init__(self, recording, thread, log, least, looks=False):
        """`looks`: the rows come from sampling; each says where the thread was at its end."""
        known = {i: (kind, name or "", other or "") for i, kind, name, other in recording.query("SELECT id, kind, name, other FROM wait_target")}
        # The first with that name: a new thread has its creator's name until its own is set.
        tid = [tid for tid, name in recording.query("SELECT tid, name FROM thread ORDER BY id") if name.startswith(thread)][0]
        target_of_state = dict(recording.query("SELECT id, wait_target FROM state"))
        (begin,) = recording.query("SELECT value FROM meta WHERE key = 'sample_epoch_ns'")[0]
        rows = [(int(begin) + start * 1000, int(begin) + start * 1000 + wall, known.get(target_of_state[state])) for start, wall, state in
                recording.query("SELECT s.start_us, s.wall_ns, s.state FROM sample s JOIN state ON state.id = s.state JOIN thread t ON t.id = s.thread "
                                "WHERE t.tid = ? AND state.cpu = 3 AND state.gil != 3 AND state.system_call != 202 ORDER BY s.start_us", tid)]
        self.named, self.unnamed, self.wrong, self.by_kind = 0, [], [], collections.Counter()
        for kind, name, start, wall in log:
            end = start + wall
            if wall < least or start < rows[0][0] or end > rows[-1][1]:
                continue
            if looks:
                for row in rows:
                    if start + SOON < row[1] < end - SOON:
                        self.judge(kind, name, row[2])
            else:
                inside = [(min(row[1], end) - max(row[0], start), row[2]) for row in rows if row[0] < end and row[1] > start]
                longest, found = max(inside, default=(0, None), key=lambda one: one[0])
                # Otherwise it waited for a CPU or for the GIL.
                if longest > wall / 2:
                    self.judge(kind, name, found)

    def judge(self, kind, name, found):
        said = found and (found[2] if kind == "process" else found[1])
        if found is None or (found[0] == kind and not said and name):
            self.unnamed.append((kind, name))
        elif (found[0], said) == (kind, name):
            self.named += 1
            self.by_kind[kind] += 1
        else:
            self.wrong.append((kind, name, found))


class Ended:
    """Waits of programs/ended.py, (kind, tid, start, length, waker), compared with their wakers in a recording: `named` if equal, `silent`
    if the recording has none, `wrong` otherwise. Counts waits of at least `least` within the recording."""

    def __init__(self, recording, log, least=1_500_000):
        self.named, self.silent, self.wrong = collections.Counter(), collections.Counter(), []
        self.said = {number: said(kind, tid, other) for number, kind, tid, other in recording.query(
            "SELECT w.id, w.kind, t.tid, w.other FROM waker w LEFT JOIN thread t ON t.id = w.thread")}
        # If it is not known whether a futex was the GIL's, it may be a long wait for the GIL before or after.
        rows = {tid: [row for row in own if row.cpu == 3 and row.gil != 3 and not (row.call == FUTEX and row.gil == 0)]
                for tid, own in rows_by_thread(recording).items()}
        starts = {tid: [row.start for row in own] for tid, own in rows.items()}
        for kind, tid, start, wall, truth in log:
            own = rows.get(tid)
            if not own or wall < least or start < own[0].start or start + wall > own[-1].end:
                continue
            first, last = bisect.bisect_left(starts[tid], start - EXACT), bisect.bisect_right(starts[tid], start + wall)
            # The first: after the wait, the thread may wait as long for the GIL, and another thread ends that.
            wait = next((row for row in own[first:last] if row.end - row.start >= 1_000_000 and row.end <= start + wall + EXACT), None)
            # Otherwise it waited for a CPU or for the GIL.
            if wait is not None and wait.end - wait.start > wall / 2:
                self.judge(kind, truth, self.said.get(wait.wake))

    def judge(self, kind, truth, found):
        if found == truth:
            self.named[kind] += 1
        elif found is None:
            self.silent[kind] += 1
        else:
            self.wrong.append((kind, truth, found))

    def counts(self):
        """(waits, named) of those ended by their timeout, and of those ended by a thread or a process."""
        timed_out = {kind for kind in self.named + self.silent if kind.endswith("timeout") or kind == "asyncio sleep"}
        for one in (timed_out, set(self.named + self.silent) - timed_out):
            yield sum((self.named + self.silent)[kind] for kind in one), sum(self.named[kind] for kind in one)


def said(kind, tid, other):
    if kind == "process":
        return "process " + other.rsplit("(", 1)[1].rstrip(")")
    return "thread %d" % tid if tid is not None else kind


def read_ended(path):
    return [(kind, int(tid), int(start), int(wall), by) for kind, tid, start, wall, by in (line.split("\t") for line in path.read_text().splitlines())]
