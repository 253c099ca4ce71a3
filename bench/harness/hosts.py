"""The section `hosts`: what `phlox agent` sends in a day from a host with eight Pythons, and what a real OpenTelemetry Collector
needs for 500 such hosts. First the real agent sends to the real collector, through a relay that keeps each push. Then the
same pushes come from 500 hosts, each under its own name and at its own moment, into a new collector.

The collector is that of tools/get-otelcol.sh; its file exporter writes the protocol's own messages, compressed with zstd."""
import gzip
import http.client
import http.server
import os
import queue
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import urllib.request

from . import install
from .services import free_port, listens, on_loopback, wait_for
from .start import cpu_of, peak_of
from .statistics import median
from .tables import number, table

PROGRAMS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "hosts")
COLLECTOR = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "phlox", "otelcol", "otelcol")
CONFIG = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{file: {{path: "{path}", format: proto, compression: zstd}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{profiles: {{receivers: [otlp], exporters: [file]}}}}
"""
PATH = "/v1development/profiles"
HOSTS, INTERVAL, RATE = 500, 15, 20
NAME = "phlox-bench-host-%03d"  # all have the same length: a name can take the place of another in a message
REQUESTS_A_SECOND, CRON_EVERY, CRON_RUNS = 5, 60, 5
DAY = 86400


def relabelled(body, host):
    """The gzipped push of host 0, from another host."""
    plain = gzip.decompress(body)
    assert (NAME % 0).encode() in plain
    return gzip.compress(plain.replace((NAME % 0).encode(), (NAME % host).encode()), 6)


def header_bytes(request):
    """Of an HTTP/1.1 request, as it was sent."""
    return len(request.requestline) + 2 + sum(len(name) + len(value) + 4 for name, value in request.headers.items()) + 2


class Collector:
    def __init__(self, folder, name):
        self.path, self.port = os.path.join(folder, name + ".zst"), free_port()
        config = os.path.join(folder, name + ".yaml")
        with open(config, "w") as file:
            file.write(CONFIG.format(port=self.port, path=self.path))
        self.log = os.path.join(folder, name + ".log")
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([COLLECTOR, "--config", config, "--feature-gates=service.profilesSupport"], stderr=log)
        try:
            wait_for(lambda: listens(self.port), "the collector")
        except TimeoutError:
            self.process.kill()
            raise
        self.cpu_at_start, self.begun = cpu_of(self.process.pid), time.monotonic()

    def end(self):
        """(CPU seconds a second, peak MiB, bytes stored)"""
        cpu, peak = cpu_of(self.process.pid) - self.cpu_at_start, peak_of(self.process.pid)
        seconds = time.monotonic() - self.begun
        self.process.terminate()
        self.process.wait()
        return cpu / seconds, peak, os.path.getsize(self.path)


class Relay:
    """Passes pushes on to a collector, and keeps them: (moment, bytes of the header, body, status)."""

    def __init__(self, to):
        self.kept, relay = [], self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                connection = http.client.HTTPConnection("127.0.0.1", to, timeout=60)
                connection.request("POST", self.path, body, {name: self.headers[name] for name in ("Content-Type", "Content-Encoding") if self.headers[name]})
                answer = connection.getresponse()
                told = answer.read()
                connection.close()
                relay.kept.append((time.monotonic(), header_bytes(self), body, answer.status))
                self.send_response(answer.status)
                self.send_header("Content-Length", str(len(told)))
                self.end_headers()
                self.wfile.write(told)

            def log_message(self, *_):
                pass

        self.http = on_loopback(Handler)

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.http.server_address[1]

    def close(self):
        self.http.shutdown()
        self.http.server_close()


class Host:
    """Eight Pythons: two that are idle (one of them gunicorn's arbiter), two workers of gunicorn and one uvicorn with requests, a worker of
    a queue, a NumPy job, and a program that comes and goes. Their command lines have `mark`."""

    def __init__(self, python, folder):
        self.python, self.mark, self.over = python, os.path.basename(folder), threading.Event()
        self.files = os.path.join(folder, "programs")
        shutil.copytree(PROGRAMS, self.files)
        self.processes, self.threads, self.answered = [], [], 0

    def start(self):
        wsgi, asgi = free_port(), free_port()
        self.run("-m", "gunicorn", "--chdir", self.files, "-w", "2", "-b", "127.0.0.1:%d" % wsgi, "--log-level", "error", "wsgi:application")
        self.run("-m", "uvicorn", "--app-dir", self.files, "--port", str(asgi), "--log-level", "error", "asgi:application")
        for name in ("idle.py", "worker.py", "numeric.py"):
            assert self.run(os.path.join(self.files, name)).stdout.readline() == "ready\n", name
        for port in (wsgi, asgi):
            wait_for(lambda: listens(port), "a server")
            self.threads.append(threading.Thread(target=self.request, args=(port,)))
        self.threads.append(threading.Thread(target=self.cron))
        for one in self.threads:
            one.start()

    def run(self, *words):
        self.processes.append(subprocess.Popen([self.python, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True))
        return self.processes[-1]

    def request(self, port):
        paths = ["/", "/list", "/?as=json"]
        while not self.over.wait(1 / REQUESTS_A_SECOND):
            with urllib.request.urlopen("http://127.0.0.1:%d%s" % (port, paths[self.answered % len(paths)]), timeout=30) as answer:
                answer.read()
            self.answered += 1

    def cron(self):
        while True:
            one = self.run(os.path.join(self.files, "cron.py"), str(CRON_RUNS))
            one.wait()
            one.stdout.close()
            self.processes.remove(one)
            if self.over.wait(CRON_EVERY - CRON_RUNS):
                return

    def end(self):
        self.over.set()
        for one in self.threads:
            one.join()
        for one in self.processes:
            os.killpg(one.pid, signal.SIGKILL)
            one.wait()


def metric(port, name):
    with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port, timeout=10) as answer:
        return float(re.search("^%s(?:\\{.*\\})? (.*)$" % name, answer.read().decode(), re.M)[1])


def one_host(settings, python, folder, seconds):
    """(the row, its pushes)"""
    collector = Collector(folder, "one")
    relay, host, port = Relay(collector.port), Host(python, folder), free_port()
    agent = None
    try:
        host.start()
        # It learns the programs' code and the files first.
        agent = subprocess.Popen([settings.phlox, "agent", "--name", host.mark, "--interval", "%ds" % INTERVAL, "--rate", str(RATE), "--otlp", relay.url,
                                  "--state", os.path.join(folder, "state"), "--listen", "127.0.0.1:%d" % port], stderr=subprocess.PIPE, text=True,
                                 env={**os.environ, "OTEL_RESOURCE_ATTRIBUTES": "host.name=" + NAME % 0})
        wait_for(lambda: relay.kept, "the first push", 4 * INTERVAL)
        time.sleep(seconds)
        processes, memory = metric(port, "phlox_agent_processes"), metric(port, "process_resident_memory_bytes")
        cpu = metric(port, "process_cpu_seconds_total")
        kept = list(relay.kept)
        agent.send_signal(signal.SIGTERM)
        said = agent.communicate(timeout=120)[1]
    finally:
        host.end()
        if agent is not None and agent.poll() is None:
            agent.kill()
            agent.wait()
        relay.close()
        _, _, stored = collector.end()
    length = kept[-1][0] - kept[0][0]
    counted = kept[1:]  # each covers the time since the one before
    row = {"error": "" if all(status == 200 for _, _, _, status in kept) else said, "seconds": length, "pythons": int(processes), "answers": host.answered,
           "pushes": len(counted), "body_bytes": sum(len(body) for _, _, body, _ in counted), "header_bytes": sum(size for _, size, _, _ in counted),
           "stored_bytes": stored * len(counted) / len(relay.kept), "agent_cpu": cpu / (length + INTERVAL), "agent_mib": memory / 2**20}
    return row, [body for _, _, body, _ in counted]


class Senders:
    """Sends bodies at their moments, from connections that stay open, as an agent's."""

    def __init__(self, port, count=32):
        self.port, self.work, self.done = port, queue.Queue(), []
        self.threads = [threading.Thread(target=self.send) for _ in range(count)]
        for one in self.threads:
            one.start()

    def send(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while (body := self.work.get()) is not None:
            begun = time.monotonic()
            try:
                connection.request("POST", PATH, body, {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"})
                answer = connection.getresponse()
                answer.read()
                status = answer.status
            except OSError:
                connection.close()
                status = 0
            self.done.append((status, time.monotonic() - begun, len(body)))
        connection.close()

    def end(self):
        for _ in self.threads:
            self.work.put(None)
        for one in self.threads:
            one.join()
        return self.done


def many_hosts(settings, pushes, folder, rounds):
    """`pushes`: of one host, one for each interval. Each host sends them in turn, at its own moment, and does not begin with the same."""
    collector = Collector(folder, "many")
    senders = Senders(collector.port)
    begun, late = time.monotonic(), 0
    for turn in range(rounds * HOSTS):
        body = relabelled(pushes[(turn // HOSTS + turn) % len(pushes)], 1 + turn % HOSTS)
        pause = begun + turn * INTERVAL / HOSTS - time.monotonic()
        late = max(late, -pause)
        if pause > 0:
            time.sleep(pause)
        senders.work.put(body)
    done = senders.end()
    seconds = time.monotonic() - begun
    cpu, peak, stored = collector.end()
    waits = sorted(wait for _, wait, _ in done)
    return {"error": "", "hosts": HOSTS, "seconds": seconds, "pushes": len(done), "refused": sum(status != 200 for status, _, _ in done),
            "sent_bytes": sum(size for _, _, size in done), "stored_bytes": stored, "collector_cpu": cpu, "collector_mib": peak, "late": late,
            "median_ms": 1000 * median(waits), "worst_ms": 1000 * waits[-1]}


def hosts(settings):
    version = settings.usual_version()
    result = {"one": [], "many": []}
    if version is None or not os.access(COLLECTOR, os.X_OK):
        print("hosts: no collector at %s (tools/get-otelcol.sh builds it)" % COLLECTOR)
        return result
    python = install.host_packages(settings.cache, settings.pythons[version], version)
    with tempfile.TemporaryDirectory(prefix="phlox-bench-host-") as folder:
        row, pushes = one_host(settings, python, folder, settings.scaled(600, 40))
        row["python"] = version
        settings.log("hosts", row)
        result["one"].append(row)
        row = many_hosts(settings, pushes, folder, int(settings.scaled(8, 1)))
        settings.log("hosts", row)
        result["many"].append(row)
    return result


def per_day(row, key, hosts=1):
    return row[key] / row["seconds"] * DAY / hosts


def document(data):
    text = ("## Hosts of an agent\n\n`phlox agent` at %d Hz with an interval of %d s, on a host with eight Pythons: gunicorn with two workers and uvicorn that answer requests, "
            "a worker of a queue, a NumPy job, one that is idle, and one that runs for %d s in every %d. *Sent*: compressed, with the headers of HTTP. *Stored*: by the collector's file exporter, "
            "as messages compressed with zstd.\n\n" % (RATE, INTERVAL, CRON_RUNS, CRON_EVERY))
    text += table(["Python", "minutes", "Pythons", "pushes", "sent in a day", "stored in a day", "agent's CPU", "agent's memory"], [
        ["failed: " + r["error"]] if r["error"] else
        [r["python"], "%.0f" % (r["seconds"] / 60), r["pythons"], r["pushes"], "%.0f MB" % (per_day({**r, "sum": r["body_bytes"] + r["header_bytes"]}, "sum") / 1e6),
         "%.0f MB" % (per_day(r, "stored_bytes") / 1e6), "%.1f %%" % (100 * r["agent_cpu"]), "%.0f MiB" % r["agent_mib"]] for r in data["one"]])
    text += "\nThe same pushes from many hosts, each under its own name and at its own moment, into one collector:\n\n"
    return text + table(["hosts", "minutes", "pushes", "refused", "answered after (median, worst)", "collector's CPU", "its memory", "sent in a day", "stored in a day"], [
        [r["hosts"], "%.0f" % (r["seconds"] / 60), r["pushes"], r["refused"], "%s, %s" % (number(r["median_ms"], "%.0f ms"), number(r["worst_ms"], "%.0f ms")),
         "%.0f %%" % (100 * r["collector_cpu"]), "%.0f MiB" % r["collector_mib"], "%.1f GB" % (per_day(r, "sent_bytes") / 1e9),
         "%.1f GB" % (per_day(r, "stored_bytes") / 1e9)] for r in data["many"]])
