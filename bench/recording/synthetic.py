#!/usr/bin/env python3
"""Writes a recording of any size by the schema of docs/recording.md: what viewers are tried with.

    python3 bench/recording/synthetic.py OUT.phlox [--samples 1000000] [--threads 500] [--stacks 100000] [--depth 1000]

The same arguments give the same rows. A few threads are busy, most sleep; a thread stays among few stacks for a while; times
have the jitter of a real clock, so that nothing is easier to pack than it would be. One stack is as deep as asked.
"""
import argparse
import os
import pathlib
import random
import re
import sqlite3

SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "src" / "phlox" / "recording" / "schema.h"
EPOCH_NS = 5_000_000_000_123
PYTHON, NATIVE, KERNEL, MARKER = range(4)
PACKAGES = ["app", "shop", "json", "numpy", "django", "requests", "sqlalchemy", "asyncio", "threading", "pandas"]
VERBS = ["load", "parse", "render", "walk", "fetch", "apply", "encode", "visit", "resolve", "commit", "merge", "scan"]
NOUNS = ["Order", "Row", "Node", "Query", "Token", "Page", "Frame", "Batch", "Index", "Session", "Field", "Graph"]
# (share, cpu, gil, collecting, system call, quality)
RUNNING = [(0.86, 1, 2, 0, None, 0), (0.05, 1, 1, 0, None, 0), (0.03, 2, 2, 0, None, 0), (0.04, 3, 3, 0, 202, 0), (0.01, 1, 2, 1, None, 0),
           (0.005, 1, 2, 0, None, 3), (0.005, 1, 0, 0, None, 4)]
ASLEEP = [(0.6, 3, 1, 0, 202, 0), (0.25, 3, 1, 0, 232, 0), (0.1, 3, 1, 0, 0, 0), (0.05, 1, 2, 0, None, 0)]


def schema():
    return re.search(r'kSchema = R"sql\((.*?)\)sql"', SCHEMA.read_text(), re.S).group(1)


