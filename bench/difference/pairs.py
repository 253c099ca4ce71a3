#!/usr/bin/env python3
"""Pairs of programs with a known change, and equal ones: what does `phlox diff` say?

    bench/difference/pairs.py PHLOX [--equal 20] [--runs 5] [--python /usr/bin/python3]

Each program prints the seconds of each of its functions, so a verdict is judged by what these two runs did: on a machine with
other work equal programs do not take equal time, and `diff` of two recordings says so. Judged as wrong are:

  denied   the function that was changed is called "same" or "unchanged"
  alarm    a function is said to differ, and by the program's own clock it did not by half of what is said, or in the other direction

Of repeated runs any verdict "changed" of equal programs is an alarm.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = '''
import sys, threading, time
P = {"load": 0.5, "parse": 0.5, "naps": 0.3, "lock": 0.3, "fit": 0.6, "table": 0}
P.update((k, float(v)) for k, v in (a.split("=") for a in sys.argv[1:]))
spent, used = {}, {}
UNIT = 4000
def turn():
    s = 0
    for i in range(UNIT): s += i * i
    return s
def timed(function):
    def run(*a):
        t, c = time.perf_counter(), time.thread_time()
        try: return function(*a)
        finally:
            name = function.__name__
            spent[name] = spent.get(name, 0) + time.perf_counter() - t
            used[name] = used.get(name, 0) + time.thread_time() - c
    return run
turns = lambda seconds: int(seconds * 2600)  # fixed work, not fixed time
@timed
def load():
    for _ in range(turns(P["load"])): turn()
@timed
def parse(n):
    for _ in range(n): turn()
@timed
def store(n):
    for _ in range(n): turn()
@timed
def naps(seconds): time.sleep(seconds)
@timed
def fit():
    for _ in range(turns(P["fit"])): turn()
@timed
def locked(lock):
    with lock: pass
def holder(lock, seconds, go, done):
    for _ in range(20):
        go.wait(); go.clear()
        with lock:
            done.set(); time.sleep(seconds / 20)
def with_lock():
    if P["lock"] <= 0: return
    lock, go, done = threading.Lock(), threading.Event(), threading.Event()
    threading.Thread(target=holder, args=(lock, P["lock"], go, done), daemon=True).start()
    for _ in range(20):
        go.set(); done.wait(); done.clear()
        locked(lock)
def main():
    load()
    for _ in range(60):
        parse(max(1, turns(P["parse"] / 60)))
        store(turns(0.3 / 60))
        if P["naps"] > 0: naps(P["naps"] / 60)
    with_lock()
    fit()
main()
import json; print(json.dumps({"wall": spent, "cpu": used}))
'''

# function that changes, before, after
CHANGES = [
    ("load", {}, {"load": 0}), ("load", {"load": 1}, {"load": 0.4}), ("load", {"load": 0.2}, {"load": 0.9}), ("load", {"load": 1.5}, {"load": 0.7}),
    ("fit", {}, {"fit": 0}), ("fit", {"fit": 1.2}, {"fit": 0.5}), ("fit", {"fit": 0.3}, {"fit": 1}),
    ("parse", {}, {"parse": 0.15}), ("parse", {"parse": 1}, {"parse": 0.4}), ("parse", {"parse": 0.2}, {"parse": 0.8}), ("parse", {"parse": 1.2}, {"parse": 0.5}),
    ("naps", {}, {"naps": 0}), ("naps", {"naps": 1}, {"naps": 0.2}), ("naps", {"naps": 0.2}, {"naps": 1}), ("naps", {"naps": 0.6}, {"naps": 0.1}),
    ("locked", {}, {"lock": 0}), ("locked", {"lock": 0.8}, {"lock": 0.1}), ("locked", {"lock": 0.1}, {"lock": 0.8}), ("locked", {"lock": 0.6}, {"lock": 0}),
    ("locked", {"lock": 0.5}, {"lock": 0.05}),
]
FUNCTIONS = ["load", "parse", "store", "naps", "locked", "fit"]


class Bench:
    def __init__(self, options, folder):
        self.phlox, self.python, self.folder = options.phlox, options.python, pathlib.Path(folder)
        self.count = 0
        (self.folder / "program.py").write_text(PROGRAM)

    def record(self, values):
        """A recording, and the truth that the program printed."""
        self.count += 1
        path = self.folder / f"{self.count}.phlox"
        words = [f"{key}={value}" for key, value in values.items()]
        done = subprocess.run([self.phlox, "record", "-q", "-o", path, "--", self.python, self.folder / "program.py", *words], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        return path, json.loads(done.stdout.splitlines()[-1])

    def diff(self, before, after, *words):
        sides = [*before, "--", *after] if len(before) + len(after) > 2 else [*before, *after]
        done = subprocess.run([self.phlox, "diff", "--json", "--top", "1000", *words, *sides], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        return json.loads(done.stdout)


def said_of(told, name):
    rows = [row["total"] for row in told["functions"] if row["name"] == name and row["file"].endswith("program.py")]
    return rows[0] if rows else None


DIFFERS = {"grew", "shrank", "new", "vanished"}


def alarms(told, truths, weight):
    """Functions reported to differ that did not, by the program's own clock."""
    wrong = []
    before, after = (truth[weight] for truth in truths)
    for name in FUNCTIONS:
        said = said_of(told, name)
        if not said or said["verdict"] not in DIFFERS:
            continue
        truth = (after.get(name, 0) - before.get(name, 0)) * 1e9
        if truth * said["difference"] <= 0 or abs(truth) < abs(said["difference"]) / 2:
            wrong.append(f"{name}: said {said['difference'] / 1e9:+.3f} s, was {truth / 1e9:+.3f} s")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("phlox")
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--equal", type=int, default=20, help="pairs of equal programs")
    parser.add_argument("--runs", type=int, default=0, help="repeated runs: comparisons of five and five equal runs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        denied, wrong, silent = [], [], []
        for name, before, after in CHANGES:
            (a, ta), (b, tb) = bench.record(before), bench.record(after)
            told = bench.diff([a], [b])
            said = said_of(told, name)
            verdict = said["verdict"] if said else "not there"
            if verdict == "same":
                denied.append(name)
            elif verdict not in DIFFERS:
                silent.append(name)
            found = alarms(told, (ta, tb), "wall")
            wrong += found
            truth = tb["wall"].get(name, 0) - ta["wall"].get(name, 0)
            print(f"{name:7} was {truth:+.2f} s, said {(said or {}).get('difference', 0) / 1e9:+.2f} s: {verdict}", *found, sep="; ", flush=True)
        print(f"{len(CHANGES)} changes: {len(denied)} denied, {len(silent)} inconclusive, {len(wrong)} alarms")
        pairs, wrong, disagree = 0, [], 0
        last = bench.record({})
        for _ in range(options.equal):
            now = bench.record({})
            for weight in ("wall", "cpu"):
                told = bench.diff([last[0]], [now[0]], "--weight", weight)
                wrong += alarms(told, (last[1], now[1]), weight)
                disagree += told["functions_differ"] > 0
                pairs += 1
            last = now
        print(f"{pairs} comparisons of equal programs: in {disagree} these two recordings differ; {len(wrong)} alarms against the program's clock", *wrong, sep="\n  ")
        if options.runs:
            pool = [bench.record({})[0] for _ in range(10)]
            false = 0
            import random
            chance = random.Random(1)
            for _ in range(options.runs):
                dealt = chance.sample(pool, 10)
                false += bench.diff(dealt[:5], dealt[5:])["functions_differ"] > 0
            print(f"5 + 5 equal runs dealt {options.runs} times: {false} alarms")
    return 1 if denied or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
