"""The section `native`: Python and native code as one stack, on a random-forest fit and a Bytewax dataflow.
Whole stacks, the cost to the target (interleaved pairs) and to the recorder, and `dump --native` compared
with its peer's.
"""
import json
import os
import subprocess
import sys
import time

from . import install, sections
from .everyday import in_turn
from .peers import Phlox, PySpy
from .recording import Recording
from .statistics import mean
from .target import Target
from .tables import number, percent, slow_down, table

# Bytewax has no wheel for 3.13 and later.
VERSIONS = ("3.12", "3.11")
FOREST = ("random forest", "forest.py", [])
# Small passes of a fifteenth of a second, so that a span contains enough of them.
SMALL_FOREST = [1500, 6]
DATAFLOW = ("Bytewax dataflow", "dataflow.py", [])


class NativePhlox(Phlox):
    """phlox record --native for targets that run in the environment with their packages."""

    def __init__(self, binary, environment, source=None):
        super().__init__(binary)
        self.environment, self.source = environment, source
        self.name = "phlox --native" + (" --native-source " + source if source else "")

    def python(self, pythons, version):
        return self.environment, ()

    def command(self, pid, rate, seconds, output):
        return super().command(pid, rate, seconds, output) + ["--native"] + (["--native-source", self.source] if self.source else [])


class NativePySpy(PySpy):
    def __init__(self, cache, environment):
        super().__init__(cache)
        self.environment = environment
        self.name = "py-spy --native"

    def python(self, pythons, version):
        return self.environment, ()

    def command(self, pid, rate, seconds, output):
        return super().command(pid, rate, seconds, output) + ["--native"]


def whole_row(settings, profiler, version, target, seconds, rate=1000):
    """How many samples with native frames are complete to the thread's start and merged."""
    label, script, args = target
    row = {"tool": profiler.name, "python": version, "target": label, "rate": rate, "error": ""}
    python, prefix = profiler.python(settings.pythons, version)
    with Target(python, script, args, prefix=prefix) as running:
        outcome = profiler.start(running.pid, rate, seconds).finish()
    if outcome.error:
        row["error"] = outcome.error
        return row
    counters = outcome.recording.counters
    looks = max(1, counters.get("native", 0))
    row.update(way=outcome.recording.modes[0], looks=looks, whole=counters.get("native_whole", 0) / looks, cut=counters.get("native_cut", 0) / looks,
               restarted=counters.get("native_restarted", 0) / looks, unmerged=counters.get("native_unmerged", 0) / looks,
               samples=outcome.samples, rejected=outcome.failed,
               recorder_us=counters.get("recorder_cpu_ns", 0) / max(1, outcome.samples) / 1e3)
    return row


