"""The section `services`: servers, pools and test runners, each recorded whole; compares the CPU time of
every process with the kernel's. The kernel's is the sum of /proc/PID/task/*/schedstat (as in getrusage, in
nanoseconds), read fifty times a second for every descendant, taken at the moments between which phlox says
that it recorded the process; for a process started under the recorder, all of it."""
import http.server
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

from .sections import charged
from .tables import number, table

FILES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "services")
UWSGI = os.environ.get("PHLOX_UWSGI", os.path.expanduser("~/.cache/phlox/pythons/odd/uwsgi-core"))
# Below that, the fiftieth of a second between two of our readings is a large part.
LEAST = 0.1


def children_of(pid):
    found = []
    try:
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, task)) as file:
                found += map(int, file.read().split())
    except OSError:
        pass
    return found


def tree_of(pid):
    found = [pid]
    for one in found:
        found += children_of(one)
    return found


class Accounts:
    """CPU time that the kernel charged to every process of a tree, over time."""

    def __init__(self, root):
        self.root, self.over = root, False
        self.threads = {}  # pid: {tid: ns}; keeps the last value of a thread that exited
        self.times = {}    # pid: [(monotonic ns, ns of CPU)]
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def read(self, pid):
        seen = self.threads.setdefault(pid, {})
        now = time.monotonic_ns()
        try:
            for task, spent in charged(pid):
                seen[task] = spent
        except (OSError, IndexError):
            pass  # it exited; keep what was read
        total = sum(seen.values())
        self.times.setdefault(pid, []).append((now, total))

    def watch(self):
        # A child whose parent exited is reparented: a known process stays known.
        while not self.over:
            for pid in sorted(set(tree_of(self.root)) | set(self.times)):
                self.read(pid)
            time.sleep(0.02)

    def end(self):
        self.over = True
        self.thread.join()

    def at(self, pid, moment):
        before = (None, 0)
        for now, used in self.times[pid]:
            if now >= moment:
                if before[0] is None:
                    return used
                share = (moment - before[0]) / max(1, now - before[0])
                return before[1] + share * (used - before[1])
            before = (now, used)
        return before[1]

    def between(self, pid, start, end):
        return (self.at(pid, end) - self.at(pid, start)) / 1e9

    def whole(self, pid):
        return self.times[pid][-1][1] / 1e9


def rows(path, sql):
    database = sqlite3.connect(path)
    try:
        return database.execute(sql).fetchall()
    finally:
        database.close()


def recorded(path):
    """pid: command, recorded time, CPU seconds."""
    end = int(dict(rows(path, "SELECT key, value FROM meta")).get("end_monotonic_ns", 0))
    found = {}
    for pid, command, start, ended, cpu in rows(
            path, "SELECT p.pid, p.command_line, p.start_ns, p.end_ns, (SELECT sum(s.cpu_ns) FROM sample s JOIN thread t ON t.id = s.thread "
                  "WHERE t.process = p.id) FROM process p ORDER BY p.id"):
        row = found.setdefault(pid, {"command": command, "start": start, "cpu": 0.0})
        row["end"] = ended or end
        row["cpu"] += (cpu or 0) / 1e9
    return found


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.05)
    raise TimeoutError("waited for " + what)


