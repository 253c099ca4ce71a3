"""The section `import`: how fast Phlox and its peers read the same perf.data, and whether they agree. The section `export`: every format of a recording.

The programs are those of the section `native`: a random forest over taxi trips (pandas, scikit-learn) and a Bytewax dataflow over them.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from . import install
from .tables import number, table
from .target import TARGETS

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tests", "cli"))
from perf_judge import STARTS, UNKNOWN, by_hotspot, by_perf, by_phlox, differences  # noqa: E402

VERSIONS = ("3.12", "3.11")
WAYS = {"dwarf": ["--call-graph", "dwarf"], "fp": ["--call-graph", "fp"], "dwarf -z": ["--call-graph", "dwarf", "-z"],
        "dwarf -a": ["--call-graph", "dwarf", "-a"]}
# Every stack's largest dump: 64 MB for each second that a thread runs.
LARGE = ["--call-graph", "dwarf,65528"]
# Without options, perf script also searches for inlined functions, which takes minutes if there is debug information.
MOST_SECONDS = 120
FORMATS = ("html", "svg", "collapsed", "speedscope", "pprof", "firefox", "perfetto", "chrome", "callgrind", "pstats", "jsonl", "csv")
# What peers make of the same stacks: (format, peer, input format, command without the input file).
PEERS = (("svg", "flamegraph.pl", "collapsed", ["flamegraph.pl", "--countname=ns"]), ("svg", "inferno", "collapsed", ["inferno-flamegraph", "--countname", "ns"]),
         ("pprof", "go tool pprof", "pprof", ["go", "tool", "pprof", "-proto"]), ("callgrind", "go tool pprof", "pprof", ["go", "tool", "pprof", "-callgrind"]))
CONSUMERS = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "phlox", "consumers", "bin")  # tools/get-consumers.sh


def watch_memory(process, peaks):
    """The process's high-water mark in MiB from the kernel, while it runs; unlike rusage, it does not include the parent's."""
    while process.poll() is None:
        try:
            with open("/proc/%d/status" % process.pid) as file:
                peaks.extend(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM:"))
        except OSError:
            return
        time.sleep(0.005)


def measured(command, most=None, **options):
    """Seconds and peak memory in MiB of the executed program; NaN: it exited too soon. A command that takes
    more than `most` seconds is ended, and took at least that long."""
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        begun, peaks = time.monotonic(), []
        process = subprocess.Popen(command, stderr=said, **options)
        watch = threading.Thread(target=watch_memory, args=(process, peaks))
        stop = threading.Timer(most or 1e6, process.kill)
        watch.start()
        stop.start()
        process.wait()
        taken = time.monotonic() - begun
        stop.cancel()
        watch.join()
        if process.returncode != 0 and (most is None or taken < most):
            said.seek(0)
            raise RuntimeError("%s: exit %d: %s" % (command[0], process.returncode, said.read()[-300:]))
        return taken, max(peaks, default=float("nan"))


def environment_of(settings):
    version = next((v for v in VERSIONS if v in settings.pythons), None)
    if version is None:
        raise RuntimeError("needs CPython " + " or ".join(VERSIONS))
    return install.packages(settings.cache, settings.pythons[version], version)


def record(python, target, seconds, options, path):
    command = ["perf", "record", "-F", "999", "--sample-cpu", *options, "-o", path, "--", python, os.path.join(TARGETS, target), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise RuntimeError("perf record: exit %d: %s" % (done.returncode, done.stderr[-300:]))


def times_of(settings, path, folder, parser, rounds):
    """The recording's path, and {tool: (seconds, MiB)}, the best of some interleaved rounds: `perf script` as
    typed, `perf script --no-inline` with only the fields that shares need, Hotspot's parser, and phlox
    import, first without cached data about these programs. Commands that take more than a few seconds are run once."""
    imported = os.path.join(folder, "app.phlox")
    commands = {"perf": ["perf", "script", "-i", path],
                "no inline": ["perf", "script", "-i", path, "-F", "tid,time,period,event,ip,sym,dso", "--no-inline"],
                "phlox": [settings.phlox, "import", path, "-o", imported]}
    if parser is not None:
        commands["hotspot"] = [parser, "--input", path, "--output", os.path.join(folder, "hotspot")]
    costs = {who: [] for who in commands}
    with tempfile.TemporaryDirectory() as kept:
        costs["first"] = [measured(commands["phlox"], stdout=subprocess.DEVNULL, env=dict(os.environ, XDG_CACHE_HOME=kept))]
    for _ in range(rounds):
        for who, command in commands.items():
            if not costs[who] or costs[who][0][0] < 5:
                costs[who].append(measured(command, MOST_SECONDS, stdout=subprocess.DEVNULL))
    return imported, {who: min(rows) for who, rows in costs.items()}


def is_apart(row, perf, ours):
    """By more than half a point. Where we unwind further than perf, callers have more beneath them, by at
    most that much."""
    further = 100 * max(0, ours.whole - perf.whole) / max(perf.samples, 1)
    return abs(row[0] - row[1]) > 0.5 and not (row[2] == "under" and 0 < row[1] - row[0] <= 0.5 + further)


def import_row(settings, python, target, way, options, seconds, folder, parser):
    path = os.path.join(folder, "perf.data")
    record(python, target, seconds, options, path)
    imported, costs = times_of(settings, path, folder, parser, settings.scaled(5, 1))
    perf, ours = by_perf(path), by_phlox(imported)
    # perf invents names for entries of a procedure linkage table, which have no symbols; where a thread
    # begins it may omit the last frame.
    shared = [row for row in differences(perf, ours) if not row[3].endswith("@plt") and row[3] not in {UNKNOWN, *STARTS}]
    apart = [row for row in shared if is_apart(row, perf, ours)]
    row = {"target": target, "way": way, "mb": os.path.getsize(path) / 1e6, "samples": perf.samples, "our samples": ours.samples,
           "functions above 1 %": len(shared), "apart by more than 0.5": len(apart), "further": sum(abs(r[0] - r[1]) > 0.5 for r in shared) - len(apart),
           "apart": [[r[2], r[3], r[0], r[1]] for r in apart[:5]], "costs": costs,
           "whole": {"perf": perf.whole, "phlox": ours.whole}, "mystery": {"perf": perf.mystery, "phlox": ours.mystery}}
    if parser is not None:
        theirs = by_hotspot(parser, path)
        if theirs.samples == 0:  # it does not read compressed files
            del costs["hotspot"]
        else:
            row["whole"]["hotspot"], row["mystery"]["hotspot"] = theirs.whole, theirs.mystery
    return row


def import_section(settings):
    python = environment_of(settings)
    parser = install.hotspot(settings.cache)
    result = {"rows": [], "large": None}
    folder = tempfile.mkdtemp(prefix="phlox-bench-", dir="/var/tmp")
    try:
        for target in ("forest.py", "dataflow.py"):
            for way, options in WAYS.items():
                if settings.only not in (None, way):
                    continue
                row = import_row(settings, python, target, way, options, settings.scaled(20, 2), folder, parser)
                settings.log("import", row)
                result["rows"].append(row)
        if settings.only:
            return result
        path = os.path.join(folder, "large.data")
        record(python, "forest.py", settings.scaled(45, 2), LARGE, path)
        seconds, peak = measured([settings.phlox, "import", path, "-o", os.path.join(folder, "large.phlox")], stdout=subprocess.DEVNULL)
        result["large"] = {"mb": os.path.getsize(path) / 1e6, "seconds": seconds, "mib": peak}
        settings.log("import", result["large"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def peer_rows(settings, folder):
    """Runs the installed peers on files exported into the folder."""
    for name, peer, given, command in PEERS:
        program = shutil.which(command[0]) or shutil.which(command[0], path=CONSUMERS)
        if program is None:
            continue
        out = os.path.join(folder, "peer")
        words = [program, *command[1:], *(["-output", out] if "pprof" in command else []), os.path.join(folder, "out." + given)]
        rounds = []
        for _ in range(settings.scaled(3, 1)):
            with open(out, "wb") as file:
                rounds.append(measured(words, stdout=file))
        row = {"format": name, "peer": peer, "of": given, "seconds": min(rounds)[0], "mib": max(r[1] for r in rounds), "bytes": os.path.getsize(out)}
        settings.log("export", row)
        yield row


def export_section(settings):
    """Every format of one recording of the taxi program, with native frames."""
    python = environment_of(settings)
    folder = tempfile.mkdtemp(prefix="phlox-bench-", dir="/var/tmp")
    result = {"seconds": settings.scaled(60, 3), "rows": []}
    try:
        recording = os.path.join(folder, "app.phlox")
        subprocess.run([settings.phlox, "record", "--native", "-r", "1000", "-o", recording, "--", python, os.path.join(TARGETS, "forest.py"),
                        str(result["seconds"])], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        result["bytes"] = os.path.getsize(recording)
        for name in FORMATS:
            out = os.path.join(folder, "out." + name)
            rounds = [measured([settings.phlox, "export", recording, "-f", name, "--show", "everything", "-o", out], stdout=subprocess.DEVNULL)
                      for _ in range(settings.scaled(3, 1))]
            row = {"format": name, "seconds": min(rounds)[0], "mib": max(r[1] for r in rounds), "bytes": os.path.getsize(out),
                   "gzipped": len(subprocess.run(["gzip", "-c", out], capture_output=True, check=True).stdout)}
            settings.log("export", row)
            result["rows"].append(row)
        result["peers"] = list(peer_rows(settings, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return result


WHO = ("perf", "hotspot", "phlox")


def of_each(values, form):
    return " / ".join(number(values.get(who, float("nan")), form) for who in WHO)


def import_table(data):
    text = ("## Import of perf.data\n\n`perf record -F 999 --sample-cpu --call-graph …` makes a file. Then four programs read it, one after the other, and the best time of each counts: `perf script`; "
            "`perf script --no-inline` with no more fields than the shares need; Hotspot's own parser (Debian's `hotspot-perfparser`); `phlox import`. Phlox keeps what it read of programs and "
            "their debug information; *at first* it had nothing. What took more than " + str(MOST_SECONDS) + " s was ended.\n\n"
            "The shares are those of every function above 1 %, both its own time and its time with everything that it called. *Apart* are the shares that differ from perf's by more than 0.5 points; "
            "in brackets are those that differ because Phlox unwinds a stack further than perf. A stack is *whole* if it reaches the start of its program or thread. A *mystery* is a stack that is not whole "
            "or has a function without a name. What Hotspot guesses at the end of a stack does not count.\n\n")
    stacks = [[r["target"], r["way"], "%.0f" % r["mb"], "%d / %d" % (r["samples"], r["our samples"]), "%d (%d) of %d" % (r["apart by more than 0.5"], r["further"], r["functions above 1 %"]),
               of_each(r["whole"], "%.0f"), of_each(r["mystery"], "%.0f")] for r in data["rows"]]
    text += table(["program", "call graph", "MB", "samples: perf / phlox", "shares apart", "whole stacks: perf / Hotspot / phlox", "mysteries: perf / Hotspot / phlox"], stacks)
    costs = []
    for r in data["rows"]:
        seconds, memory = ({who: cost[i] for who, cost in r["costs"].items()} for i in (0, 1))
        costs.append([r["target"], r["way"], of_each(seconds, "%.2f"), "%s / %s" % (number(seconds["no inline"], "%.2f"), number(seconds["first"], "%.2f")),
                      " / ".join(number(seconds.get(who, float("nan")) / seconds["phlox"], "%.1f") for who in ("perf", "no inline", "hotspot")),
                      of_each(memory, "%.0f"), number(memory["first"], "%.0f")])
    text += "\n" + table(["program", "call graph", "seconds: perf script / Hotspot / phlox", "perf script --no-inline / phlox at first", "times as fast as perf script / --no-inline / Hotspot",
                          "MiB: perf / Hotspot / phlox", "phlox at first"], costs)
    large = data["large"]
    if large is None:
        return text
    return text + "\nA file of %.0f MB (`dwarf,65528`) is imported in %.1f s and %s MiB.\n" % (large["mb"], large["seconds"], number(large["mib"], "%.0f"))


def export_table(data):
    text = ("## Export\n\nA recording of %d seconds of the taxi program at 1 kHz with native frames (%s bytes). Every format is written with `--show everything`; the best of some runs counts.\n\n"
            % (data["seconds"], "{:,}".format(data["bytes"]))) + table(
        ["format", "seconds", "MiB", "bytes", "gzipped"],
        [[r["format"], number(r["seconds"], "%.2f"), number(r["mib"], "%.0f"), "{:,}".format(r["bytes"]), "{:,}".format(r["gzipped"])] for r in data["rows"]])
    if not data.get("peers"):
        return text
    ours = {r["format"]: r for r in data["rows"]}
    return text + "\nThe same stacks, written by peers from a file that they read:\n\n" + table(
        ["format", "peer", "out of", "seconds: peer / phlox", "MiB", "bytes"],
        [[r["format"], r["peer"], r["of"], "%.2f / %.2f" % (r["seconds"], ours[r["format"]]["seconds"]), "%s / %s" % (number(r["mib"], "%.0f"), number(ours[r["format"]]["mib"], "%.0f")),
          "{:,} / {:,}".format(r["bytes"], ours[r["format"]]["bytes"])] for r in data["peers"]])


SECTIONS = {"import": import_section, "export": export_section}
TABLES = {"import": import_table, "export": export_table}
