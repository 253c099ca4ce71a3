"""A day of `phlox agent` in an hour: 40 Pythons come and go, and everything around the agent fails in turn. Then what the server has
accepted must be what was sampled, to the nanosecond, and the agent must have stayed small.

    unshare -m python3 tests/cli/agent_day.py --phlox build/release/phlox --minutes 60

Prints a line of JSON for each check, and ends with 1 if one failed. Needs root (for a disk of its own that can be filled), the
collector of tools/get-otelcol.sh, and cc: the agent's wall clock is set through a library that is loaded into it, since
the kernel's time namespaces shift only the monotonic clock. test_agent_day.py runs it for a minute."""
import argparse
import collections
import contextlib
import gzip
import http.client
import http.server
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from profile_server import Otlp, sampled

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "bench"))
from harness.services import free_port, listens, on_loopback, wait_for  # noqa: E402

PROGRAMS = HERE.parents[1] / "bench" / "hosts"
COLLECTOR = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "phlox" / "otelcol" / "otelcol"
CONFIG = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{file: {{path: "{path}", flush_interval: 100ms}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{profiles: {{receivers: [otlp], exporters: [file]}}}}
"""
# Adds to the wall clock what the first eight bytes of a file say.
CLOCK = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static const volatile long* seconds;
__attribute__((constructor)) static void start(void) {
  int file = open(getenv("PHLOX_TEST_CLOCK"), O_RDONLY);
  void* at = mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
  if (at != MAP_FAILED) seconds = at;
}
int clock_gettime(clockid_t clock, struct timespec* time) {
  long done = syscall(SYS_clock_gettime, clock, time);
  if (done == 0 && clock == CLOCK_REALTIME && seconds) time->tv_sec += *seconds;
  return done;
}
"""
# What happens, for which share of the time, and the answer that shows that the agent met it (0: none). A phase lasts until there
# was such an answer: after an outage the agent pauses for longer than a phase of a short day. Whatever remains at the end is sent then.
PHASES = [("all is well", 0.1, 200), ("the collector is killed", 0.2, 0), ("it is slow", 0.15, 200), ("it asks for pauses", 0.1, 429),
          ("it takes small pushes only", 0.1, 413), ("its disk is full", 0.15, 503), ("the clock jumps", 0.1, 200), ("all is well again", 0.1, 200)]
PATIENCE = 240  # seconds
IDLE, WORKERS, COMING = 26, 6, 8  # 40 Pythons
MOST_MEMORY, MOST_GROWTH = 100 * 2**20, 20 * 2**20
MOST_CPU, MOST_TAKEN = 0.01, 0.005  # of the host; of each program


class Disk:
    """A small file system that can be filled."""

    def __init__(self, path, size):
        self.path = path
        path.mkdir(mode=0o700)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", path], check=True)

    def fill(self):
        with contextlib.suppress(OSError), open(self.path / "filler", "ab", buffering=0) as file:
            while file.write(bytes(4096)):
                pass

    def free(self):
        (self.path / "filler").unlink()

    def close(self):
        subprocess.run(["umount", "-l", self.path], check=False)


class Programs:
    """Those that run all the time, and those that come and go."""

    def __init__(self, python, folder):
        self.python, self.files, self.over = python, folder / f"day-{os.getpid()}", threading.Event()
        shutil.copytree(PROGRAMS, self.files)
        self.started, self.lock, self.running = 0, threading.Lock(), []
        for name, count in (("idle.py", IDLE), ("worker.py", WORKERS)):
            for _ in range(count):
                self.run(name)
        self.threads = [threading.Thread(target=self.come_and_go, args=(random.Random(i),)) for i in range(COMING)]
        for one in self.threads:
            one.start()

    def run(self, *words):
        one = subprocess.Popen([self.python, self.files / words[0], *words[1:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with self.lock:
            self.running.append(one)
            self.started += 1
        return one

    def come_and_go(self, random_):
        while not self.over.wait(random_.uniform(1, 15)):
            one = self.run("cron.py", str(random_.uniform(0.5, 4)))
            one.wait()
            with self.lock:
                self.running.remove(one)

    def end(self):
        self.over.set()
        for one in self.threads:
            one.join()
        for one in self.running:
            one.kill()
            one.wait()


class Relay:
    """Between the agent and the collector: keeps what was accepted, and has some of the faults."""

    def __init__(self):
        self.to, self.mode, self.accepted, self.answers = None, "", [], collections.Counter()
        relay = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, headers = relay.answer(body)
                if status == 0:
                    self.close_connection = True
                    return
                self.send_response(status)
                for name, value in {"Content-Length": "0", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.http = on_loopback(Handler)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.http.server_address[1]}"

    def answer(self, body):
        status, headers = self.fault(body)
        if status is None:
            status = self.pass_on(body)
        if status == 200:
            self.accepted.append(body)
        self.answers[self.mode, status] += 1
        return status, headers

    def fault(self, body):
        if self.mode == "it is slow":
            time.sleep(2)
        if self.mode == "it asks for pauses" and random.random() < 0.7:
            return 429, {"Retry-After": "2"}
        if self.mode == "it takes small pushes only" and len(Otlp(gzip.decompress(body)).resources) > 8:
            return 413, {}
        return None, {}

    def pass_on(self, body):
        """0: it cannot be reached, and the agent's connection breaks."""
        connection = http.client.HTTPConnection("127.0.0.1", self.to, timeout=30)
        try:
            connection.request("POST", "/v1development/profiles", body, {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"})
            answer = connection.getresponse()
            answer.read()
            return answer.status
        except OSError:
            return 0
        finally:
            connection.close()

    def sums(self):
        """({(pid, kind of time): ns}, ids of profiles, their begins and lengths)"""
        sums, ids, times = collections.Counter(), [], []
        for body in self.accepted:
            for attributes, profiles in Otlp(gzip.decompress(body)).resources:
                for profile in profiles:
                    ids.append(profile["id"])
                    times.append((profile["start"], profile["length"]))
                    sums[attributes["process.pid"], profile["type"][0]] += sum(value for _, _, value in profile["samples"])
        return dict(sums), ids, times


class Day:
    def __init__(self, options, folder):
        self.options, self.folder, self.failed = options, folder, False
        self.relay, self.state, self.stored = Relay(), Disk(folder / "state", "64m"), Disk(folder / "stored", "256m")
        self.collector, self.clock, self.memory = None, folder / "clock", []
        self.listen = free_port()
        self.clock.write_bytes(bytes(8))

    def check(self, name, passed, **more):
        print(json.dumps({"check": name, "passed": bool(passed), **more}), flush=True)
        self.failed = self.failed or not passed

    def start_collector(self):
        self.relay.to = free_port()
        config = self.folder / "collector.yaml"
        config.write_text(CONFIG.format(port=self.relay.to, path=self.stored.path / "profiles.json"))
        with open(self.folder / "collector.log", "a") as log:
            self.collector = subprocess.Popen([COLLECTOR, "--config", config, "--feature-gates=service.profilesSupport"], stderr=log)

        wait_for(lambda: listens(self.relay.to), "the collector", PATIENCE)

    def kill_collector(self):
        self.collector.kill()
        self.collector.wait()

    def start_agent(self, mark):
        library = self.folder / "clock.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", library], input=CLOCK, text=True, check=True)
        with open(self.folder / "agent.log", "w") as log:
            return subprocess.Popen(
                [self.options.phlox, "agent", "--name", mark, "--interval", f"{self.options.interval}s", "--rate", "20", "--otlp", self.relay.url, "--state", self.state.path,
                 "--listen", f"127.0.0.1:{self.listen}", "-o", self.folder / "truth.phlox", "--keep", "24h"], stderr=log,
                env={**os.environ, "LD_PRELOAD": str(library), "PHLOX_TEST_CLOCK": str(self.clock)})

    def metric(self, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.listen}/metrics", timeout=30) as answer:
            return float(re.search(r"^%s(?:\{.*\})? (.*)$" % name, answer.read().decode(), re.M)[1])

    def set_clock(self, seconds):
        with open(self.clock, "r+b") as file:
            file.write(seconds.to_bytes(8, sys.byteorder, signed=True))

    def watch(self, agent, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if agent.poll() is not None:
                raise RuntimeError("the agent ended: " + (self.folder / "agent.log").read_text())
            self.memory.append(self.metric("process_resident_memory_bytes"))
            time.sleep(min(1, max(0, end - time.monotonic())))

    def watch_until_met(self, agent, seconds, status):
        self.watch(agent, seconds)
        end = time.monotonic() + PATIENCE
        while self.relay.answers[self.relay.mode, status] == 0 and time.monotonic() < end:
            self.watch(agent, 1)

    def phase(self, agent, name, seconds, status):
        self.relay.mode = name
        if name == "the collector is killed":
            self.kill_collector()
            self.watch_until_met(agent, seconds, status)
            self.start_collector()
        elif name == "its disk is full":
            self.stored.fill()
            self.watch_until_met(agent, seconds, status)
            self.stored.free()
            # Its file exporter refuses all pushes after the first that it could not write.
            self.kill_collector()
            self.start_collector()
        elif name == "the clock jumps":
            for jump in (86400, -7200, 0):
                self.set_clock(jump)
                self.watch_until_met(agent, seconds / 3, status)
        else:
            self.watch_until_met(agent, seconds, status)

    def buffer_disk_is_full(self, agent):
        """Pushes that cannot be stored are lost, counted and said once; afterwards nothing is."""
        wait_for(lambda: self.metric("phlox_agent_buffered") == 0, "all to be sent", PATIENCE)
        before = {name: self.metric(f"phlox_agent_{name}_total") for name in ("intervals", "sent", "lost")}
        self.relay.mode = "the buffer's disk is full"
        self.state.fill()
        self.watch(agent, 4 * self.options.interval)
        self.state.free()
        self.watch(agent, 3 * self.options.interval)
        wait_for(lambda: self.metric("phlox_agent_buffered") == 0, "all to be sent", PATIENCE)
        # All three are read while nothing is under way.
        since = {name: self.metric(f"phlox_agent_{name}_total") - before[name] for name in before}
        said = (self.folder / "agent.log").read_text()
        self.check("pushes that the full disk refused are counted, and the others sent", since["lost"] >= 1 and abs(since["intervals"] - since["sent"] - since["lost"]) <= 1, **since)
        self.check("the full disk is said", said.count("they are dropped") >= 1)

    def run(self):
        programs = Programs(self.options.python, self.folder)
        agent = None
        try:
            self.start_collector()
            agent = self.start_agent(programs.files.name)
            wait_for(lambda: self.relay.accepted, "the first push", PATIENCE)
            begun = time.monotonic()
            for name, share, status in PHASES:
                self.phase(agent, name, 60 * self.options.minutes * share, status)
            elapsed = time.monotonic() - begun
            cpu, taken = self.metric("process_cpu_seconds_total"), self.metric("phlox_agent_taken_seconds_total")
            lost, samples = self.metric("phlox_agent_lost_total"), self.metric("phlox_agent_samples_total")
            self.relay.mode = "in the end"
            wait_for(lambda: self.metric("phlox_agent_buffered") == 0, "all to be sent", PATIENCE)
            agent.send_signal(signal.SIGTERM)
            agent.wait(120)
            sums, ids, times = self.relay.sums()
            truth = sampled(self.folder / "truth.phlox")
            self.check("what was accepted is what was sampled", sums == truth and lost == 0, lost=lost, samples=samples, pushes=len(self.relay.accepted), kinds=len(truth),
                       different=sum(sums.get(key) != value for key, value in truth.items()) + sum(key not in truth for key in sums))
            self.check("no profile was sent twice", len(set(ids)) == len(ids), profiles=len(ids))
            now = time.time() * 1e9
            self.check("profiles follow the clock where it jumps, and have their lengths", any(start > now for start, _ in times) and all(0 < length < 100e9 for _, length in times))
            statuses = {f"{mode}: {status}": count for (mode, status), count in sorted(self.relay.answers.items())}
            self.check("each fault was met", all(self.relay.answers[name, status] for name, _, status in PHASES), answers=statuses)
            quarter = max(1, len(self.memory) // 4)
            first, last = max(self.memory[:quarter]), max(self.memory[-quarter:])
            self.check("the agent's memory stays small", max(self.memory) <= MOST_MEMORY and last - first <= MOST_GROWTH, most_mib=max(self.memory) / 2**20, grown_mib=(last - first) / 2**20)
            self.check("its CPU is small", cpu / elapsed / os.cpu_count() <= MOST_CPU, share_of_host=cpu / elapsed / os.cpu_count(), programs=programs.started)
            of_each = taken / elapsed / (IDLE + WORKERS)
            self.check("the programs' loss is small", of_each <= MOST_TAKEN, share_of_a_cpu_of_each=of_each)
            self.relay.accepted.clear()
            agent = self.start_agent(programs.files.name)
            wait_for(lambda: self.relay.accepted, "a push of the second agent", PATIENCE)
            self.buffer_disk_is_full(agent)
            agent.send_signal(signal.SIGTERM)
            self.check("the agent ends in order", agent.wait(120) == 0)
        finally:
            if self.failed or sys.exc_info()[0]:
                logs = [log.read_text() for log in (self.folder / "agent.log", self.folder / "collector.log") if log.exists()]
                print(*(log[-30000:] for log in logs), self.relay.answers, file=sys.stderr)
            programs.end()
            for one in (agent, self.collector):
                if one is not None and one.poll() is None:
                    one.kill()
                    one.wait()
            self.relay.http.shutdown()
            for disk in (self.state, self.stored):
                disk.close()
        return 1 if self.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--phlox", required=True)
    parser.add_argument("--python", default="/usr/bin/python3", help="that runs the programs (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--interval", type=int, default=5, help="seconds (default: %(default)s)")
    options = parser.parse_args()
    options.phlox = os.path.abspath(options.phlox)
    with tempfile.TemporaryDirectory(prefix="phlox-day-") as folder:
        return Day(options, pathlib.Path(folder)).run()


if __name__ == "__main__":
    sys.exit(main())
