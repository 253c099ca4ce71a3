"""phlox agent, against a server that takes OTLP and Pyroscope pushes (profile_server.py): what arrives is what was sampled, whatever
happens on the way. The agent's own recording (-o) has the truth."""
import collections
import contextlib
import gzip
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

from cli_support import PHLOX, PYTHON, phlox, wait_until
from profile_server import OTLP, PYROSCOPE, Otlp, ProfileServer, Push, sampled

# Two threads that want the GIL, one that sleeps, and one with an event loop whose tasks wait.
WORK = """
import asyncio, sys, threading, time
def hot():
    return sum(i * i for i in range(200))
def work():
    while True: hot()
def sleeper():
    while True: time.sleep(0.05)
threading.Thread(target=work, name="worker", daemon=True).start()
def loop():
    async def main(): await asyncio.gather(*(asyncio.sleep(1e4) for _ in range(3)))
    asyncio.run(main())
threading.Thread(target=sleeper, name="sleeper", daemon=True).start()
threading.Thread(target=loop, name="loop", daemon=True).start()
print("ready", flush=True)
work()
"""
live = pytest.mark.live


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def serve():
    servers = []

    def serve_(*arguments, **options):
        servers.append(ProfileServer(*arguments, **options))
        return servers[-1]

    yield serve_
    for server in servers:
        server.close()


@pytest.fixture
def targets(start, tmp_path):
    """Two Pythons that no other test's selection matches, and the expression for them."""
    mark = f"agent-{os.getpid()}-{tmp_path.name}"
    script = tmp_path / "shop.py"
    script.write_text(WORK)
    both = [start([PYTHON, script, mark], env={**os.environ, **more})
            for more in ({"OTEL_SERVICE_NAME": "shop", "OTEL_RESOURCE_ATTRIBUTES": "service.version=3", "PASSWORD": "hunter2"}, {})]
    for one in both:
        assert one.stdout.readline() == "ready\n"
    return both, mark


class Running:
    def __init__(self, start, tmp_path, mark, *arguments, env=None, **options):
        self.log = tmp_path / f"agent-{len(list(tmp_path.glob('agent-*.log')))}.log"
        self.state = options.get("state", tmp_path / "state")
        self.process = start([PHLOX, "agent", "--name", mark, "--interval", "1s", "--state", self.state, *arguments],
                             stderr=self.log.open("w"), env={**os.environ, **(env or {})})

    @property
    def said(self):
        return self.log.read_text()

    def end(self, status=0):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == status, self.said
        return self.said

    def waiting(self):
        return sorted(self.state.glob("*/*.push"))


@live
def test_what_arrives_is_what_was_sampled(start, serve, targets, tmp_path):
    (first, second), mark = targets
    server = serve()
    agent = Running(start, tmp_path, mark, "--otlp", server.url, "-o", tmp_path / "a.phlox")
    server.wait(lambda s: len(s.taken) >= 3, "three pushes")
    said = agent.end()
    assert server.sums() == sampled(tmp_path / "a.phlox"), said
    kinds = {(pid, kind) for pid, kind in server.sums()}
    assert {(one.pid, kind) for one in (first, second) for kind in ("cpu", "wall", "off_cpu", "gil_wait", "await")} <= kinds
    assert agent.waiting() == []
    # Names and places.
    by_pid = {attributes["process.pid"]: attributes for attributes, _ in server.profiles()}
    assert by_pid[first.pid]["service.name"] == "shop" and by_pid[first.pid]["service.version"] == "3"
    assert by_pid[second.pid]["service.name"] in ("shop.py", by_pid[second.pid].get("systemd.unit", "").rpartition(".")[0])
    assert by_pid[first.pid]["host.name"] == socket.gethostname()
    assert re.fullmatch(r"3\.\d+\.\d+.*", by_pid[first.pid]["process.runtime.version"])
    names = {attributes.get("thread.name") for _, profile in server.profiles() for _, attributes, _ in profile["samples"]}
    assert {"MainThread", "worker", "sleeper"} <= names
    stacks = {tuple(stack) for _, profile in server.profiles() for stack, _, _ in profile["samples"]}
    assert any(stack[-2:] == ("work", "<module>") for stack in stacks) and any("sleeper" in stack for stack in stacks), stacks
    awaits = {(tuple(stack), attributes["thread.name"]) for _, profile in server.profiles() if profile["type"] == ("await", "nanoseconds")
              for stack, attributes, _ in profile["samples"]}
    assert {(stack[0], stack[-1], thread) for stack, thread in awaits} == {("(awaits the end of sleep())", "sleep", "loop"), ("(awaits tasks in gather())", "loop.<locals>.main", "loop")}, awaits
    # Nothing that could be secret.
    assert not any(b"hunter2" in body or mark.encode() in body for _, body in server.taken)


