"""docs/trust.md, of the results of trust.py and of the ledger of fuzzing."""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import fuzz_ledger  # noqa: E402

PAGE = ROOT / "docs" / "trust.md"

WHAT = {
    "kill_at_an_instant": ("`kill -9` of the recorder at a random instant of its first 2.5 s",
                           "no thread of the program is stopped or traced 1 s later, every thread works on, and the recording can be read"),
    "kill_at_a_call": ("`SIGKILL` exactly at a random system call of a recording of 1 s", "the same"),
    "stop_the_recorder": ("`SIGSTOP` of the recorder at a random instant",
                          "no thread of the program is held for longer than 1 s while the recorder is stopped, and after `SIGCONT` the recorder ends normally"),
    "refuse_a_call": ("a system call that fails, once or from then on, in one of eight commands",
                      "the command ends within 20 s (`record` and `top`: of Ctrl-C) with a documented exit status, what was recorded can be read, and the program works on"),
    "corrupt_memory": ("a program with 0.05 to 50 % of the words of its heap, its arenas and the interpreter's data changed",
                       "`dump` and `record` each end within 20 s with a documented exit status and within 1 GiB"),
    "mutate_a_file": ("a recording, or a file of another profiler, with changed, missing or repeated bytes",
                      "`report` and `export` each end within 20 s with a documented exit status and within 1 GiB"),
}


def number(value):
    return f"{value:,}"


def executions():
    """-> [(target, executions, those with the address sanitizer)]"""
    rows = [json.loads(line) for line in (ROOT / "tests" / "fuzz" / "ledger.jsonl").read_text().splitlines()]
    return [(name, sums["executions"], sums["with_asan"]) for name, sums in sorted(fuzz_ledger.totals(rows).items())]


def text(result):
    lines = ["# What was tried to break it", "",
             "`make trust` writes this page, as root; do not edit it. It takes an hour unless you give `SECONDS`.",
             "Each attempt is made on a running program or on a file. The choices are random; each failure is",
             "printed with its seed. A few attempts of each trial run in every `make test`.",
             "[SECURITY.md](../SECURITY.md) says what Phlox guarantees.", "",
             f"All trials together take {number(round(result['seconds']))} s. The last run was on {result['date']}: Linux {result['kernel']}, {result['cpus']} CPUs.", "",
             "| what is done | how often | what must hold | failures | command | commit |", "| --- | ---: | --- | ---: | --- | --- |"]
    for name, row in result["trials"].items():
        done, holds = WHAT[name]
        if row["longest"]:
            holds += f" (longest: {1000 * row['longest']:.0f} ms)"
        lines.append(f"| {done} | {number(row['tried'])} | {holds} | {len(row['failures'])} | `tests/trust/trust.py --only {name} build/release/phlox` | {row['commit']} |")
    lines += ["", "Recorders are killed and stopped in four modes: in the kernel, on the thread's own CPU, with `ptrace`,", "and with `ptrace` for native frames.", ""]
    failures = [(name, failure) for name, row in result["trials"].items() for failure in row["failures"]]
    if failures:
        lines += ["## What did not hold", ""]
        lines += [f"- `{name}`, seed {failure['seed']}: {' '.join(failure['what'].split())}" for name, failure in failures[:30]]
        if len(failures) > 30:
            lines.append(f"- and {len(failures) - 30} more")
        lines.append("")
    lines += ["## Hostile users and programs", "",
              "These are tests of every `make test`: links that are swapped under a recorder run by `sudo`, source files",
              "and caches of other users, libraries that are cut short or sparse, symbol tables of gigabytes, file systems",
              "that never answer, triggers in recordings, names that steer a terminal.", "",
              "    make test ONLY=cli    # tests/cli/test_hostile_users.py, test_hostile_programs.py, test_hostile_files.py", "",
              "## Fuzzing", "",
              "Executions of each parser of foreign bytes, added up over all runs ([fuzzing.md](fuzzing.md)).", "",
              "| target | executions | with the address sanitizer |", "| --- | ---: | ---: |"]
    lines += [f"| `{name}` | {number(all_of_them)} | {number(asan)} |" for name, all_of_them, asan in executions()]
    return "\n".join(lines) + "\n"


def write(result):
    PAGE.write_text(text(result))
