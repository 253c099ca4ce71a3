#!/usr/bin/env python3
"""trust.py [--seconds N] [--only NAME,...] [--seed N] [--store] PHLOX   Tries to break Phlox, and counts what held (make trust).

Each trial gets its share of N seconds (3,600), and is repeated until then, on every CPU. A failure is printed with its seed:
`--only NAME --seed SEED --once` repeats it. --store writes results.json and docs/trust.md. With --only, N is still the whole
hour of which each trial gets its share, and trials that are left out keep their rows of the same N.
Needs root for the capture in the kernel and for the memory of the targets, and strace.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import platform
import random
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import trust_page as page  # noqa: E402
import trust_trials as trials  # noqa: E402

RESULTS = pathlib.Path(__file__).parent / "results.json"
# Share of the time, and how many attempts one call makes.
SHARES = {"kill_at_an_instant": (15, 1), "kill_at_a_call": (20, 1), "stop_the_recorder": (15, 50), "refuse_a_call": (25, 1), "corrupt_memory": (15, 1), "mutate_a_file": (10, 1)}


def recordings(phlox, python, folder):
    """Small ones, for the trial that changes their bytes."""
    made = []
    for name, options in {"plain": ("--mode", "no-kernel"), "kernel": (), "native": ("--native",)}.items():
        with trials.Program(python) as program:
            path = pathlib.Path(folder) / f"{name}.phlox"
            trials.run(phlox, "record", "-q", "-p", program.pid, "-d", "0.5", "-o", path, *options)
            made.append(path)
    return made


def attempt(name, seed, phlox, python, made):
    """-> (failure or None, what was measured)"""
    try:
        return None, getattr(trials, name)(phlox, made if name == "mutate_a_file" else python, random.Random(seed))
    except trials.Broken as broken:
        return str(broken), None
    except Exception as error:  # A fault of the trial is not held for a success.
        return f"the trial itself failed: {type(error).__name__}: {error}", None


def repeat(pool, name, seconds, seed, arguments, say=print):
    """Attempts until the time is over. -> the row of the results"""
    end = time.monotonic() + seconds
    each = SHARES[name][1]
    row = {"tried": 0, "failures": [], "longest": 0.0}
    waiting = set()
    seed_of = {}
    while waiting or time.monotonic() < end:
        while time.monotonic() < end and len(waiting) < os.cpu_count():
            seed += 1
            one = pool.submit(attempt, name, seed, *arguments)
            seed_of[one] = seed
            waiting.add(one)
        done, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
        for one in done:
            failure, measured = one.result()
            row["tried"] += each
            row["longest"] = max(row["longest"], measured or 0)
            if failure:
                row["failures"].append({"seed": seed_of[one], "what": failure})
                say(f"{name}: seed {seed_of[one]}: {failure}", flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("phlox")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--only", default=",".join(SHARES))
    parser.add_argument("--seed", type=int, default=int(time.time()) % 10**6 * 1000)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--python", default="/usr/bin/python3")
    asked = parser.parse_args()
    names = asked.only.split(",")
    phlox = os.path.abspath(asked.phlox)
    found = {}
    with tempfile.TemporaryDirectory(prefix="phlox-trust-") as folder, concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        arguments = (phlox, asked.python, recordings(phlox, asked.python, folder))
        if asked.once:
            sys.exit(attempt(names[0], asked.seed, *arguments)[0])
        whole = sum(share for share, _ in SHARES.values())
        for name in names:
            found[name] = repeat(pool, name, asked.seconds * SHARES[name][0] / whole, asked.seed, arguments)
            print(f"{name}: {found[name]['tried']:,} tried, {len(found[name]['failures'])} did not hold", flush=True)
    if asked.store:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=trials.ROOT, capture_output=True, text=True).stdout.strip()
        version = subprocess.run([phlox, "--version"], capture_output=True, text=True).stdout.split("\n")[0]
        before = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        for row in found.values():
            row["commit"] = commit
        if before.get("seconds") == asked.seconds:
            found = {**before["trials"], **found}
        result = {"date": datetime.date.today().isoformat(), "commit": commit, "version": version, "kernel": platform.release(), "cpus": os.cpu_count(), "seconds": asked.seconds, "trials": found}
        RESULTS.write_text(json.dumps(result, indent=1) + "\n")
        page.write(result)
    sys.exit(any(row["failures"] for row in found.values()))


if __name__ == "__main__":
    main()
