"""The section `start`: what a recording takes before it has shown anything. CPU, memory and the time until the first
sample for one process, in each mode; CPU and memory for many processes and threads that are nearly all idle; and
memory and the time at the end with native frames of huge libraries, of which no symbol table was read before."""
import os
import shutil
import subprocess
import tempfile
import time

from . import install
from .recording import Recording
from .statistics import median
from .tables import number, percent, table
from .target import Target

RATE = 100
SECONDS = 0.3
MODES = [("kernel", ["--way", "kernel"]), ("kernel, native", ["--way", "kernel", "--native"]), ("outside", ["--way", "no-kernel"])]
IDLE_PROCESSES, IDLE_THREADS = 200, 500
# By then it knows them all.
SETTLES = 6


def resources_of(command, environment=None):
    """Runs it. (seconds from just before its start to its end, seconds of CPU, peak RSS in MiB, what it printed, exit status)"""
    output = tempfile.TemporaryFile()
    process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment)
    begun, peak = time.monotonic(), 0
    while True:
        # rusage's maximum includes this process's own fork, which is larger.
        peak = max(peak, peak_of(process.pid))
        done, status, usage = os.wait4(process.pid, os.WNOHANG)
        if done:
            break
        time.sleep(0.004)
    elapsed = time.monotonic() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    output.seek(0)
    return elapsed, usage.ru_utime + usage.ru_stime, peak, output.read().decode(errors="replace"), process.returncode


def peak_of(pid):
    try:
        with open("/proc/%d/status" % pid) as file:
            return next((int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM:")), 0)
    except OSError:
        return 0


def cpu_of(pid):
    """The scheduler's sum over all threads."""
    with open("/proc/%d/stat" % pid) as file:
        words = file.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def one_process(settings, version, mode, words):
    row = {"python": version, "mode": mode, "error": ""}
    waits, cpus, peaks = [], [], []
    with Target(settings.pythons[version], "hard.py", [50]) as target:
        for _ in range(settings.scaled(11, 3)):
            with tempfile.TemporaryDirectory(prefix="phlox-bench-", dir="/var/tmp") as folder:
                output = os.path.join(folder, "out.phlox")
                command = [settings.phlox, "record", "-p", str(target.pid), "-r", str(RATE), "-d", str(SECONDS), "-o", output] + words
                begun = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
                _, cpu, peak, text, status = resources_of(command)
                if status != 0:
                    row["error"] = text.strip()[-300:]
                    return row
                # A row spans wall_ns with `samples` samples, the first at the end of its own share.
                waits.append((min(r[0] + r[1] / r[3] for r in Recording(output).rows if r[3]) - begun) / 1e6)
            cpus.append(cpu)
            peaks.append(peak)
    row.update(runs=len(waits), first_ms=median(waits), worst_ms=max(waits), cpu_s=median(cpus), rss_mib=median(peaks))
    return row


def crowd(settings, version, mode, words):
    row = {"python": version, "mode": mode, "processes": IDLE_PROCESSES, "threads": IDLE_THREADS, "error": ""}
    seconds = settings.scaled(20, 6)
    with Target(settings.pythons[version], "crowd.py", [IDLE_PROCESSES, 1]) as many, Target(settings.pythons[version], "crowd.py", [1, IDLE_THREADS]) as threads:
        folder = tempfile.mkdtemp(prefix="phlox-bench-", dir="/var/tmp")
        command = [settings.phlox, "record", "-p", str(many.pid), "-p", str(threads.pid), "-r", str(RATE), "-d", str(SETTLES + seconds + 1), "-o", os.path.join(folder, "out.phlox")] + words
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        time.sleep(SETTLES)
        row["start_cpu_s"] = cpu_of(process.pid)
        since = time.monotonic()
        time.sleep(seconds)
        row["cpu"] = (cpu_of(process.pid) - row["start_cpu_s"]) / (time.monotonic() - since)
        row["rss_mib"] = peak_of(process.pid)
        text = process.communicate()[1].decode(errors="replace")
        if process.returncode != 0:
            row["error"] = text.strip()[-300:]
        else:
            recording = Recording(os.path.join(folder, "out.phlox"))
            row["recorded"], row["lost"] = len(recording.modes), recording.counters.get("lost", 0)
        shutil.rmtree(folder, ignore_errors=True)
        many.stop()
        threads.stop()
    return row


def huge(settings):
    """With a folder of its own for what Phlox keeps between recordings: empty, then as the first one left it."""
    version = next((v for v in ("3.12", "3.11") if v in settings.versions), None)
    if version is None:
        return
    with tempfile.TemporaryDirectory(prefix="phlox-bench-", dir="/var/tmp") as folder, Target(install.huge_packages(settings.cache, settings.pythons[version], version), "huge.py") as target:
        for cache in ("cold", "warm"):
            seconds = 3
            command = [settings.phlox, "record", "--native", "-p", str(target.pid), "-r", "1000", "-d", str(seconds), "-o", os.path.join(folder, cache + ".phlox")]
            elapsed, cpu, peak, text, status = resources_of(command, dict(os.environ, XDG_CACHE_HOME=folder))
            yield {"python": version, "cache": cache, "rss_mib": peak, "cpu_s": cpu, "beyond_s": elapsed - seconds, "said": text.strip().splitlines()[:3], "error": "" if status == 0 else text.strip()[-300:]}


def start(settings):
    result = {"one": [], "crowd": [], "huge": []}

    def keep(part, row):
        settings.log("start", row)
        result[part].append(row)

    version = settings.usual_version()
    if version is None:
        return result
    for mode, words in MODES:
        keep("one", one_process(settings, version, mode, words))
    for mode, words in MODES[::2]:
        keep("crowd", crowd(settings, version, mode, words))
    for row in huge(settings):
        keep("huge", row)
    return result


def document(data):
    text = ("## Start\n\nA recording of one busy process, of %g s at %d Hz: the CPU is that of the whole command, the first sample is counted from the start of the command.\n\n" % (SECONDS, RATE))
    text += table(["Python", "mode", "runs", "first sample, ms", "worst", "CPU, s", "peak RSS, MiB"], [
        [r["python"], r["mode"]] + (["failed: " + r["error"][:60]] + ["-"] * 4 if r["error"] else
                                    [r["runs"], number(r["first_ms"], "%.0f"), number(r["worst_ms"], "%.0f"), number(r["cpu_s"], "%.3f"), number(r["rss_mib"], "%.1f")]) for r in data["one"]])
    text += "\n%d idle processes and one with %d idle threads, in one recording. The start is what it has used after %d s.\n\n" % (IDLE_PROCESSES, IDLE_THREADS, SETTLES)
    text += table(["Python", "mode", "recorded", "CPU of the start, s", "CPU after it", "peak RSS, MiB", "lost"], [
        [r["python"], r["mode"], r.get("recorded", "failed: " + r["error"][:60]), number(r["start_cpu_s"], "%.2f"), percent(r["cpu"]), number(r["rss_mib"], "%.0f"), r.get("lost", "-")] for r in data["crowd"]])
    text += "\n`record --native` of a process with huge libraries, when no earlier recording has read them (*cold*), and after one has.\n\n"
    return text + table(["Python", "cache", "peak RSS, MiB", "time beyond the recording's, s", "CPU, s"], [
        [r["python"], r["cache"], number(r["rss_mib"], "%.0f"), number(r["beyond_s"], "%.1f"), number(r["cpu_s"], "%.1f")] for r in data["huge"]])
