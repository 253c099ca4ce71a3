"""The sections `dump` and `report`: how long an everyday command takes from start to exit."""
import os
import shutil
import subprocess
import sys
import tempfile

from .peers import Austin, Chroot, PySpy, Tachyon
from .sections import seconds_of
from .statistics import bootstrap, median
from .tables import number, table
from .target import Target

TEN_THREADS = [2, 7]  # two run, seven wait, plus the main thread


def summary(times):
    middle, low, high = bootstrap([t * 1e3 for t in times], median)
    return {"runs": len(times), "median_ms": middle, "low": low, "high": high, "best_ms": min(times) * 1e3, "worst_ms": max(times) * 1e3}


def in_turn(commands, rounds, words):
    """Times, from start to exit, every command once, then every command again, so that neighbours run under
    the same conditions. `commands`: by tool name. Rows contain `words`."""
    times = {name: [] for name in commands}
    errors = {}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            try:
                taken = seconds_of(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            except subprocess.CalledProcessError as error:
                errors[name] = error.stderr.strip()[-200:] or "exit %s" % error.returncode
                continue
            if turn:  # the first one warms the caches
                times[name].append(taken)
    rows = []
    for name in commands:
        row = {"tool": name, "error": errors.get(name, ""), **words}
        if times[name]:
            row.update(summary(times[name]))
        rows.append(row)
    return rows


def dump(settings):
    """Dumps ten threads once; /bin/true shows the cost of starting any process here."""
    result = {"dump": []}
    rounds = settings.scaled(60, 10)

    def keep(rows):
        for row in rows:
            settings.log("dump", row)
        result["dump"] += rows

    for version in settings.versions:
        with Target(settings.pythons[version], "threads.py", TEN_THREADS) as target:
            commands = {"phlox dump": [settings.phlox, "dump", "-p", str(target.pid)]}
            if settings.with_peers:
                commands["py-spy dump"] = [PySpy(settings.cache).binary, "dump", "-p", str(target.pid)]
                commands["austin --where"] = Austin(settings.cache).words + ["--where", str(target.pid)]
            commands["/bin/true"] = ["/bin/true"]
            keep(in_turn(commands, rounds, {"python": version}))
    tachyon = Tachyon(settings.cache)
    if settings.with_peers and tachyon.available():
        python, prefix = tachyon.python(settings.pythons, "3.15")
        with Chroot(tachyon.root), Target(python, "threads.py", TEN_THREADS, prefix=prefix) as target:
            keep(in_turn({"phlox dump": [settings.phlox, "dump", "-p", str(target.pid)],
                          "Tachyon dump": [*prefix, python, "-m", "profiling.sampling", "dump", str(target.pid)]},
                         max(3, rounds // 6), {"python": "3.15"}))
    return result


def report(settings):
    """Report and diff of recordings with a million samples: 20,000 stacks up to 60 deep, 2,000 functions."""
    samples = settings.scaled(1000000, 100000)
    result = {"samples": samples}
    folder = tempfile.mkdtemp(prefix="phlox-bench-", dir="/var/tmp")
    try:
        maker = os.path.join(os.path.dirname(settings.reading), "bench_report")
        subprocess.run([maker, str(samples), "20000", folder], check=True, stdout=sys.stderr)
        before, after = os.path.join(folder, "before.phlox"), os.path.join(folder, "after.phlox")
        result["bytes"] = os.path.getsize(before)
        svg = os.path.join(folder, "out.svg")
        result["report"] = in_turn({
            "phlox report": [settings.phlox, "report", before],
            "phlox report --json": [settings.phlox, "report", "--json", before],
            "phlox diff": [settings.phlox, "diff", before, after],
            "phlox export -f svg": [settings.phlox, "export", before, "-f", "svg", "-o", svg]}, settings.scaled(15, 3), {})
        for row in result["report"]:
            settings.log("report", row)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def times_of(row):
    return [row.get("runs", "failed: " + row["error"]), number(row.get("median_ms"), "%.1f"),
            "%s to %s" % (number(row.get("low"), "%.1f"), number(row.get("high"), "%.1f")), number(row.get("best_ms"), "%.1f"),
            number(row.get("worst_ms"), "%.1f")]


TIMES = ["runs", "median ms", "95 % interval", "best ms", "worst ms"]


def dump_table(data):
    return ("## One dump\n\nThe stacks of ten threads, two of which run. The time is from the start of the command to its exit; the commands take turns. "
            "`/bin/true` shows what it takes to start any process here.\n\n") + table(["tool", "Python"] + TIMES, [[r["tool"], r["python"]] + times_of(r) for r in data["dump"]])


def report_table(data):
    return ("## Reports\n\nRecordings of %s samples with 20,000 stacks (%.0f MB each). The time is from the start of the command to its exit; the commands take turns.\n\n"
            % ("{:,}".format(data["samples"]), data["bytes"] / 1e6)) + table(["command"] + TIMES, [[r["tool"]] + times_of(r) for r in data["report"]])


SECTIONS = {"dump": dump, "report": report}
TABLES = {"dump": dump_table, "report": report_table}
