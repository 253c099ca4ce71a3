"""The section `kernel`: the cost of sampling in the kernel, compared with an empty BPF program on the same
events, with reading from outside, with py-spy and with austin; and its cost on a whole host."""
import json
import os
import subprocess
import time

from . import install, sections
from .native import SMALL_FOREST, VERSIONS as NATIVE_VERSIONS, NativePhlox
from .peers import Austin, Phlox, PySpy
from .statistics import bootstrap, mean, typical_ratio
from .tables import number, percent, slow_down, table
from .target import Target, throughput

RATE = 1000
HOST_RATE = 99
HOST_PROCESSES = 200
# label, script, arguments, native, Python version, rounds and seconds of a span
SWITCHES = "switches.py"
TARGETS = [("depth 50", "depth.py", [50], False, None, 60, 0.2), ("depth 200", "depth.py", [200], False, None, 60, 0.2),
           ("Bytewax dataflow", "dataflow.py", [], False, "3.11", 30, 0.4), ("random forest", "forest.py", SMALL_FOREST, True, None, 20, 0.8),
           ("switches", SWITCHES, [], False, None, 40, 0.2), ("switches, some work", SWITCHES, [200], False, None, 40, 0.2),
           ("switches, more work", SWITCHES, [550], False, None, 40, 0.2)]


def interpreter(settings, version, script):
    if script in ("dataflow.py", "forest.py"):
        return install.packages(settings.cache, settings.pythons[version], version)
    return settings.pythons[version]


def switches(pid):
    """How often the process has left its CPU so far."""
    with open("/proc/%d/status" % pid) as file:
        return sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)


def in_turn_row(settings, tool, version, target):
    """Nothing attached; attached, but no process selected; this target sampled (bench/kernel/kernel_cost.cpp)."""
    label, script, args, native, _, rounds, span = target
    row = {"tool": "phlox --way kernel" + (" --native" if native else ""), "python": version, "target": label, "rate": RATE, "error": ""}
    # The target has a CPU to itself, so the recorder takes no time from it by sharing one.
    with Target(interpreter(settings, version, script), script, args, cpu=1) as running:
        time.sleep(1)
        words = ["taskset", "-c", "0", tool, str(running.pid), str(RATE), str(settings.scaled(rounds, 6)), str(span)] + (["native"] if native else [])
        before, since = switches(running.pid), time.monotonic()
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        row["switches_a_second"] = (switches(running.pid) - before) / (time.monotonic() - since)
        windows = running.stop()["windows"]
    if done.returncode != 0:
        row["error"] = done.stderr.strip()[-200:]
        return row
    counted = json.loads(done.stdout)
    off, empty, full = ([throughput(windows, *span) for span in counted[name]] for name in ("off", "empty", "full"))
    for name, over, under in (("slow_down", off, full), ("above_empty", empty, full), ("of_empty", off, empty)):
        value, low, high = bootstrap([a / b for a, b in zip(over, under)], typical_ratio, rounds=1000)
        row[name] = {"slow_down": value, "low": low, "high": high}
    seconds = sum(end - begin for begin, end in counted["full"])
    row.update(pairs=len(full), alone=mean(off), looks_a_second=counted["hits"] / seconds, walks_a_second=counted["walks"] / seconds,
               own_clock=counted["time_ns"] / seconds / 1e9, lost=counted["lost"])
    return row


def peer_row(settings, version, target):
    """Reads from outside; the recorder is alternately stopped and resumed."""
    label, script, args, native, _, _, span = target
    environment = interpreter(settings, version, script)
    profiler = NativePhlox(settings.phlox, environment) if native else OfEnvironment(settings.phlox, environment)
    row, ratios = sections.one_run(settings, version, "root", script, args, RATE, settings.scaled(60 if span < 0.4 else 20, 6), max(span, 0.1), 0.02, profiler)
    row["target"] = label
    return row if row["error"] else {**row, **sections.of_pairs(ratios)}


class OfEnvironment(Phlox):
    def __init__(self, binary, interpreter):
        super().__init__(binary)
        self.interpreter = interpreter

    def python(self, pythons, version):
        return self.interpreter, ()


class WholeHost(Phlox):
    name = "phlox --all"

    def __init__(self, binary, in_kernel):
        super().__init__(binary, in_kernel=in_kernel)
        self.name = "phlox record --all --way " + ("kernel" if in_kernel else "no-kernel")

    def command(self, pid, rate, seconds, output):
        words = super().command(pid, rate, seconds, output)
        at = words.index("-p")
        return words[:at] + ["--all"] + words[at + 2:]


def host_row(settings, version, in_kernel):
    """A busy process among 200 that do little, with and without a recording of all: its throughput, and the recorder's CPU."""
    with Target(settings.pythons[version], "crowd.py", [HOST_PROCESSES, 1]) as crowd:
        time.sleep(3)
        profiler = WholeHost(settings.phlox, in_kernel)
        row = sections.slow_down(settings, profiler, version, "root", "hard.py", [50], HOST_RATE, settings.scaled(15, 3), on=3.0, off=2.0)
        if row["error"]:
            return row
        session = profiler.start(os.getpid(), HOST_RATE, settings.scaled(40, 12))
        time.sleep(8)
        before, since = sections.cpu_seconds(session.process.pid), time.monotonic()
        time.sleep(settings.scaled(25, 3))
        row["recorder_cpu"] = (sections.cpu_seconds(session.process.pid) - before) / (time.monotonic() - since)
        outcome = session.finish()
        crowd.stop()
    row["error"] = outcome.error
    if not outcome.error:
        row.update(recorded=len(outcome.recording.modes), rss_mib=outcome.rss_mib)
    return row