# As an SDK does: its context is in a mapping with a name, whose header has the address of a message.
PUBLISHES = """
import ctypes, mmap, os, struct, sys, time
def field(number, payload): return bytes([number << 3 | 2, len(payload)]) + payload
def attribute(key, value): return field(1, field(1, key.encode()) + field(2, field(1, value.encode())))
file = os.memfd_create("OTEL_CTX")
os.ftruncate(file, 4096)
header = mmap.mmap(file, 4096)
os.close(file)
address = ctypes.addressof(ctypes.c_char.from_buffer(header))
kept = []
def publish(**attributes):
    message = field(1, b"".join(attribute(key.replace("_", "."), value) for key, value in attributes.items()))
    kept.append(ctypes.create_string_buffer(message, len(message)))
    header[16:24] = bytes(8)
    header[8:16], header[24:32] = struct.pack("II", 2, len(message)), struct.pack("Q", ctypes.addressof(kept[-1]))
    header[16:24] = struct.pack("Q", time.monotonic_ns())
    header[:8] = b"OTEL_CTX"
print("ready", flush=True)
for words in sys.stdin:
    publish(**dict(word.split("=") for word in words.split()))
    print("published", flush=True)
"""


@live
def test_what_a_program_publishes_about_itself_counts_more_than_its_environment(start, serve, tmp_path):
    (tmp_path / "shop.py").write_text(PUBLISHES)
    mark = f"agent-{os.getpid()}-{tmp_path.name}"
    target = start([PYTHON, tmp_path / "shop.py", mark], stdin=subprocess.PIPE,
                   env={**os.environ, "OTEL_SERVICE_NAME": "of-environment", "OTEL_RESOURCE_ATTRIBUTES": "team=blue"})
    assert target.stdout.readline() == "ready\n"
    server = serve()
    agent = Running(start, tmp_path, mark, "--otlp", server.url)

    def attributes():
        found = [attributes for attributes, _ in server.profiles()]
        return {key: found[-1].get(key) for key in ("service.name", "service.version", "team", "telemetry.sdk.name")} if found else {}

    known = {"service.version": None, "team": "blue", "telemetry.sdk.name": None}
    server.wait(lambda s: attributes() == {**known, "service.name": "of-environment"}, "what its environment says")
    for version in ("7", "8"):  # late, and changed
        target.stdin.write(f"service_name=shop service_version={version} telemetry_sdk_name=x\n")
        target.stdin.flush()
        assert target.stdout.readline() == "published\n"
        server.wait(lambda s: attributes() == {**known, "service.name": "shop", "service.version": version}, f"version {version}")
    agent.end()


# As a framework calls a handler, which waits for a job of a thread pool and for tasks.
SERVICE = """
import asyncio, sys, threading, time
sys.path.insert(0, sys.argv[1])
from fastapi.routing import run_endpoint_function
def resize():
    until = time.monotonic() + 0.1
    while time.monotonic() < until: sum(range(100))
    time.sleep(0.1)
def lonely():
    time.sleep(0.1)
async def price():
    await asyncio.sleep(0.02)
    time.sleep(0.005)
async def upload():
    await asyncio.get_running_loop().run_in_executor(None, resize)
    await asyncio.gather(price(), price())
async def main():
    print("ready", flush=True)
    while True:
        asyncio.get_running_loop().run_in_executor(None, lonely)
        await run_endpoint_function(upload)
asyncio.run(main())
"""


