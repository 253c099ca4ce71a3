"""The section `crowds`: many threads of which few run, and many processes and threads that are nearly all idle."""
import itertools
import os
import time

from .peers import Chroot, Phlox, Tachyon
from .sections import cpu_seconds, of_pairs, one_run, slow_down
from .tables import number, table
from .target import Target

FEW_OF_MANY = [2, 197]  # threads.py: in addition to the main thread, two run and these wait
NAPS = [1, 0.02]  # s, for a third of them
RATE = 100
# Three threads alternate every 5 ms: in a tenth of a second the measured one runs too seldom.
SPAN = 0.4
# By then the recorder has done its one-time reads: it has found 200 processes, and knows their names and code objects.
SETTLES = 5


def rounds_of(settings, version, args, rate, seconds):
    """Passes over all threads per second, as counted in the recording."""
    with Target(settings.pythons[version], "threads.py", args) as target:
        outcome = Phlox(settings.phlox).start(target.pid, rate, seconds).finish()
    return float("nan") if outcome.error else outcome.recording.counters["ticks"] / (outcome.recording.counters["elapsed_ns"] * 1e-9)


def threads_rows(settings, version):
    for nap, rate in itertools.product(NAPS, (100, 1000)):
        args = [*FEW_OF_MANY, nap]
        row, ratios = one_run(settings, version, "root", "threads.py", args, rate, settings.scaled(40, 8), SPAN, 0.02, Phlox(settings.phlox))
        if not row["error"]:
            row.update(of_pairs(ratios), rounds_a_second=rounds_of(settings, version, args, rate, settings.scaled(10, 2)))
        yield dict(row, nap=nap)
    peers = settings.peers()
    with Chroot(next((p.root for p, _ in peers if isinstance(p, Tachyon)), None)):
        for peer, versions in peers:
            for of in versions:
                yield dict(slow_down(settings, peer, of, "root", "threads.py", [*FEW_OF_MANY, NAPS[0]], 1000, settings.scaled(6, 2)), nap=NAPS[0])


def idle_row(settings, version, processes, threads):
    """The CPU that the recorder uses after its start."""
    row = {"python": version, "processes": processes, "threads": threads, "error": ""}
    seconds = settings.scaled(20, 4)
    with Target(settings.pythons[version], "crowd.py", [processes, threads]) as target:
        session = Phlox(settings.phlox).start(target.pid, RATE, SETTLES + seconds + 2)
        time.sleep(SETTLES)
        before, since = cpu_seconds(session.process.pid), time.monotonic()
        time.sleep(seconds)
        row["cpu"] = (cpu_seconds(session.process.pid) - before) / (time.monotonic() - since)
        outcome = session.finish()
        target.stop()
    row["error"] = outcome.error
    if not outcome.error:
        row["recorded"] = len(outcome.recording.modes)
        row["rss_mib"] = outcome.rss_mib
    return row


def crowds(settings):
    version = settings.usual_version()
    result = {"threads": [], "idle": [], "cpus": os.cpu_count()}
    if version is None:
        return result
    for row in threads_rows(settings, version):
        settings.log("crowds", row)
        result["threads"].append(row)
    for processes, threads in ((200, 1), (1, 500)):
        row = idle_row(settings, version, processes, threads)
        settings.log("crowds", row)
        result["idle"].append(row)
    return result


def document(data):
    text = ("## Crowds\n\nOne process with 200 threads. Three of them run and count their work; the others wait for a lock, wait for a pipe, or sleep for the time of the column *nap*. "
            "With naps of 20 ms, threads wake 3,300 times per second. The slow-down is that of \"Cost to the target\". A *round* is one sample of every thread.\n\n")
    text += table(["tool", "Python", "nap", "Hz", "rounds a second", "samples a second", "pairs", "slow-down"], [
        [r["tool"], r["python"], number(r["nap"], "%g s"), r["rate"], number(r.get("rounds_a_second"), "%.0f"), number(r.get("samples_a_second"), "%.0f"), r.get("pairs", "-"),
         "failed: " + r["error"] if r["error"] else "%.3f (%.3f to %.3f)" % (r["slow_down"], r["low"], r["high"])] for r in data["threads"]])
    text += ("\nMany processes or threads that hardly run: each sleeps for up to four seconds, then works for a moment. The CPU that the recorder uses at %d Hz, once it knows them all:\n\n" % RATE)
    return text + table(["Python", "processes", "threads of each", "recorded", "recorder's CPU", "RSS MiB"], [
        [r["python"], r["processes"], r["threads"], r.get("recorded", "failed: " + r["error"]), "%.1f %%" % (100 * r["cpu"]), number(r.get("rss_mib"), "%.0f")]
        for r in data["idle"]])