def going_us(settings, profiler, version, depth):
    """(the recorder's CPU per sample after its start, by the scheduler's clock; the error)."""
    python, prefix = profiler.python(settings.pythons, version)
    with Target(python, "depth.py", [depth], prefix=prefix) as target:
        session = profiler.start(target.pid, RATE, settings.scaled(20, 6))
        time.sleep(3)
        before, since = scheduled(session.process.pid), time.monotonic()
        time.sleep(settings.scaled(15, 2))
        used, seconds = scheduled(session.process.pid) - before, time.monotonic() - since
        outcome = session.finish()
    return None if outcome.error else used / seconds / (outcome.samples / outcome.seconds) / 1e3, outcome.error


def scheduled(pid):
    return sum(spent for _, spent in sections.charged(pid))


def kernel(settings):
    result = {"in_turn": [], "beside": [], "recorder": [], "host": []}
    usual = settings.usual_version()
    tool = os.path.join(os.path.dirname(settings.reading), "kernel_cost")
    if usual is None or not os.path.exists(tool):
        raise RuntimeError("the section kernel needs CPython 3.11, 3.12 or 3.13, and %s: make build-reading builds it" % tool)

    def keep(part, row):
        settings.log("kernel", row)
        result[part].append(row)

    for target in TARGETS:
        if settings.only and not target[0].startswith(settings.only):
            continue
        # The partner of `switches` must share its CPU, and the recorder must not; only kernel_cost can choose
        # its CPU.
        alone = target[1] == SWITCHES
        version = target[4] or (usual if target[1] != "forest.py" else next(v for v in NATIVE_VERSIONS if v in settings.pythons))
        if version in settings.pythons:
            keep("in_turn", in_turn_row(settings, tool, version, target))
            if not alone and not settings.only:
                keep("beside", peer_row(settings, version, target))
    if settings.only:
        return result
    peers = [PySpy(settings.cache), Austin(settings.cache)] if settings.with_peers else []
    for peer in peers:
        for label, script, args in (("depth 50", "depth.py", [50]), ("depth 200", "depth.py", [200])):
            keep("beside", dict(sections.slow_down(settings, peer, usual, "root", script, args, RATE, settings.scaled(6, 2)), target=label))
    for profiler in (Phlox(settings.phlox, in_kernel=True), Phlox(settings.phlox), *peers):
        for depth in (50, 200):
            row = sections.recorder_row(settings, profiler, usual, "root", depth, settings.scaled(10, 2))
            going, error = going_us(settings, profiler, usual, depth)
            keep("recorder", {**row, "going_us": going, "error": row["error"] or error})
    for in_kernel in (True, False):
        keep("host", host_row(settings, usual, in_kernel))
    return result


def document(data):
    text = ["## Inside the kernel", "", "`record --way kernel` at 1 kHz. The target has a CPU to itself, and three states take turns: nothing is attached; the BPF programs are attached, but no process is chosen, so that "
            "they end at once at each event (*empty programs*); the target is sampled. *In all* is the slow-down from the first state to the third, *above the empty programs* that from the second. "
            "Each is the geometric mean of the ratios without the lowest and the highest tenth. *Own clock*: the share of a CPU that the programs say they used. The targets *switches* "
            "leave their CPU as often as they can, with more or less work in between: the target and a partner pass a byte to and fro on one CPU.", ""]
    text.append(table(["tool", "Python", "target", "rounds", "above the empty programs", "empty programs", "in all", "walks a second", "switches a second", "own clock", "lost"], [
        [r["tool"], r["python"], r["target"], r.get("pairs", "failed: " + r["error"][:60])] + (["-"] * 7 if r["error"] else [
            slow_down(dict(r["above_empty"])), slow_down(dict(r["of_empty"])), slow_down(dict(r["slow_down"])), number(r["walks_a_second"], "%.0f"), number(r.get("switches_a_second"), "%.0f"), percent(r["own_clock"]), r["lost"]])
        for r in data["in_turn"]]))
    if not data["beside"]:
        return "\n".join(text)
    text.append("The same targets, read from outside (as in \"Cost to the target\") and by peers:\n")
    text.append(table(["tool", "Python", "target", "Hz", "pairs", "slow-down", "samples a second"], [
        [r["tool"], r["python"], r["target"], r["rate"], r.get("pairs", "-"), slow_down(r), number(r.get("samples_a_second"), "%.0f")] for r in data["beside"]]))
    text.append("The CPU that the recorder uses: in ten seconds with its start and its end, and once it has begun (schedstat over 15 s).\n")
    text.append(table(["tool", "Python", "depth", "Hz", "samples a second", "us of CPU a sample", "once begun", "RSS MiB"], [
        [r["tool"], r["python"], r["depth"], r["rate"], number(r.get("samples_a_second"), "%.0f"), number(r.get("cpu_us_a_sample"), "%.1f") if not r["error"] else "failed",
         number(r.get("going_us"), "%.1f"), number(r.get("rss_mib"), "%.0f")] for r in data["recorder"]]))
    text.append("The whole host at %d Hz, with %d processes that do a little and one that works: the slow-down of that one, and the CPU that the recorder uses once it knows them all.\n"
                % (HOST_RATE, HOST_PROCESSES))
    text.append(table(["tool", "Python", "recorded", "pairs", "slow-down", "recorder's CPU", "RSS MiB"], [
        [r["tool"], r["python"], r.get("recorded", "failed: " + r["error"][:60]), r.get("pairs", "-"), slow_down(r), percent(r.get("recorder_cpu")),
         number(r.get("rss_mib"), "%.0f")] for r in data["host"]]))
    return "\n".join(text)