def on_loopback(handler):
    """A web server with this handler, on a port that is free, in a thread of its own."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


class Services:
    def __init__(self, phlox, python, folder, seconds, options=()):
        self.phlox, self.python, self.folder, self.seconds = phlox, python, folder, seconds
        self.options = ["-r", "200", "--max-overhead", "off", *options]

    def path(self, name):
        return os.path.join(self.folder, name)

    def environment(self, **more):
        # NumPy, which joblib imports if installed, starts BLAS threads that spin without Python: only
        # --native records those.
        return dict(os.environ, PYTHONPATH=FILES, PYTHONDONTWRITEBYTECODE="1", OPENBLAS_NUM_THREADS="1", **more)

    def running(self, name, command, workers, ready, work, **environment):
        """Recorded by PID while `work` runs."""
        log = open(self.path(name + ".log"), "w")
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, env=self.environment(**environment),
                                  start_new_session=True)
        accounts = busy = None
        try:
            wait_for(ready, name)
            wait_for(lambda: len(tree_of(server.pid)) > workers, "%d workers of %s" % (workers, name))
            accounts = Accounts(server.pid)
            busy = work()
            time.sleep(0.3)
            words = [self.phlox, "record", "-p", str(server.pid), "-d", str(self.seconds), *self.options, "-o", self.path(name + ".phlox"), "--force"]
            done = subprocess.run(words, capture_output=True, text=True)
            accounts.end()
            if done.returncode != 0:
                raise RuntimeError(done.stderr)
        finally:
            if accounts:
                accounts.end()
            if busy:
                busy.kill()
                busy.wait()
            os.killpg(server.pid, signal.SIGTERM)
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                pass
            try:
                os.killpg(server.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            server.wait()
            log.close()
        return self.compared(name, accounts, done.stderr, False, " ".join(map(os.path.basename, command[:2])))

    def launched(self, name, command, **environment):
        """Recorded from start to exit."""
        words = [self.phlox, "record", *self.options, "-o", self.path(name + ".phlox"), "--force", "--", *command]
        recorder = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder,
                                    env=self.environment(**environment), start_new_session=True)
        accounts = Accounts(recorder.pid)
        try:
            answer, said = recorder.communicate(timeout=1200)
        finally:
            accounts.end()
            if recorder.poll() is None:
                os.killpg(recorder.pid, signal.SIGKILL)
                recorder.wait()
        if recorder.returncode != 0:
            raise RuntimeError(said)
        accounts.times.pop(recorder.pid)
        result = self.compared(name, accounts, said, True, " ".join(map(os.path.basename, command[:2])))
        result["answer"] = answer.strip()[-200:]
        return result

    def compared(self, name, accounts, said, whole, command):
        seen = recorded(self.path(name + ".phlox"))
        processes = []
        for pid, row in seen.items():
            if pid not in accounts.times:
                kernel = None  # it lived between two of our readings
            elif whole:
                kernel = accounts.whole(pid)
            else:
                kernel = accounts.between(pid, row["start"], row["end"])
            processes.append({"pid": pid, "command": row["command"], "phlox_s": row["cpu"], "kernel_s": kernel})
        there = {pid for pid in accounts.times if accounts.whole(pid) >= LEAST}
        judged = [p for p in processes if p["kernel_s"] is not None and p["kernel_s"] >= LEAST]
        return {"service": name, "command": command, "processes": processes, "judged": len(judged), "missing": sorted(there - set(seen)),
                "worst": max((abs(p["phlox_s"] / p["kernel_s"] - 1) for p in judged), default=None),
                "phlox_s": sum(p["phlox_s"] for p in processes),
                "kernel_s": sum(accounts.whole(pid) if whole else accounts.between(pid, seen[pid]["start"], seen[pid]["end"]) if pid in seen else 0
                                for pid in accounts.times),
                "said": said.strip().splitlines()[-8:]}

    # --- the services -------------------------------------------------------------------------------------------------------
    def loaded(self, port, connections=4):
        return lambda: subprocess.Popen([self.python, os.path.join(FILES, "load.py"), str(port), str(self.seconds + 20), str(connections)])

    def gunicorn(self):
        port = free_port()
        return self.running("gunicorn", [self.python, "-m", "gunicorn", "-w", "4", "-b", "127.0.0.1:%d" % port, "application:application"], 4,
                            lambda: listens(port), self.loaded(port, 8))

    def uwsgi(self):
        port = free_port()
        # Debian's uWSGI runs in a root of its own here, which includes the working directory.
        shutil.copy(os.path.join(FILES, "application.py"), self.folder)
        return self.running("uwsgi", [UWSGI, "--plugin", "python3", "--http-socket", "127.0.0.1:%d" % port, "--master", "--processes", "2", "--threads", "2",
                                      "--need-app", "--disable-logging", "--no-orphans", "--wsgi-file", self.path("application.py")], 2,
                            lambda: listens(port), self.loaded(port, 8))

    def celery(self):
        queue = self.path("queue")
        for folder in (queue, queue + "-control"):
            os.makedirs(folder, exist_ok=True)
        subprocess.run([self.python, os.path.join(FILES, "tasks.py"), str(150 * self.seconds)], check=True, env=self.environment(QUEUE=queue))
        log = self.path("celery.log")
        return self.running("celery", [self.python, "-m", "celery", "-A", "tasks", "worker", "-P", "prefork", "-c", "2", "--without-gossip",
                                       "--without-mingle", "--without-heartbeat", "-l", "INFO"], 2, lambda: "ready." in open(log).read(), lambda: None, QUEUE=queue)

    def pool(self):
        tasks = 20 * self.seconds
        result = self.launched("pool", [self.python, os.path.join(FILES, "pool.py"), "4", str(tasks), "25"])
        # Most live between two of our readings. The pool itself reports the kernel's CPU time of its children.
        children, used, own = result["answer"].split()
        result["children"], result["children_seen"] = int(children), len(result["processes"]) - 1
        result["kernel_s"] = float(used) + float(own)
        return result

    def xdist(self):
        return self.launched("pytest-xdist", [self.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "xdist", "-n", "2", "--rootdir", FILES,
                                              os.path.join(FILES, "test_burn.py")], TESTS=str(2 * self.seconds))

    def loky(self):
        return self.launched("joblib", [self.python, os.path.join(FILES, "loky.py"), "2", str(4 * self.seconds)])


NAMES = ("gunicorn", "uwsgi", "celery", "pool", "xdist", "loky")


def python_of():
    """The tests' Python, which has gunicorn, Celery, joblib and pytest-xdist (tools/requirements-test.txt)."""
    venv = os.environ.get("PHLOX_VENV", os.path.expanduser("~/.cache/phlox/venv"))
    path = os.path.join(venv, "bin", "python")
    return path if os.access(path, os.X_OK) else sys.executable