def parts_row(settings, tool, version, environment, target):
    """How long ptrace stops a thread, and the time to unwind a frame whose rules are known (bench/native/native_cost.cpp)."""
    label, script, args = target
    row = {"python": version, "target": label, "error": ""}
    with Target(environment, script, args) as running:
        time.sleep(1)
        done = subprocess.run([tool, str(running.pid), str(settings.scaled(5000, 500))], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        row["error"] = done.stderr.strip()[-200:]
    else:
        row.update(json.loads(done.stdout))
    return row


def dump_rows(settings, version, environment, target, rounds):
    """From start to exit, alternating with the peer, with warm caches."""
    label, script, args = target
    commands = {"phlox dump --native": [settings.phlox, "dump", "--native", "-p"]}
    if settings.with_peers:
        commands["py-spy dump --native"] = [PySpy(settings.cache).binary, "dump", "--native", "--pid"]
    with Target(environment, script, args) as running:
        time.sleep(1)
        return in_turn({name: words + [str(running.pid)] for name, words in commands.items()}, rounds, {"python": version, "target": label})


def cost_rows(settings, version, profiler):
    """Slow-down in many interleaved runs, each with its own process. For minutes at a time a host is slower
    by a fifth without reporting steal, because others use its caches and memory too. A sample then finds
    nothing in a cache and costs more."""
    runs = []
    for _ in range(settings.scaled(6, 1)):
        for script, args, span in ((FOREST[1], SMALL_FOREST, 0.8), (DATAFLOW[1], [], 0.4)):
            for rate in (100, 1000):
                runs.append(sections.one_run(settings, version, "root", script, args, rate, settings.scaled(20, 4), span, 0.05, profiler))
                settings.log("native", runs[-1][0])
    return by_speed(runs)


# Share of the speed of the same target's fastest run.
FULL_SPEED = 0.9


def by_speed(runs):
    """For each target and rate, one row of the runs whose target ran at full speed without a recorder, and
    one of the others."""
    best = {}
    for row, _ in runs:
        best[row["target"]] = max(best.get(row["target"], 0), row.get("alone", 0))
    groups = {}
    for row, ratios in runs:
        host = "" if row["error"] else "full speed" if row["alone"] >= FULL_SPEED * best[row["target"]] else "slower"
        groups.setdefault((row["target"], row["rate"], host), []).append((row, ratios))
    rows = []
    for (_, _, host), group in sorted(groups.items()):
        same = {key: group[0][0][key] for key in ("tool", "python", "user", "target", "rate", "error")}
        if same["error"]:
            rows.append({**same, "runs": len(group)})
            continue
        means = {key: mean([row[key] for row, _ in group]) for key in ("alone", "samples_a_second", "cpu_us_a_sample")}
        rows.append({**same, **means, "host": host, "runs": len(group), **sections.of_pairs([ratio for _, ratios in group for ratio in ratios])})
    return rows


def native(settings):
    version = next((v for v in VERSIONS if v in settings.pythons), None)
    if version is None:
        raise RuntimeError("the section native needs CPython " + " or ".join(VERSIONS))
    environment = install.packages(settings.cache, settings.pythons[version], version)
    result = {"whole": [], "slow_down": [], "parts": [], "dump": []}

    def keep(part, row):
        settings.log("native", row)
        result[part].append(row)

    ours = NativePhlox(settings.phlox, environment)
    for target in (FOREST, DATAFLOW):
        for profiler in (ours, NativePhlox(settings.phlox, environment, "ptrace")):
            keep("whole", whole_row(settings, profiler, version, target, settings.scaled(10, 3)))
    tool = os.path.join(os.path.dirname(settings.reading), "native_cost")
    if os.path.exists(tool):
        for target in (FOREST, DATAFLOW):
            keep("parts", parts_row(settings, tool, version, environment, target))
    else:
        print("native: no %s: make build-reading builds it" % tool, file=sys.stderr)
    for target in (FOREST, DATAFLOW):
        for row in dump_rows(settings, version, environment, target, settings.scaled(30, 5)):
            keep("dump", row)
    for row in cost_rows(settings, version, ours):
        keep("slow_down", row)
    if settings.with_peers:
        for rate in (100, 1000):
            row = sections.slow_down(settings, NativePySpy(settings.cache, environment), version, "root", FOREST[1], SMALL_FOREST, rate,
                                     settings.scaled(5, 1), on=4.0, off=3.0)
            keep("slow_down", row)
    return result


def document(data):
    text = ["## Python and native code as one stack", "", "`phlox record --native`. A stack is *whole* if it is complete to the thread's start and every Python frame "
            "lies on the native frame that ran it. The recorder's CPU is all that it used from its start to the last sample, unwinding included.", ""]
    text.append(table(["tool", "Python", "target", "Hz", "way", "stacks", "whole", "cut", "restarted", "unmerged", "us of CPU a sample"], [
        [r["tool"], r["python"], r["target"], r["rate"], r.get("way", "failed: " + r["error"][:60]), r.get("looks", "-"), percent(r.get("whole")),
         percent(r.get("cut")), percent(r.get("restarted")), percent(r.get("unmerged")), number(r.get("recorder_us"), "%.1f")] for r in data["whole"]]))
    text.append("The slow-down, as in \"Cost to the target\". The perf events of Phlox stay open while its recorder is stopped. *Alone*: what the target does per second while the "
                "recorder is stopped. *Slower*: the runs in which that was less than nine tenths of the fastest run, because the host had other work.\n")
    text.append(table(["tool", "Python", "target", "Hz", "host", "alone", "runs", "pairs", "slow-down", "us of CPU a sample, all of the tool"], [
        [r["tool"], r["python"], r["target"], r["rate"], r.get("host", "-"), number(r.get("alone"), "%.1f"), r.get("runs", "-"), r.get("pairs", "-"),
         slow_down(r), number(r.get("cpu_us_a_sample"), "%.0f")]
        for r in data["slow_down"]]))
    text.append("How long ptrace stops a thread, from before it is asked to stop until after it is continued. A thread that waits for a CPU does not run in that time anyway. "
                "So look at the rows *running*: the threads that were on a CPU when they were asked (by the count in schedstat):\n")
    text.append(table(["Python", "target", "thread", "stops", "median us", "p99 us", "worst us"], [
        [r["python"], r["target"], which, r.get(count, "failed"), number(r.get(key + "_median_us"), "%.0f"), number(r.get(key + "_p99_us"), "%.0f"),
         number(r.get(key + "_worst_us"), "%.0f")] for r in data["parts"] for which, count, key in (("running", "running", "running"), ("any", "stops", "stop"))]))
    text.append("The time to unwind one frame whose rules are known:\n")
    text.append(table(["Python", "target", "frames a stack", "ns a frame"], [
        [r["python"], r["target"], number(r.get("frames_a_stack"), "%.0f"), number(r.get("frame_ns"), "%.1f")] for r in data["parts"]]))
    text.append("One dump, from the start of the command to its exit. The commands take turns, with warm caches:\n")
    text.append(table(["tool", "Python", "target", "runs", "median ms", "95 % interval", "worst ms"], [
        [r["tool"], r["python"], r["target"], r.get("runs", "failed"), number(r.get("median_ms"), "%.0f"),
         "%s to %s" % (number(r.get("low"), "%.0f"), number(r.get("high"), "%.0f")), number(r.get("worst_ms"), "%.0f")] for r in data["dump"]]))
    return "\n".join(text)
