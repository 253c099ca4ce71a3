"""What benchmarks read from a .phlox file: stacks with counts, times, counters. Plain SQLite, no phlox code."""
import os
import sqlite3


class Recording:
    """rows: (start, wall, cpu, samples, stack, quality), nanoseconds, in the order in which they were seen."""

    # sample.quality
    OK, CUT, UNPROVED, DETACHED, REJECTED = range(5)

    def __init__(self, path):
        self.size = os.path.getsize(path)
        database = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
        self.meta = dict(database.execute("SELECT key, value FROM meta"))
        self.frames = dict(database.execute("SELECT id, function FROM frame"))
        self.parents = {i: (parent, frame) for i, parent, frame in database.execute("SELECT id, parent, frame FROM stack")}
        epoch = int(self.meta.get("sample_epoch_ns", 0))  # absent: no sample was taken
        self.rows = [(epoch + 1000 * start, wall, cpu, samples, stack, quality) for start, wall, cpu, samples, stack, quality in database.execute(
            "SELECT start_us, wall_ns, cpu_ns, samples, stack, quality FROM sample JOIN state ON state.id = sample.state ORDER BY sample.rowid")]
        self.counters = {}
        for name, value in database.execute("SELECT name, value FROM counter"):
            self.counters[name] = self.counters.get(name, 0) + value
        self.modes = [mode for mode, in database.execute("SELECT mode FROM process")]
        database.close()
        self.known = {None: []}

    def names(self, stack):
        """Function names of a stack, root first."""
        missing = []
        at = stack
        while at not in self.known:
            missing.append(at)
            at = self.parents[at][0]
        for at in reversed(missing):
            parent, frame = self.parents[at]
            self.known[at] = self.known[parent] + [self.frames[frame]]
        return self.known[stack]