def services(settings):
    result = {"services": []}
    folder = tempfile.mkdtemp(prefix="phlox-bench-", dir="/var/tmp")
    try:
        for name in NAMES:
            kept = getattr(Services(settings.phlox, python_of(), folder, settings.scaled(12, 3)), name)()
            settings.log("services", {key: value for key, value in kept.items() if key not in ("processes", "said", "answer")})
            # Output and commands contain paths of this machine.
            kept["processes"] = [{key: one[key] for key in ("phlox_s", "kernel_s")} for one in kept["processes"]]
            result["services"].append({key: value for key, value in kept.items() if key not in ("said", "answer")})
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def document(data):
    text = ("## Services\n\nEach service is recorded whole, into one file, at 200 Hz. The table compares the CPU time of its processes in the recording with what the kernel charged to them "
            "(`schedstat`): while they were recorded, or from start to end for a program under `phlox record --`. *Judged* are the processes that used at least %.1f s.\n\n" % LEAST)
    return text + table(
        ["service", "processes recorded", "judged", "missing", "CPU, phlox", "CPU, kernel", "difference of all", "of the worst process"],
        [[row["service"], len(row["processes"]) if "children" not in row else "%d of %d workers" % (row["children_seen"], row["children"]),
          row["judged"], len(row["missing"]), number(row["phlox_s"], "%.2f s"), number(row["kernel_s"], "%.2f s"),
          "%+.1f %%" % (100 * (row["phlox_s"] / row["kernel_s"] - 1)), "-" if row["worst"] is None else "%.1f %%" % (100 * row["worst"])]
         for row in data["services"]])
