#!/usr/bin/env python3
"""fuzz_ledger.py run [--flavour bulk] LEDGER LOG NAME COMMAND...   Runs a fuzz target (libFuzzer), its output into LOG, and adds a line to LEDGER.
fuzz_ledger.py table LEDGER [NAME...]            Prints the sums of all runs, one row for each target or each NAME, as in docs/fuzzing.md.

A line says how much one run executed, how long it took, and at which execution coverage last grew. The numbers are those that the
target prints (-print_final_stats=1). Runs are added up, whatever changed between them. Edges are those of the last run with the
address sanitizer, because a build without it has others.
"""
import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

# The goal for each importer: this many executions in total, or two hours of which the last quarter found
# nothing new.
ENOUGH = 10**8
ENOUGH_SECONDS = 2 * 3600
QUIET_PART = 0.25
# A build with the address and undefined-behaviour sanitizers; the other flavour, `bulk`, has only the second.
ASAN = "asan"

PROGRESS = re.compile(r"^#(\d+)\s+(\w+).*? cov: (\d+)")
EXECUTED = re.compile(r"^stat::number_of_executed_units:\s+(\d+)")


def parse_log(lines):
    """{executions, edges_before, edges, last_growth, inputs}. edges_before: covered by earlier inputs."""
    found = {"executions": 0, "edges_before": 0, "edges": 0, "last_growth": 0}
    known = False
    for line in lines:
        if progress := PROGRESS.match(line):
            at, what, edges = int(progress[1]), progress[2], int(progress[3])
            found["executions"] = max(found["executions"], at)
            if what == "INITED":
                known, found["edges_before"], found["edges"] = True, edges, edges
            elif edges > found["edges"]:
                found["edges"] = edges
                found["last_growth"] = at if known else 0
        elif executed := EXECUTED.match(line):
            found["executions"] = max(found["executions"], int(executed[1]))
    return found


def run(ledger, log, name, flavour, command):
    begun = time.time()
    with open(log, "w", errors="replace") as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        # Stopping this script stops the target gracefully, and the run is counted.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: child.send_signal(signal.SIGUSR1))
        _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    with open(log, errors="replace") as lines:
        row = parse_log(lines)
    row.update(target=name, flavour=flavour, begun=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begun)), 
               seconds=round(time.time() - begun, 2), cpu=round(used.ru_utime + used.ru_stime, 2), status=child.returncode)
    with open(ledger, "a") as out:
        out.write(json.dumps(row, sort_keys=True) + "\n")
    return 0 if child.returncode == 0 else 1


NOTHING = {"runs": 0, "executions": 0, "with_asan": 0, "cpu": 0.0, "edges": 0, "grew_at": 0, "broke": 0}


def totals(rows, names=()):
    """{target: sums}, including named targets that have not run. `grew_at`: the execution, of all runs, at
    which coverage last grew."""
    sums = {name: dict(NOTHING) for name in names}
    for row in rows:
        one = sums.setdefault(row["target"], dict(NOTHING))
        if row["last_growth"]:
            one["grew_at"] = one["executions"] + row["last_growth"]
        one["runs"] += 1
        one["executions"] += row["executions"]
        one["cpu"] += row["cpu"]
        if row["flavour"] == ASAN:
            one["with_asan"] += row["executions"]
            one["edges"] = row["edges"] or one["edges"]
        one["broke"] += row["status"] != 0
    return sums


def reached(one):
    quiet = one["executions"] - one["grew_at"] >= QUIET_PART * one["executions"] > 0
    if one["executions"] >= ENOUGH:
        return "yes, by executions"
    return "yes, by quiet" if quiet and one["cpu"] >= ENOUGH_SECONDS else "no"


def table(rows, names):
    lines = ["| target | executions | with ASan | hours of CPU | executions a second | edges | coverage last grew at | asked for is reached |",
             "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"]
    for name, one in sorted(totals(rows, names).items()):
        if not names or name in names:
            rate = one["executions"] / one["cpu"] if one["cpu"] else 0
            lines.append(f"| `{name}` | {one['executions']:,} | {one['with_asan']:,} | {one['cpu'] / 3600:.2f} | {rate:,.0f} | {one['edges']:,} | "
                         f"{one['grew_at']:,} | {reached(one)} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    one = commands.add_parser("run")
    one.add_argument("--flavour", default=ASAN)
    one.add_argument("ledger", type=pathlib.Path)
    one.add_argument("log", type=pathlib.Path)
    one.add_argument("name")
    one.add_argument("command", nargs=argparse.REMAINDER)
    all_of_them = commands.add_parser("table")
    all_of_them.add_argument("ledger", type=pathlib.Path)
    all_of_them.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.what == "run":
        return run(options.ledger, options.log, options.name, options.flavour, options.command)
    print(table([json.loads(line) for line in options.ledger.read_text().splitlines()], options.names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