@live
def test_jobs_and_tasks_have_the_label_of_the_endpoint_that_waits_for_them(start, serve, tmp_path):
    (tmp_path / "fastapi").mkdir()
    (tmp_path / "fastapi" / "routing.py").write_text("async def run_endpoint_function(handler): return await handler()\n")
    (tmp_path / "service.py").write_text(SERVICE)
    mark = f"agent-{os.getpid()}-{tmp_path.name}"
    target = start([PYTHON, tmp_path / "service.py", tmp_path, mark])
    assert target.stdout.readline() == "ready\n"
    server = serve()
    agent = Running(start, tmp_path, mark, "--otlp", server.url)

    # The handler's own time is its wait; those of its tasks belong to no endpoint.
    kind_of = {"resize": "wall", "lonely": "wall", "price": "wall", "upload": "await"}

    def labels():
        return {(function, attributes.get("endpoint")) for _, profile in server.profiles()
                for stack, attributes, _ in profile["samples"] for function, kind in kind_of.items()
                if function in stack and profile["type"][0] == kind}

    server.wait(lambda s: {function for function, label in labels() if label} == {"resize", "price", "upload"}, "labels")
    # Once it is known, it stays so.
    known = len(server.taken)
    server.wait(lambda s: len(s.taken) >= known + 2, "two pushes")
    del server.taken[:known]
    agent.end()
    label = f"upload (service.py:{SERVICE.splitlines().index('async def upload():') + 1})"
    assert labels() == {("resize", label), ("price", label), ("upload", label), ("lonely", None)}


@live
@pytest.mark.parametrize("option", ["--otlp", "--pyroscope"])
def test_native_functions_have_their_names(start, serve, targets, tmp_path, option):
    """Of the C library, whose exported functions have names on every host. The totals are those of the recording, whatever is folded."""
    (first, _), mark = targets
    server = serve()
    agent = Running(start, tmp_path, mark, option, server.url, "--native", "-o", tmp_path / "a.phlox")
    wait = re.compile("clock_nanosleep|select|epoll_wait")

    def named(s):
        if option == "--pyroscope":
            return any(wait.search(gzip.decompress(pprof).decode(errors="replace")) for path, body in s.taken for _, _, pprof in Push(body).series)
        return any(wait.search(name) for _, profile in s.profiles() for stack, _, _ in profile["samples"] for name in stack)

    server.wait(named, "a name")
    said = agent.end()
    with contextlib.closing(sqlite3.connect(tmp_path / "a.phlox")) as db:
        rows = db.execute("select function from frame where kind = 1 and module is not null").fetchall()
    assert len(rows) > 3 and all(name for (name,) in rows), said
    if option == "--otlp":
        assert server.sums() == sampled(tmp_path / "a.phlox"), said


@live
def test_profiles_of_one_process_follow_one_another(start, serve, targets, tmp_path):
    (first, _), mark = targets
    server = serve()
    agent = Running(start, tmp_path, mark, "--otlp", server.url)
    server.wait(lambda s: len(s.taken) >= 4, "four pushes")
    agent.end()
    times = [(profile["start"], profile["length"]) for attributes, profile in server.profiles()
             if attributes["process.pid"] == first.pid and profile["type"][0] == "wall"]
    assert times == sorted(times)
    for (start_, length), (following, _) in zip(times, times[1:]):
        assert abs(start_ + length - following) < 1_000_000, times  # two clocks are read one after the other
    ids = [profile["id"] for _, profile in server.profiles()]
    assert len(set(ids)) == len(ids)


@live
def test_a_python_that_starts_later_is_recorded(start, serve, targets, tmp_path):
    (first, _), mark = targets
    server = serve()
    agent = Running(start, tmp_path, mark, "--otlp", server.url)
    server.wait(lambda s: s.taken, "a push")
    later = start([PYTHON, tmp_path / "shop.py", mark])
    server.wait(lambda s: any(attributes["process.pid"] == later.pid for attributes, _ in s.profiles()), "a push of it")
    agent.end()


def too_many(body):
    return 413 if len(Otlp(body).resources) > 1 else None


@live
def test_nothing_is_lost_on_the_way_to_a_server_with_all_faults(start, serve, targets, tmp_path):
    _, mark = targets
    port = free_port()  # no server answers there at first
    agent = Running(start, tmp_path, mark, "--otlp", f"http://localhost:{port}", "-o", tmp_path / "a.phlox")
    wait_until(lambda: "no server answers there" in agent.said and len(agent.waiting()) >= 2, "a failure, and pushes that wait")
    server = serve(port, answers=[401, (429, {"Retry-After": "1"}), 503, *[too_many] * 40])
    server.wait(lambda s: len([1 for _, status in s.requests if status == 413]) >= 2 and len(s.taken) >= 8, "all faults, then pushes", 120)
    said = agent.end()
    assert server.sums() == sampled(tmp_path / "a.phlox"), said
    ids = [profile["id"] for _, profile in server.profiles()]
    assert len(set(ids)) == len(ids)
    # Each fault was said once, with a hint.
    for words in ("no server answers there", "needs credentials, or rejects these", "--header-file", "asks for a pause", "an internal error",
                  "too large for it"):
        assert said.count(words) == 1, said
    assert "accepts profiles again" in said
    assert not re.search(r"push(es)? lost", said) and agent.waiting() == []


