"""The sections of `make bench`, one function each: it measures and returns rows (plain dictionaries) for tables.py."""
import bisect
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

from . import possible
from .peers import Austin, Chroot, Phlox, PySpy, Tachyon
from .recording import Recording
from .statistics import bootstrap, mean, median, shares, typical_ratio, upper_bound_of_none, variation, wilson
from .target import TARGETS, Target, as_user, throughput

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(BENCH, "reading"))

HARD = [("hard 50", "hard.py", [50]), ("hard 200", "hard.py", [200]), ("leaf", "leaf.py", [])]
# Free-threaded builds: all threads run at once.
AT_ONCE = ("hard threads", "hard_threads.py", [20, 3])


class Settings:
    """The options of the command line."""

    def __init__(self, phlox, reading, pythons, versions, users, cache, quick, with_peers, log, part=1.0, only=None, in_kernel=False, rate=None):
        self.phlox, self.reading, self.pythons, self.versions = phlox, reading, pythons, versions
        self.users, self.cache, self.quick, self.with_peers, self.log = users, cache, quick, with_peers, log
        self.part, self.only, self.in_kernel, self.rate = part, only, in_kernel, rate

    def own(self):
        """Phlox as section truth measures it."""
        return Phlox(self.phlox, in_kernel=self.in_kernel)

    def scaled(self, full, quick):
        return quick if self.quick else full

    def samples(self, full, quick):
        return quick if self.quick else max(quick, int(full * self.part))

    def usual_version(self):
        """The version that represents the others where a number takes minutes; None: none of those is measured."""
        return next((v for v in ("3.12", "3.13", "3.11") if v in self.versions), None)

    def peers(self):
        """(profiler, versions it is measured on), without phlox."""
        if not self.with_peers:
            return []
        first = [self.usual_version()] if self.usual_version() else []
        peers = [(PySpy(self.cache), first), (Austin(self.cache), first)]
        for blocking in (True, False):
            tachyon = Tachyon(self.cache, blocking)
            if tachyon.available():
                peers.append((tachyon, ["3.15"]))
        return peers


def stopped_leaves(settings, pid, version, samples):
    """Leaf counts of the same process, stopped by ptrace for every sample (bench/reading); None if that
    cannot be built."""
    import experiment as reading
    if not os.path.exists(settings.reading) or version not in reading.LAYOUTS:
        return None
    command = [settings.reading, "--pid", str(pid), "--runtime", "%x" % reading.runtime_address(pid), "--python",
               version, "--samples", str(samples), "--way", "ptrace", "--rate", "5000"]
    return reading.read_once(command, 600)["leaves"]


def leaves_of(outcome):
    """Leaf counts; for Phlox only of rows in which the thread ran, as in the stopped reference."""
    result = {}
    if outcome.recording is not None:
        for _, _, cpu, samples, stack, quality in outcome.recording.rows:
            names = outcome.recording.names(stack)
            if cpu > 0 and names and quality != Recording.REJECTED:
                result[names[-1]] = result.get(names[-1], 0) + samples
        return result
    for names, count in outcome.stacks.items():
        if names:
            result[names[-1]] = result.get(names[-1], 0) + count
    return result


def add(counts, more):
    for name, count in (more or {}).items():
        counts[name] = counts.get(name, 0) + count


