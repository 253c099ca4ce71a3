"""The sections `import` and `export`: what perf recorded taken in, beside `perf script` on the same file, and our own formats handed out.

Programs of section `native`: a random forest over taxi trips (pandas, scikit-learn) and a Bytewax dataflow over them.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

from . import install
from .tables import number, table
from .target import TARGETS

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tests", "cli"))
from perf_judge import UNKNOWN, by_perf, by_phlox, differences  # noqa: E402

VERSIONS = ("3.12", "3.11")
WAYS = {"dwarf": ["--call-graph", "dwarf"], "fp": ["--call-graph", "fp"], "dwarf -z": ["--call-graph", "dwarf", "-z"],
        "dwarf -a": ["--call-graph", "dwarf", "-a"]}
# Every stack's largest dump: 64 MB for each second that a thread runs.
LARGE = ["--call-graph", "dwarf,65528"]
# perf script as it is when nothing is said also looks for the functions that were inlined, by addr2line, for minutes.
MOST_SECONDS = 120
FORMATS = ("html", "svg", "collapsed", "speedscope", "pprof", "firefox", "perfetto", "chrome", "callgrind", "pstats", "jsonl", "csv")
# What peers make of the same stacks: (format, peer, what it is given, command without that file).
PEERS = (("svg", "flamegraph.pl", "collapsed", ["flamegraph.pl", "--countname=ns"]), ("svg", "inferno", "collapsed", ["inferno-flamegraph", "--countname", "ns"]),
         ("pprof", "go tool pprof", "pprof", ["go", "tool", "pprof", "-proto"]), ("callgrind", "go tool pprof", "pprof", ["go", "tool", "pprof", "-callgrind"]))
CONSUMERS = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "phlox", "consumers", "bin")  # tools/get-consumers.sh


def measured(command, most=None, **options):
    """Seconds and the kernel's own high-water mark of memory in MiB, of the program as it was executed; NaN: it was over too soon.
    What takes more than `most` seconds is ended, and took at least that."""
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        begun = time.monotonic()
        process = subprocess.Popen(command, stderr=said, **options)
        peak = float("nan")
        while process.poll() is None:
            try:
                with open("/proc/%d/status" % process.pid) as file:
                    peak = next((int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM:")), peak)
            except OSError:
                pass
            if most is not None and time.monotonic() - begun > most:
                process.kill()
                process.wait()
                return most, peak
            time.sleep(0.01)
        taken = time.monotonic() - begun
        if process.returncode != 0:
            said.seek(0)
            raise RuntimeError("%s: exit %d: %s" % (command[0], process.returncode, said.read()[-300:]))
        return taken, peak


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


def times_of(settings, path, folder, rounds):
    """Where the recording is, and (seconds, MiB) of `perf script`, once; of the best of some rounds, one after the other, of perf script
    --no-inline and of phlox import."""
    rows = {"perf": [], "phlox": []}
    imported = os.path.join(folder, "app.phlox")
    script = ["perf", "script", "-i", path, "-F", "tid,time,period,event,ip,sym,dso"]
    for _ in range(rounds):
        rows["perf"].append(measured([*script, "--no-inline"], stdout=subprocess.DEVNULL))
        rows["phlox"].append(measured([settings.phlox, "import", path, "-o", imported], stdout=subprocess.DEVNULL))
    default = measured(script, MOST_SECONDS, stdout=subprocess.DEVNULL)
    return imported, default, min(rows["perf"]), min(rows["phlox"])


def import_row(settings, python, target, way, options, seconds, folder):
    path = os.path.join(folder, "perf.data")
    record(python, target, seconds, options, path)
    imported, default_cost, perf_cost, our_cost = times_of(settings, path, folder, settings.scaled(3, 1))
    perf, ours = by_perf(path), by_phlox(imported)
    # perf makes names for the entries of a procedure linkage table, which no symbol has.
    apart = [row for row in differences(perf, ours) if not row[3].endswith("@plt") and row[3] != UNKNOWN]
    worst = apart[0] if apart else (0, 0, "", "")
    return {"target": target, "way": way, "mb": os.path.getsize(path) / 1e6, "samples": perf.samples, "our samples": ours.samples,
            "functions above 1 %": len(apart), "apart by more than 0.5": sum(abs(row[0] - row[1]) > 0.5 for row in apart),
            "worst": abs(worst[0] - worst[1]), "worst function": worst[3], "whole": perf.whole, "our whole": ours.whole,
            "unknown": perf.share(perf.under, UNKNOWN), "our unknown": ours.share(ours.under, UNKNOWN),
            "perf default s": default_cost[0], "perf s": perf_cost[0], "our s": our_cost[0], "perf MiB": perf_cost[1], "our MiB": our_cost[1]}


def import_section(settings):
    python = environment_of(settings)
    result = {"rows": [], "large": None}
    folder = tempfile.mkdtemp(prefix="phlox-bench-", dir="/var/tmp")
    try:
        for target in ("forest.py", "dataflow.py"):
            for way, options in WAYS.items():
                row = import_row(settings, python, target, way, options, settings.scaled(20, 2), folder)
                settings.log("import", row)
                result["rows"].append(row)
        path = os.path.join(folder, "large.data")
        record(python, "forest.py", settings.scaled(45, 2), LARGE, path)
        seconds, peak = measured([settings.phlox, "import", path, "-o", os.path.join(folder, "large.phlox")], stdout=subprocess.DEVNULL)
        result["large"] = {"mb": os.path.getsize(path) / 1e6, "seconds": seconds, "mib": peak}
        settings.log("import", result["large"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def peer_rows(settings, folder):
    """Those that are here, of files that were exported into the folder."""
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
    """Every format of one recording of the taxi program with native frames."""
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


def import_table(data):
    text = ("## Taking in what perf recorded\n\n`perf record -F 999 --sample-cpu --call-graph …`, then `perf script --no-inline` and `phlox import` on the same file, the best of each, and `perf script` as it is by default, once: "
            "it looks for functions that were inlined, and was ended after " + str(MOST_SECONDS) + " s. "
            "Shares are of every function above 1 %, own time and with everything called; whole are stacks down to where a program or thread begins; unknown is the share of time in stacks with a frame that has no name.\n\n")
    rows = [[r["target"], r["way"], "%.0f" % r["mb"], "%d / %d" % (r["samples"], r["our samples"]), "%d of %d" % (r["apart by more than 0.5"], r["functions above 1 %"]),
             number(r["worst"], "%.2f"), "%d / %d" % (r["whole"], r["our whole"]), "%.1f / %.1f" % (r["unknown"], r["our unknown"]),
             "%.2f / %.2f / %.2f" % (r["perf default s"], r["perf s"], r["our s"]),
             "%.1f / %.1f" % (r["perf default s"] / r["our s"], r["perf s"] / r["our s"]), "%s / %s" % (number(r["perf MiB"], "%.0f"), number(r["our MiB"], "%.0f"))]
            for r in data["rows"]]
    text += table(["program", "call graph", "MB", "samples: perf / phlox", "apart by > 0.5 points", "worst", "whole stacks", "unknown %", "seconds: perf / --no-inline / phlox", "times as fast", "MiB"], rows)
    large = data["large"]
    return text + "\nA file of %.0f MB (`dwarf,65528`) is imported in %.1f s and %s MiB.\n" % (large["mb"], large["seconds"], number(large["mib"], "%.0f"))


def export_table(data):
    text = ("## Handing out\n\n%d seconds of the taxi program at 1 kHz with native frames (%s bytes), every format with `--show everything`, the best of some runs.\n\n"
            % (data["seconds"], "{:,}".format(data["bytes"]))) + table(
        ["format", "seconds", "MiB", "bytes", "gzipped"],
        [[r["format"], number(r["seconds"], "%.2f"), number(r["mib"], "%.0f"), "{:,}".format(r["bytes"]), "{:,}".format(r["gzipped"])] for r in data["rows"]])
    if not data.get("peers"):
        return text
    ours = {r["format"]: r for r in data["rows"]}
    return text + "\nWhat peers make of the same stacks, out of the file that they read:\n\n" + table(
        ["format", "peer", "out of", "seconds: peer / phlox", "MiB", "bytes"],
        [[r["format"], r["peer"], r["of"], "%.2f / %.2f" % (r["seconds"], ours[r["format"]]["seconds"]), "%s / %s" % (number(r["mib"], "%.0f"), number(ours[r["format"]]["mib"], "%.0f")),
          "{:,} / {:,}".format(r["bytes"], ours[r["format"]]["bytes"])] for r in data["peers"]])


SECTIONS = {"import": import_section, "export": export_section}
TABLES = {"import": import_table, "export": export_table}