@live
def test_a_slow_server_holds_nothing_up(start, serve, targets, tmp_path):
    _, mark = targets
    server = serve()
    held = threading.Event()

    def slow(_):
        held.wait(60)

    server.answers.append(slow)
    agent = Running(start, tmp_path, mark, "--otlp", server.url, "-o", tmp_path / "a.phlox")
    wait_until(lambda: len(agent.waiting()) >= 4, "pushes that wait for the one that is under way")
    held.set()
    server.wait(lambda s: len(s.taken) >= 5, "all of them")
    agent.end()
    assert server.sums() == sampled(tmp_path / "a.phlox")


@live
def test_what_a_killed_agent_left_is_sent_once_by_the_next(start, serve, targets, tmp_path):
    _, mark = targets
    port = free_port()
    url = f"http://localhost:{port}"
    agent = Running(start, tmp_path, mark, "--otlp", url)
    wait_until(lambda: len(agent.waiting()) >= 3, "pushes that wait")
    agent.process.kill()
    agent.process.wait()
    left = len(agent.waiting())
    server = serve(port)
    again = Running(start, tmp_path, mark, "--otlp", url, "-o", tmp_path / "b.phlox")
    server.wait(lambda s: len(s.taken) >= left + 1, "what was left, and one more")
    said = again.end()
    assert f"{left} pushes left by an earlier run will be sent" in said
    # The first are those of the killed one, in order; the rest is the second one's.
    starts = [Otlp(body).resources[0][1][0]["start"] for _, body in server.taken]
    assert starts == sorted(starts)
    ids = [profile["id"] for _, profile in server.profiles()]
    assert len(set(ids)) == len(ids)
    del server.taken[:left]
    assert server.sums() == sampled(tmp_path / "b.phlox")
    assert again.waiting() == []


@live
def test_an_agent_ends_though_its_server_is_away(start, targets, tmp_path):
    _, mark = targets
    agent = Running(start, tmp_path, mark, "--otlp", f"http://localhost:{free_port()}", "-o", tmp_path / "a.phlox")
    wait_until(lambda: agent.waiting(), "a push that waits")
    said = agent.end()
    assert "until the next start" in said and agent.waiting()
    assert (tmp_path / "a.phlox").exists()


@live
def test_a_signal_that_comes_twice_ends_the_agent_in_order(start, serve, targets, tmp_path):
    """As from timeout(1), which sends it to its child and to the whole process group."""
    _, mark = targets
    server = serve()
    agent = Running(start, tmp_path, mark, "--otlp", server.url, "-o", tmp_path / "a.phlox")
    server.wait(lambda s: len(s.taken) >= 1, "a push")
    agent.process.send_signal(signal.SIGTERM)
    time.sleep(0.01)  # not while the first one is pending: the kernel would make one of them
    said = agent.end()
    assert "at once" not in said and server.sums() == sampled(tmp_path / "a.phlox"), said


@live
def test_a_full_buffer_drops_the_oldest_and_counts_them(start, targets, tmp_path, serve):
    _, mark = targets
    port = free_port()
    url = f"http://localhost:{port}"
    agent = Running(start, tmp_path, mark, "--otlp", url)
    wait_until(lambda: len(agent.waiting()) >= 2, "pushes that wait")
    agent.end()
    # Larger than the buffer together with what comes.
    oldest = agent.waiting()[0]
    oldest.write_bytes(oldest.read_bytes() + bytes(1_000_000))
    again = Running(start, tmp_path, mark, "--otlp", url, "--buffer", "1M")
    wait_until(lambda: not oldest.exists(), "the oldest to be dropped")
    assert "1 push lost" in again.end()