class Maker:
    def __init__(self, arguments):
        self.asked = arguments
        self.random = random.Random(arguments.seed)
        self.states = {}

    def frames(self):
        """(kind, function, qualified name, file, first line, line, module, address): a function has up to eight lines."""
        rows = []
        count = max(40, self.asked.stacks // 8)
        for i in range(count):
            package = PACKAGES[int(len(PACKAGES) * self.random.random() ** 2)]
            noun, verb = self.random.choice(NOUNS), self.random.choice(VERBS)
            if i % 10 == 9:
                name = f"{package}_{verb}_{i // 8}"
                rows.append((NATIVE, name, f"{name}(std::vector<{noun}, std::allocator<{noun}>>&)", f"/src/{package}/{verb}.cc", 0,
                             10 + i % 90, 1 + i % 3, 4096 + 16 * i))
                continue
            function, first = f"{verb}_{i // 8}", 1 + (i // 8) * 13 % 900
            home = "/srv/app" if package in ("app", "shop") else "/usr/lib/python3.12" if package in ("json", "asyncio", "threading") else \
                "/opt/venv/lib/python3.12/site-packages"
            rows.append((PYTHON, function, f"{noun}.{function}", f"{home}/{package}/{verb}.py", first, first + i % 8 + 1, None, 0))
        rows.append((MARKER, "(rejected, moved while read)", "(rejected, moved while read)", "", 0, 0, None, 0))
        return rows

    def stacks(self, frames):
        """Parents before children; the last row is the end of the deepest one."""
        rows = [(None, 0), (0, 1)]
        depth = [1, 2]
        for i in range(2, self.asked.stacks - self.asked.depth):
            parent = int(i * self.random.random() ** 0.7)
            while depth[parent] > 60:
                parent = rows[parent][0]
            # Native code calls no Python here.
            frame = int((frames - 1) * self.random.random() ** 2)
            rows.append((parent, frame))
            depth.append(depth[parent] + 1)
        parent = None if self.asked.depth > 2 else 0
        for level in range(min(self.asked.depth, self.asked.stacks - 2)):
            rows.append((parent, 2 + level % 7))
            parent = len(rows) - 1
        return rows

    def state(self, *row):
        return self.states.setdefault(row, len(self.states) + 1)

    def samples(self, stacks):
        """By thread, then all together in the order of time, as a recorder writes them."""
        source, asked = self.random, self.asked
        shares = [1 / (rank + 1) ** 1.1 for rank in range(asked.threads)]
        scale = asked.samples / sum(shares)
        counts = [max(1, int(share * scale)) for share in shares]
        counts[0] += asked.samples - sum(counts)
        length = counts[0] * 1_100_000  # ns of the whole, from the busiest
        rows = []
        for thread, count in enumerate(counts, 1):
            busy = thread <= max(2, asked.threads // 60)
            kinds = RUNNING if busy else ASLEEP if thread % 3 else ASLEEP[:-1]  # a third never runs
            weights = [kind[0] for kind in kinds]
            mean = length / count
            at = source.random() * mean
            pool = [source.randrange(len(stacks)) for _ in range(40)]
            chosen = source.choices(kinds, weights, k=count)
            cpu_number = source.randrange(16)
            for _, cpu, gil, collecting, call, quality in chosen:
                if source.random() < 0.2:
                    pool[source.randrange(40)] = source.randrange(len(stacks)) if source.random() < 0.99 else len(stacks) - 1
                if source.random() < 0.05:
                    cpu_number = source.randrange(16)
                wall = int(mean * source.choice((0.2, 1, 1, 1.4)) * source.uniform(0.9, 1.1)) + 1
                used = int(wall * source.uniform(0.9, 1)) if cpu == 1 else 0
                stack = None if source.random() < 0.002 else pool[int(40 * source.random() ** 2)] + 1
                if quality == 4:
                    stack = len(stacks) + 1
                rows.append((int(at // 1000), wall, used, 1 + wall // 1_100_000, thread, stack,
                             self.state(cpu, gil, collecting, call, quality, cpu_number)))
                at += wall
        rows.sort()
        return rows, max(row[0] * 1000 + row[1] for row in rows)

    def write(self, path):
        if os.path.exists(path):
            os.unlink(path)
        db = sqlite3.connect(path)
        db.execute("PRAGMA application_id = 0x50686c78")
        db.execute("PRAGMA user_version = 1")
        db.execute("PRAGMA synchronous = OFF")
        db.executescript(schema())
        frames = self.frames()
        stacks = self.stacks(len(frames) - 1)
        samples, end = self.samples(stacks)
        threads, looks = self.asked.threads, sum(row[3] for row in samples)
        many = db.executemany
        many("INSERT INTO meta VALUES (?, ?)", {
            "phlox_version": "synthetic", "host": "bench", "kernel": "6.1", "machine": "x86_64", "clock": "CLOCK_MONOTONIC",
            "command_line": "phlox record -o synthetic.phlox", "rate_hz": "1000", "cpus": "16", "start_monotonic_ns": str(EPOCH_NS),
            "start_unix_ns": "1763000000000000000", "end_monotonic_ns": str(EPOCH_NS + end), "sample_epoch_ns": str(EPOCH_NS)}.items())
        many("INSERT INTO process VALUES (?, ?, ?, ?, '/usr/bin/python3.12', ?, '3.12.1', 'default', 'synthetic', 'same CPU', ?, 0, '')",
             [(1, 100, 100, None, "python3 serve.py", EPOCH_NS), (2, 101, 101, 1, "python3 worker.py", EPOCH_NS)])
        many("INSERT INTO thread VALUES (?, ?, ?, ?, 0, ?, 'python3', ?, 0)",
             [(t, 1 + t % 2, 1000 + t, 7_000_000 + t, "MainThread" if t <= 2 else f"worker-{t}", EPOCH_NS) for t in range(1, threads + 1)])
        many("INSERT INTO module VALUES (?, ?, ?, 0)",
             [(i, f"/usr/lib/lib{name}.so.1", f"{i:040x}") for i, name in enumerate(["numbers", "orders", "ssl"], 1)])
        many("INSERT INTO frame VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, '', 0)", [(i, *row) for i, row in enumerate(frames, 1)])
        many("INSERT INTO stack VALUES (?, ?, ?)",
             [(i, None if parent is None else parent + 1, frame + 1) for i, (parent, frame) in enumerate(stacks, 1)])
        db.execute("INSERT INTO stack VALUES (?, NULL, ?)", (len(stacks) + 1, len(frames)))
        many("INSERT INTO state (id, cpu, gil, collecting, system_call, quality, cpu_number) VALUES (?, ?, ?, ?, ?, ?, ?)",
             [(i, *row) for row, i in self.states.items()])
        many("INSERT INTO sample VALUES (?, ?, ?, ?, ?, ?, ?, NULL)", samples)
        many("INSERT INTO event VALUES (?, ?, ?, ?, ?, 0, '')",
             [(1, 0, EPOCH_NS, None, None), (2, 2, EPOCH_NS, 1, None), (3, 6, EPOCH_NS + end // 2, 1, 1), (4, 1, EPOCH_NS + end, None, None)])
        many("INSERT INTO tally VALUES (?, ?, ?)",
             [(1, "samples", looks), (1, "ticks", looks), (1, "rejected_moved", looks // 200), (0, "elapsed_ns", end), (1, "asked_rate_mhz", 1_000_000)])
        db.commit()
        db.close()


def write(path, samples=1_000_000, threads=500, stacks=100_000, depth=1000, seed=1):
    Maker(argparse.Namespace(samples=samples, threads=threads, stacks=stacks, depth=depth, seed=seed)).write(str(path))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    for name, default in [("samples", 1_000_000), ("threads", 500), ("stacks", 100_000), ("depth", 1000), ("seed", 1)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = vars(parser.parse_args())
    write(arguments.pop("out"), **arguments)


if __name__ == "__main__":
    main()