def families_row(settings, profiler, version, user, label, script, args, rate, samples):
    """Truth in the hard case, interleaved with the stopped reference on the same process."""
    python, prefix = profiler.python(settings.pythons, version)
    row = {"tool": profiler.name, "python": version, "user": user, "target": label, "rate": rate, "samples": 0, "impossible": 0,
           "failed": 0, "detached": 0, "error": ""}
    own, reference, rounds = {}, ({}, {}), settings.scaled(5, 1)  # even and odd rounds of the reference
    with Target(python, script, args, user=user, prefix=prefix) as target:
        for round_number in range(rounds):
            outcome = profiler.start(target.pid, rate, max(1, samples / rounds / rate), user).finish()
            if outcome.error:
                row["error"] = outcome.error
                break
            row["samples"] += outcome.samples
            row["failed"] += outcome.failed
            detached = detached_stacks(outcome)
            row["detached"] += sum(detached.values())
            for names, count in outcome.stacks.items():
                if not possible.families(names):
                    row["impossible"] += count - min(count, detached.get(names, 0))
            add(own, leaves_of(outcome))
            # The stopped reference knows one thread.
            if isinstance(profiler, Phlox) and user == settings.users[0] and label != AT_ONCE[0]:
                add(reference[round_number % 2], stopped_leaves(settings, target.pid, version, samples // rounds))
    if any(reference):
        row["tv_itself"], row["tv_itself_chance"] = variation(*reference)
        both = dict(reference[0])
        add(both, reference[1])
        row["tv"], row["tv_chance"] = variation(own, both)
    total = row["samples"] + row["failed"]
    row["accepted"] = row["samples"] / total if total else 0
    row["bound"] = upper_bound_of_none(row["samples"]) if not row["impossible"] else wilson(row["impossible"], row["samples"], 1.96)[1]
    return row


def detached_stacks(outcome):
    """Stacks that the recorder marked as not reaching the base: reported as parts, not as whole."""
    result = {}
    if outcome.recording is None:
        return result
    for row in outcome.recording.rows:
        if row[5] == Recording.DETACHED:
            names = tuple(outcome.recording.names(row[4]))
            result[names] = result.get(names, 0) + row[3]
    return result


def fresh_row(settings, version, user, kind, rate, samples):
    """Names identify the moment: each must have existed at the sample's time."""
    row = {"python": version, "user": user, "target": "fresh " + kind, "rate": rate, "samples": 0, "named": 0, "wrong": 0, "rejected": 0, "error": ""}
    profiler = settings.own()
    with Target(settings.pythons[version], "fresh.py", [kind], user=user) as target:
        outcome = profiler.start(target.pid, rate, max(1, samples / rate), user).finish()
    if outcome.error:
        row["error"] = outcome.error
        return row
    newest = -1
    for start, wall, _, count, stack, quality in outcome.recording.rows:
        serial = possible.serial(outcome.recording.names(stack))
        row["samples"] += count
        if quality == Recording.REJECTED:
            row["rejected"] += count
            continue
        if serial is None:
            continue
        row["named"] += count
        # A row has one serial, and serials only increase.
        if serial < newest or serial == -1:
            row["wrong"] += count
        newest = max(newest, serial)
    return row


def shares_row(settings, version, user, rate, seconds, runs):
    """In how many of `runs` known shares are inside the printed 99 % interval."""
    row = {"python": version, "user": user, "rate": rate, "runs": 0, "inside": 0, "worst": 0.0, "error": ""}
    profiler = settings.own()
    for _ in range(runs):
        with Target(settings.pythons[version], "shares.py", [], user=user) as target:
            outcome = profiler.start(target.pid, rate, seconds, user).finish()
            report = target.stop()
        if outcome.error:
            row["error"] = outcome.error
            return row
        truth = shares(report["truth"])
        # Samples of threads that left their CPU were not triggered by the clock: they say nothing about shares.
        samples = [(outcome.recording.names(row[4]), row[3]) for row in outcome.recording.rows if row[2] > 0 or not settings.in_kernel]
        seen = {name: sum(c for names, c in samples if name in names) for name in truth}
        total = sum(seen.values())
        if not total:
            row["error"] = "no sample"
            return row
        row["runs"] += 1
        inside = True
        for name, share in truth.items():
            low, high = wilson(seen[name], total)
            inside = inside and low <= share <= high
            row["worst"] = max(row["worst"], abs(seen[name] / total - share) if total else 1)
        row["inside"] += inside
    return row


def ordinary_row(settings, version, user, rate, samples):
    row = {"tool": "phlox", "python": version, "user": user, "target": "ordinary", "rate": rate, "error": ""}
    profiler = settings.own()
    own, reference, rounds = {}, {}, settings.scaled(5, 1)
    taken = failed = rootless = 0
    with Target(settings.pythons[version], "ordinary.py", user=user) as target:
        for _ in range(rounds):
            outcome = profiler.start(target.pid, rate, max(1, samples / rounds / rate), user).finish()
            if outcome.error:
                row["error"] = outcome.error
                return row
            taken, failed = taken + outcome.samples, failed + outcome.failed
            detached = sum(detached_stacks(outcome).values())
            rootless += sum(c for n, c in outcome.stacks.items() if not n or n[0] != "<module>") - detached
            add(own, leaves_of(outcome))
            add(reference, stopped_leaves(settings, target.pid, version, samples // rounds))
    row.update(samples=taken, accepted=taken / max(1, taken + failed), impossible=max(0, rootless))
    if reference:
        row["tv"], row["tv_chance"] = variation(own, reference)
    return row


def truth(settings):
    result = {"families": [], "fresh": [], "shares": [], "ordinary": []}
    # For each of three targets: 300,000 per version at 5 kHz, a third of it at 1 kHz.
    samples = {5000: settings.samples(100000, 5000), 1000: settings.samples(34000, 2000)}
    many = settings.usual_version(), settings.users[0]
    for version in settings.versions:
        for user in settings.users:
            for label, script, args in HARD + ([AT_ONCE] if version.endswith("t") else []):
                if settings.only not in (None, label):
                    continue
                for rate in (5000, 1000) if settings.rate is None else (settings.rate,):
                    # The difference of independent samples falls with the root of their number: to get below
                    # 0.01, the leaf's few functions take 100,000, and the hundred of hard 50 some 400,000,
                    # measured for only one version and user.
                    times = 6 if label == "hard 50" and rate == 5000 and (version, user) == many else 1
                    row = families_row(settings, settings.own(), version, user, label, script, args, rate, times * samples[rate])
                    settings.log("truth", row)
                    result["families"].append(row)
            if settings.only:
                continue
            for kind in ("exec", "template"):
                result["fresh"].append(fresh_row(settings, version, user, kind, 5000, samples[5000]))
                settings.log("truth", result["fresh"][-1])
            result["shares"].append(shares_row(settings, version, user, 1000, settings.scaled(5, 1), settings.scaled(20, 3)))
            settings.log("truth", result["shares"][-1])
            result["ordinary"].append(ordinary_row(settings, version, user, 5000, samples[5000]))
            settings.log("truth", result["ordinary"][-1])
    peers = settings.peers()
    with Chroot(next((p.root for p, _ in peers if isinstance(p, Tachyon)), None)):
        for peer, versions in peers:
            for version in versions:
                row = families_row(settings, peer, version, "root", "hard 50", "hard.py", [50], 1000, settings.scaled(5000, 1000))
                settings.log("truth", row)
                result["families"].append(row)
    return result


def beats(settings, version, user, script, args, rate, pairs, span_seconds=0.1):
    """Slow-down by phlox: one recording whose recorder is alternately stopped and resumed. The speed of a
    virtual machine's host changes by half within seconds: only neighbours a tenth of a second apart are
    comparable. A stopped recorder still costs what its perf event does to the CPU it is open on (root): an
    interrupt per sample, below 0.2 % at 1 kHz."""
    row, ratios = one_run(settings, version, user, script, args, rate, pairs, span_seconds, 0.02, Phlox(settings.phlox))
    return row if row["error"] else {**row, **of_pairs(ratios)}


def of_pairs(ratios):
    value, low, high = bootstrap(ratios, typical_ratio, rounds=1000)
    return {"slow_down": value, "low": low, "high": high, "mean": mean(ratios), "pairs": len(ratios)}


def one_run(settings, version, user, script, args, rate, pairs, span_seconds, settle, profiler):
    """(row, slow-down of each pair); `alone`: units per second while the recorder was stopped."""
    python, prefix = profiler.python(settings.pythons, version)
    row = {"tool": profiler.name, "python": version, "user": user, "target": " ".join([script] + [str(a) for a in args]), "rate": rate, "error": ""}
    quiet, busy, stolen = [], [], {}
    with Target(python, script, args, user=user, prefix=prefix) as target:
        time.sleep(0.3)
        session = profiler.start(target.pid, rate, 3600, user)
        time.sleep(1.0)

        def span(signal_number, into):
            os.kill(session.process.pid, signal_number)
            time.sleep(settle)
            begin, steal = time.monotonic(), stolen_seconds()
            time.sleep(span_seconds)
            into.append((begin, time.monotonic()))
            stolen[into[-1]] = stolen_seconds() - steal

        cpu = cpu_seconds(session.process.pid)
        for _ in range(pairs):
            span(signal.SIGSTOP, quiet)
            span(signal.SIGCONT, busy)
        span(signal.SIGSTOP, quiet)
        cpu = cpu_seconds(session.process.pid) - cpu
        os.kill(session.process.pid, signal.SIGCONT)
        session.process.send_signal(signal.SIGINT)
        outcome = session.finish()
        windows = target.stop()["windows"]
    if outcome.error:
        row["error"] = outcome.error
        return row, []
    ratios, alone = [], []
    for i, span_on in enumerate(busy):
        if max(stolen[s] for s in (quiet[i], span_on, quiet[i + 1])) > MOST_STOLEN * span_seconds * os.cpu_count():
            continue
        base = (throughput(windows, *quiet[i]) + throughput(windows, *quiet[i + 1])) / 2
        alone.append(base)
        ratios.append(base / throughput(windows, *span_on))
    if len(ratios) < 3:
        row["error"] = "the host took its CPUs back in all but %d of %d pairs" % (len(ratios), pairs)
        return row, []
    row["alone"] = median(alone)
    taken = taken_within(outcome.recording, busy)
    row["samples_a_second"] = taken / sum(end - begin for begin, end in busy)
    row["cpu_us_a_sample"] = cpu / (row["samples_a_second"] * pairs * (span_seconds + settle)) * 1e6 if taken else float("nan")
    return row, ratios


# Share of the time of all CPUs, in a span that is compared with its neighbours.
MOST_STOLEN = 0.02


def stolen_seconds():
    """CPU time that a virtual machine's host took for others."""
    with open("/proc/stat") as file:
        fields = file.readline().split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK") if len(fields) > 8 else 0


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def charged(pid):
    """(thread, ns of CPU that the kernel has charged to it) for each existing thread."""
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, task)) as file:
            yield task, int(file.read().split()[0])


def taken_within(recording, spans):
    """The samples of a recording in these spans of the monotonic clock (seconds); those of a row are spread
    evenly over it."""
    starts = [int(begin * 1e9) for begin, _ in spans]
    taken = 0.0
    for start, wall, _, samples, _, quality in recording.rows:
        if quality == Recording.REJECTED:
            continue
        end = start + wall
        at = max(0, bisect.bisect_right(starts, start) - 1)
        while at < len(spans) and starts[at] < end:
            shared = min(end, int(spans[at][1] * 1e9)) - max(start, starts[at])
            if shared > 0 and wall:
                taken += samples * shared / wall
            at += 1
    return taken


def slow_down(settings, profiler, version, user, script, args, rate, pairs, on=1.5, off=1.0):
    """Ratio of a process's throughput in pairs of neighbouring spans, without and with the profiler. Peers:
    each span is a recording of its own, since a stopped profiler may keep its target stopped."""
    python, prefix = profiler.python(settings.pythons, version)
    row = {"tool": profiler.name, "python": version, "user": user, "target": " ".join([script] + [str(a) for a in args]), "rate": rate, "error": ""}
    settle = 0.4
    quiet, busy, samples, cpu, seconds = [], [], 0, 0.0, 0.0
    with Target(python, script, args, user=user, prefix=prefix) as target:
        time.sleep(settle)
        for _ in range(pairs):
            begin = time.monotonic()
            time.sleep(off)
            quiet.append((begin, time.monotonic()))
            session = profiler.start(target.pid, rate, settle + on + 0.1, user)
            outcome = session.finish()
            if outcome.error:
                row["error"] = outcome.error
                return row
            if isinstance(profiler, Phlox):
                busy.append((session.begun + settle, session.begun + settle + on))
            else:
                # They start slowly and write at the end: only the second before that is sure to be sampled.
                end = session.begun + outcome.elapsed - 0.3
                busy.append((end - max(1.0, on - 0.5), end))
            samples, cpu, seconds = samples + outcome.samples, cpu + outcome.cpu, seconds + outcome.seconds
            time.sleep(0.2)
        begin = time.monotonic()
        time.sleep(off)
        quiet.append((begin, time.monotonic()))
        windows = target.stop()["windows"]
    ratios = []
    for i, span in enumerate(busy):
        base = (throughput(windows, *quiet[i]) + throughput(windows, *quiet[i + 1])) / 2
        ratios.append(base / throughput(windows, *span))
    row["slow_down"], row["low"], row["high"] = bootstrap(ratios)
    row["pairs"] = len(ratios)
    row["samples_a_second"] = samples / seconds if seconds else 0
    row["cpu_us_a_sample"] = cpu / samples * 1e6 if samples else float("nan")
    return row


def yardstick(settings, version, module, words):
    """cProfile and trace run the whole program: throughput with and without, in interleaved runs."""
    ratios = []
    python = settings.pythons[version]
    for _ in range(settings.scaled(5, 2)):
        rates = []
        for prefix in ([], ["-m", module] + words):
            command = [python] + prefix + [os.path.join(TARGETS, "hard.py"), "2", "50"]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=tempfile.gettempdir())
            line = next((x for x in done.stdout.splitlines() if x.startswith('{"pid"')), None)
            if line is None:
                return {"tool": "python -m " + module, "python": version, "error": "no report"}
            report = json.loads(line)
            rates.append(report["units"] / report["wall"])
        ratios.append(rates[0] / rates[1])
    value, low, high = bootstrap(ratios)
    return {"tool": "python -m " + module, "python": version, "user": "root", "target": "hard.py 50", "rate": "all calls",
            "slow_down": value, "low": low, "high": high, "pairs": len(ratios), "error": ""}


def cost(settings):
    result = {"slow_down": []}
    # At 100 Hz the slow-down is smaller than the scatter of a single pair.
    pairs = settings.scaled(200, 40)
    for version in settings.versions:
        for user in settings.users:
            for rate in (100, 1000):
                row = beats(settings, version, user, "hard.py", [50], rate, pairs)
                settings.log("cost", row)
                result["slow_down"].append(row)
    peers = settings.peers()
    with Chroot(next((p.root for p, _ in peers if isinstance(p, Tachyon)), None)):
        for peer, versions in peers:
            for version in versions:
                for rate in (100, 1000):
                    row = slow_down(settings, peer, version, "root", "hard.py", [50], rate, settings.scaled(6, 2))
                    settings.log("cost", row)
                    result["slow_down"].append(row)
    if settings.with_peers and settings.versions:
        for module, words in (("cProfile", ["-o", os.devnull]), ("trace", ["--count", "--summary", "-C", tempfile.mkdtemp()])):
            row = yardstick(settings, settings.versions[0], module, words)
            settings.log("cost", row)
            result["slow_down"].append(row)
    return result


def recorder_row(settings, profiler, version, user, depth, seconds, rate=1000):
    python, prefix = profiler.python(settings.pythons, version)
    row = {"tool": profiler.name, "python": version, "user": user, "depth": depth, "rate": rate, "error": ""}
    with Target(python, "depth.py", [depth], user=user, prefix=prefix) as target:
        outcome = profiler.start(target.pid, rate, seconds, user).finish()
    if outcome.error:
        row["error"] = outcome.error
        return row
    row.update(samples=outcome.samples, samples_a_second=outcome.samples / outcome.seconds, rss_mib=outcome.rss_mib,
               cpu_us_a_sample=outcome.cpu / max(1, outcome.samples) * 1e6)
    return row


def floor_row(settings, user):
    """The minimum cost of a sample: an empty wake-up, and the copy of one page and 50 code objects (bench/reading/wake.cpp)."""
    tool = os.path.join(os.path.dirname(settings.reading), "wake")
    row = {"user": user, "error": ""}
    done = subprocess.run(as_user(user) + [tool, "--rate", "1000", "--seconds", str(settings.scaled(10, 2))], stdout=subprocess.PIPE,
                          text=True, check=False)
    if done.returncode != 0:
        row["error"] = "cannot be measured"
    else:
        row.update(json.loads(done.stdout))
    settings.log("recorder", row)
    return row


def recorder(settings):
    result = {"cpu": [], "floor": [floor_row(settings, user) for user in settings.users]}
    for version in settings.versions:
        for user in settings.users:
            for depth in (50, 200, 1000):
                row = recorder_row(settings, Phlox(settings.phlox), version, user, depth, settings.scaled(10, 2))
                settings.log("recorder", row)
                result["cpu"].append(row)
    peers = settings.peers()
    with Chroot(next((p.root for p, _ in peers if isinstance(p, Tachyon)), None)):
        for peer, versions in peers:
            for version in versions:
                for depth in (50, 200, 1000):
                    row = recorder_row(settings, peer, version, "root", depth, settings.scaled(5, 2))
                    settings.log("recorder", row)
                    result["cpu"].append(row)
    return result


def ten_minutes(settings):
    """Rows and memory for a target whose stack changes at every sample."""
    seconds = settings.scaled(600, 5)
    result = {"size": []}
    version = settings.versions[0]
    with Target(settings.pythons[version], "hard.py", [50]) as target:
        outcome = Phlox(settings.phlox).start(target.pid, 1000, seconds).finish()
    row = {"python": version, "seconds": seconds, "error": outcome.error}
    if not outcome.error:
        rows = len(outcome.recording.rows)
        row.update(rows=rows, bytes=outcome.recording.size, bytes_a_row=outcome.recording.size / max(1, rows), rss_mib=outcome.rss_mib)
    settings.log("ten-minutes", row)
    result["size"].append(row)
    return result


def speed(settings):
    result = {"speed": []}
    version = settings.usual_version()
    pairs = settings.scaled(100, 20)
    for user in settings.users:
        for rate in (1000, 5000, 20000, 0):
            # Without a limit almost nothing is left for the target.
            row = beats(settings, version, user, "hard.py", [50], rate, pairs if rate else pairs // 5, 0.1 if rate else 1.0)
            settings.log("speed", row)
            result["speed"].append(row)
    peers = settings.peers()
    with Chroot(next((p.root for p, _ in peers if isinstance(p, Tachyon)), None)):
        for peer, versions in peers:
            for rate in (1000, 20000) + ((100000,) if peer.exact else ()):
                row = slow_down(settings, peer, versions[0], "root", "hard.py", [50], rate, settings.scaled(4, 1))
                row["exact"] = peer.exact
                settings.log("speed", row)
                result["speed"].append(row)
    return result


def at_once(settings):
    """From the start of the command to the first sample. The time to switch users is subtracted."""
    result = {"at_once": []}
    for version in settings.versions:
        for user in settings.users:
            row = {"python": version, "user": user, "error": ""}
            becoming = median([seconds_of(as_user(user) + ["/bin/true"]) - seconds_of(["/bin/true"]) for _ in range(15)]) if as_user(user) else 0
            row["becoming_ms"] = becoming * 1e3
            waits = []
            with Target(settings.pythons[version], "hard.py", [50], user=user) as target:
                for _ in range(settings.scaled(30, 8)):
                    directory = tempfile.mkdtemp(prefix="phlox-bench-", dir="/var/tmp")
                    os.chmod(directory, 0o777)
                    output = os.path.join(directory, "out.phlox")
                    command = as_user(user) + Phlox(settings.phlox).command(target.pid, 1000, 0.2, output)
                    begun = first_instruction(command)
                    try:
                        recording = Recording(output)
                        # A row spans wall_ns with `samples` samples, the first at the end of its own share.
                        waits.append((min(r[0] + r[1] / r[3] for r in recording.rows) - begun) / 1e6 - row["becoming_ms"])
                    except (OSError, sqlite3.Error, ValueError) as error:
                        row["error"] = str(error)
                        break
            if waits:
                row["median_ms"], row["low"], row["high"] = bootstrap(waits, median)
                row["worst_ms"], row["starts"] = max(waits), len(waits)
            settings.log("at-once", row)
            result["at_once"].append(row)
    return result


def seconds_of(command, **streams):
    begun = time.monotonic()
    subprocess.run(command, check=True, **streams)
    return time.monotonic() - begun


def first_instruction(command):
    """Runs the command; returns CLOCK_MONOTONIC nanoseconds from just before its start."""
    begun = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return begun


SECTIONS = {"truth": truth, "cost": cost, "recorder": recorder, "ten-minutes": ten_minutes, "speed": speed, "at-once": at_once}