def add_pprof(sums, pid, pprof, tmp_path):
    """What `go tool pprof` reads in it, without the number of samples."""
    file = tmp_path / "one.pb.gz"
    file.write_bytes(pprof)
    raw = subprocess.run(["go", "tool", "pprof", "-raw", file], capture_output=True, text=True, check=True,
                         env={**os.environ, "PPROF_TMPDIR": str(tmp_path)}).stdout
    kinds = re.search(r"^Samples:\n(.*)$", raw, re.M)[1].split()
    kinds = [kind.replace("[dflt]", "").split("/")[0] for kind in kinds]
    assert kinds == ["samples", "cpu", "wall", "off_cpu", "gil_wait", "cpu_wait", "await"][:len(kinds)]
    assert "PeriodType: cpu nanoseconds" in raw
    for line in re.findall(r"^ *([\d ]+):[ \d]*$", raw.partition("Samples:")[2].partition("Locations")[0], re.M):
        for kind, value in zip(kinds, map(int, line.split())):
            if value and kind != "samples":
                sums[pid, kind] += value


@live
@pytest.mark.skipif(shutil.which("go") is None, reason="no go here")
def test_pyroscope_gets_a_pprof_of_each_process(start, serve, targets, tmp_path):
    (first, second), mark = targets
    server = serve()
    agent = Running(start, tmp_path, mark, "--pyroscope", server.url, "-o", tmp_path / "a.phlox")
    server.wait(lambda s: len(s.taken) >= 3, "three pushes")
    agent.end()
    sums, ids = collections.Counter(), []
    for path, body in server.taken:
        assert path == PYROSCOPE
        for labels, id_, pprof in Push(body).series:
            assert labels["__name__"] == "process_cpu"
            assert labels["service_name"] == ("shop" if labels["pid"] == str(first.pid) else labels["service_name"])
            ids.append(id_)
            add_pprof(sums, int(labels["pid"]), pprof, tmp_path)
    assert dict(sums) == sampled(tmp_path / "a.phlox")
    assert len(set(ids)) == len(ids) and all(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", one) for one in ids)


@live
def test_several_servers_at_once_each_with_its_own_headers(start, serve, targets, tmp_path):
    _, mark = targets
    otlp, pyroscope = serve(), serve(answers=[503, 503])
    headers = tmp_path / "headers"
    headers.write_text("# tokens\n[otlp]\nAuthorization: Bearer one\n[pyroscope]\nX-Scope-OrgID: two\n")
    headers.chmod(0o600)
    agent = Running(start, tmp_path, mark, "--otlp", otlp.url, "--pyroscope", pyroscope.url, "--header-file", headers, "-v")
    for server in (otlp, pyroscope):
        server.wait(lambda s: len(s.taken) >= 2, "two pushes")
    said = agent.end()
    assert all(one.get("Authorization") == "Bearer one" and "X-Scope-OrgID" not in one for one in otlp.headers)
    assert all(one.get("X-Scope-OrgID") == "two" and "Authorization" not in one for one in pyroscope.headers)
    assert "Bearer" not in said


@live
@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl here")
def test_a_server_must_prove_who_it_is(start, serve, targets, tmp_path):
    _, mark = targets
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    server = serve(certificate=(certificate, key))
    agent = Running(start, tmp_path, mark, "--otlp", server.url)
    wait_until(lambda: "its certificate is not trusted" in agent.said, "the certificate to be refused")
    assert "OTEL_EXPORTER_OTLP_CERTIFICATE" in agent.end() and server.requests == []
    agent = Running(start, tmp_path, mark, "--otlp", server.url, env={"OTEL_EXPORTER_OTLP_CERTIFICATE": str(certificate)})
    server.wait(lambda s: len(s.taken) >= 2, "pushes over TLS")
    agent.end()


def page(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        return answer.read().decode()


@live
def test_the_agent_says_how_it_does(start, serve, targets, tmp_path):
    _, mark = targets
    server = serve(answers=[503])
    agent = Running(start, tmp_path, mark, "--otlp", server.url, "--listen", "127.0.0.1:0", env={"PHLOX_MESSAGES": "json"})
    server.wait(lambda s: len(s.taken) >= 2, "two pushes")
    port = re.search(r"healthz on port (\d+)", agent.said)[1]
    assert page(port, "/healthz") == "ok\n"
    # The server has counted a push before its answer arrives.
    wait_until(lambda: float(re.search(r"^phlox_agent_sent_total{.*} (.*)$", page(port, "/metrics"), re.M)[1]) >= 2, "the answers")
    text = page(port, "/metrics")
    values = {name: float(value) for name, value in re.findall(r"^(\w+)(?:\{.*\})? ([\d.e+-]+)$", text, re.M)}
    assert values["phlox_agent_processes"] == 2
    assert values["phlox_agent_sent_total"] >= 2 and values["phlox_agent_failures_total"] == 1 and values["phlox_agent_lost_total"] == 0
    assert values["phlox_agent_samples_total"] > 10 and values["process_cpu_seconds_total"] > 0
    assert 1e6 < values["process_resident_memory_bytes"] < 1e9
    assert len(re.findall("^# TYPE ", text, re.M)) == len(values)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        page(port, "/")
    agent.end()
    assert all(json.loads(line) for line in agent.said.splitlines())


@live
def test_an_incident_is_written_while_profiles_are_sent(start, serve, targets, tmp_path):
    (first, second), mark = targets
    server, port, folder = serve(), free_port(), tmp_path / "incidents"
    agent = Running(start, tmp_path, mark, "--otlp", server.url, "-o", folder, "--on", f"http=127.0.0.1:{port}", "--on", "signal=USR1",
                    "--before", "2s", "--after", "1s")
    server.wait(lambda s: len(s.taken) >= 3, "three pushes")
    agent.process.send_signal(signal.SIGUSR1)
    wait_until(lambda: "incident: signal" in agent.said, "the signal")  # the first cause names the files
    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/incident", data=b"", method="POST"), timeout=10)
    wait_until(lambda: "incident: wrote" in agent.said, "the incident")
    before = len(server.taken)
    server.wait(lambda s: len(s.taken) > before, "a push after the incident")
    agent.end()
    assert {path.suffix for path in folder.glob("incident-*-signal.*")} == {".phlox", ".html", ".txt"}, agent.said
    (incident,) = folder.glob("incident-*.phlox")
    with contextlib.closing(sqlite3.connect(incident)) as db:
        causes = {value.split("\t")[1] for (value,) in db.execute("SELECT value FROM meta WHERE key LIKE 'incident.%'")}
        pids = {pid for (pid,) in db.execute("SELECT DISTINCT pid FROM sample JOIN thread ON thread.id = thread JOIN process ON process.id = process")}
    assert causes == {"signal", "http"} and pids == {first.pid, second.pid}
    assert (folder / "recording.phlox").exists()


@pytest.mark.smoke
@pytest.mark.parametrize("arguments, words", [
    ([], "no server to send profiles to"),
    (["--otlp", "localhost:4318"], "not the address of a server"),
    (["--otlp", "http://" "user:hunter2@localhost"], "user name or a password"),
    (["--otlp", "http://localhost", "--interval", "1h"], "not between 1s and 10m"),
    (["--otlp", "http://localhost", "--buffer", "10k"], "too small"),
    (["--otlp", "http://localhost", "--state", "here"], "not an absolute path"),
    (["--otlp", "http://localhost", "--keep", "1h"], "--keep needs a recording"),
    (["--otlp", "http://localhost", "--listen", "0.0.0.0:9464"], "loopback interface"),
])
def test_wrong_words_are_refused_and_secrets_not_repeated(arguments, words):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = phlox("agent", *arguments, env=environment)
    assert done.returncode == 2 and words in done.stderr, done.stderr
    assert "hunter2" not in done.stderr


@pytest.mark.smoke
def test_a_header_file_that_others_may_read_is_refused(tmp_path):
    headers = tmp_path / "headers"
    headers.write_text("Authorization: Bearer hunter2\n")
    headers.chmod(0o644)
    done = phlox("agent", "--otlp", "http://localhost:1", "--header-file", headers, "--state", tmp_path / "state")
    assert done.returncode == 118 and "chmod 600" in done.stderr and "hunter2" not in done.stderr, done.stderr


@pytest.mark.smoke
def test_a_folder_that_others_may_write_to_is_refused(tmp_path):
    number = 0xCBF29CE484222325  # FNV-1a of the URL names the folder
    for byte in b"http://localhost:1/v1development/profiles":
        number = ((number ^ byte) * 0x100000001B3) % 2**64
    folder = tmp_path / f"otlp-{number:016x}"
    folder.mkdir()
    folder.chmod(0o777)
    done = phlox("agent", "--otlp", "http://localhost:1", "--state", tmp_path)
    assert done.returncode == 117 and "not a folder of this user alone" in done.stderr, done.stderr
