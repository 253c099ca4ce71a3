"""The section `requests`: what recording takes from a server. Measures the requests per second of gunicorn
with four workers under clients that always have a request open. Each round has one span without a profiler
and one with each, in random order, and is compared with itself."""
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time

from . import install
from .services import FILES, free_port, listens, tree_of, wait_for
from .statistics import bootstrap, mean, typical_ratio
from .tables import number, table

RATE = 100
WORKERS = 4
# The one-time reads of a profiler after it attached are not part of the cost of recording.
SETTLES = 1.5
SECONDS = 2


class Server:
    """gunicorn, and clients that count their answered requests."""

    def __init__(self, python, folder):
        self.port, self.counts = free_port(), os.path.join(folder, "counts")
        environment = dict(os.environ, PYTHONPATH=FILES, PYTHONDONTWRITEBYTECODE="1")
        words = [python, "-m", "gunicorn", "-w", str(WORKERS), "-b", "127.0.0.1:%d" % self.port, "application:application"]
        self.server = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, env=environment,
                                       start_new_session=True)
        self.pid, self.clients = self.server.pid, None
        try:
            wait_for(lambda: listens(self.port), "gunicorn")
            wait_for(lambda: len(tree_of(self.pid)) > WORKERS, "its workers")
            self.clients = subprocess.Popen([python, os.path.join(FILES, "load.py"), str(self.port), "86400", "8", self.counts])
            wait_for(lambda: os.path.exists(self.counts) and self.answered() > 500, "answers")
        except BaseException:
            self.close()
            raise

    def answered(self):
        with open(self.counts, "rb") as file:
            return int(file.read().strip(b"\0") or 0)

    def a_second(self, seconds):
        """Between two counts, each read just after it changed."""
        first, since = self.next_count()
        time.sleep(seconds)
        last, until = self.next_count()
        return (last - first) / (until - since)

    def next_count(self):
        count = self.answered()
        while True:
            now = self.answered()
            if now != count:
                return now, time.monotonic()
            time.sleep(0.001)

    def close(self):
        for one in filter(None, (self.clients, self.server)):
            one.terminate()
            one.wait()


def recorders(settings):
    """name: the command that records until SIGINT, and its output."""
    known = {"phlox" + (" --way no-kernel" if way else ""): lambda pid, out, way=way: [
        settings.phlox, "record", "-q", "-r", str(RATE), "-p", str(pid), "-o", out + ".phlox", "--force", *way] for way in ([], ["--way", "no-kernel"])}
    if settings.with_peers:
        pyspy = os.path.join(install.venv(settings.cache), "bin", "py-spy")
        known["py-spy --subprocesses"] = lambda pid, out: [pyspy, "record", "-s", "-f", "raw", "-r", str(RATE), "-d", "86400", "-p", str(pid), "-o", out + ".txt"]
    return known


def span(server, command, seconds):
    recorder = command and subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(SETTLES)
        rate = server.a_second(seconds)
        if recorder and recorder.poll() is not None:
            raise RuntimeError("%s ended by itself with %d" % (command[0], recorder.returncode))
        return rate
    finally:
        if recorder:
            recorder.send_signal(signal.SIGINT)
            recorder.wait(60)


def rows_of(settings, version, folder):
    """A server on this Python under load; one row per profiler."""
    rounds, seconds = settings.scaled(100, 2), settings.scaled(SECONDS, 1)
    chance = random.Random(1)
    known = recorders(settings)
    if settings.only:  # more pairs in the time saved on the others
        known, rounds = {settings.only: known[settings.only]}, rounds * 7 // 4
    seen = {name: [] for name in ["nobody", *known]}
    server = Server(install.server_packages(settings.cache, settings.pythons[version], version), folder)
    try:
        for _ in range(rounds):
            for name in chance.sample(list(seen), len(seen)):
                command = known[name](server.pid, os.path.join(folder, "out")) if name in known else None
                seen[name].append(span(server, command, seconds))
    finally:
        server.close()
    for name in known:
        pairs = [recorded / alone for recorded, alone in zip(seen[name], seen["nobody"])]
        middle, low, high = bootstrap(pairs, typical_ratio)
        # The share of the rate that is lost.
        yield {"profiler": name, "python": version, "rounds": rounds, "a_second": mean(seen[name]), "alone": mean(seen["nobody"]), "lost": 1 - middle,
               "low": 1 - high, "high": 1 - low, "pairs": pairs}


def requests(settings):
    rows = []
    for version in settings.versions:
        folder = tempfile.mkdtemp(prefix="phlox-bench-", dir="/var/tmp")
        try:
            for row in rows_of(settings, version, folder):
                settings.log("requests", {key: value for key, value in row.items() if key != "pairs"})
                rows.append(row)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return {"seconds": settings.scaled(SECONDS, 1), "rows": rows}


def document(data):
    text = ("## Requests of a server\n\ngunicorn with %d workers, recorded whole at %d Hz with Phlox's default options. Eight clients on the same machine always have a request open. "
            "Intervals of %d s with and without a recording take turns. *Lost*: the share of the requests per second that is missing while it is recorded: the geometric mean of the "
            "pairs' ratios without the lowest and the highest tenth, with its 95 %% interval. Before CPython 3.12, Phlox proves each code object by four or five places in memory, since then by one.\n\n"
            % (WORKERS, RATE, data["seconds"]))
    return text + table(["profiler", "Python", "pairs", "requests a second without", "with", "lost", "95 % interval"], [
        [r["profiler"], r["python"], r["rounds"], number(r["alone"], "%.0f"), number(r["a_second"], "%.0f"), "%+.2f %%" % (100 * r["lost"]),
         "%+.2f to %+.2f %%" % (100 * r["low"], 100 * r["high"])] for r in data["rows"]])
