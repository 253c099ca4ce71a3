"""A server of profiles for tests: takes OTLP and Pyroscope pushes, answers as it is told, and adds up what it took; and what a recording has."""
import collections
import contextlib
import gzip
import http.server
import sqlite3
import ssl
import threading

OTLP, PYROSCOPE = "/v1development/profiles", "/push.v1.PusherService/Push"


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """{number: [value, ...]} of a protobuf message: numbers, or bytes."""
    found, at = collections.defaultdict(list), 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 1:
            value, at = int.from_bytes(data[at:at + 8], "little"), at + 8
        else:
            assert tag & 7 == 2, tag
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size
        found[tag >> 3].append(value)
    return found


def packed(data):
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def any_value(data):
    value = fields(data)
    return value[1][0].decode() if value[1] else value[3][0]


class Otlp:
    """ExportProfilesServiceRequest of opentelemetry-proto 1.11."""

    def __init__(self, body):
        top = fields(body)
        tables = fields(top[2][0])
        self.strings = [text.decode() for text in tables[5]]
        self.attributes = [fields(row) for row in tables[6]]
        self.stacks = [packed(fields(row)[1][0]) if row else [] for row in tables[7]]
        self.mappings = tables[1]
        self.locations, self.functions = [fields(row) for row in tables[2]], [fields(row) for row in tables[3]]
        self.resources = []
        for resource in map(fields, top[1]):
            attributes = {}
            for pair in map(fields, fields(resource[1][0])[1]):
                attributes[pair[1][0].decode()] = any_value(pair[2][0])
            profiles = [profile for scope in resource[2] for profile in fields(scope)[2]]
            self.resources.append((attributes, [self._profile(fields(profile)) for profile in profiles]))

    def _profile(self, profile):
        kind = fields(profile[1][0])
        samples = []
        for sample in map(fields, profile[2]):
            attributes = dict(self._attribute(index) for index in packed(sample[2][0])) if sample[2] else {}
            stack = [self._function(index) for index in self.stacks[sample[1][0]]]
            (value,) = packed(sample[4][0])
            samples.append((stack, attributes, value))
        return {"type": (self.strings[kind[1][0]], self.strings[kind[2][0]]), "id": profile[7][0].hex(), "start": profile[3][0],
                "length": profile[4][0], "samples": samples}

    def _attribute(self, index):
        row = self.attributes[index]
        return self.strings[row[1][0]], any_value(row[2][0])

    def _function(self, index):
        if not self.locations[index][3]:  # the receiver knows it by build-id and address
            (mapping,) = self.locations[index][1]
            return f"{self.strings[fields(self.mappings[mapping])[4][0]]}@{self.locations[index][2][0]:x}"
        line = fields(self.locations[index][3][0])
        return self.strings[self.functions[line[1][0]][1][0]]


class Push:
    """push.v1.PushRequest of Pyroscope."""

    def __init__(self, body):
        self.series = []
        for series in map(fields, fields(body)[1]):
            labels = {pair[1][0].decode(): pair[2][0].decode() for pair in map(fields, series[1])}
            sample = fields(series[2][0])
            self.series.append((labels, sample[2][0].decode(), sample[1][0]))


class ProfileServer:
    """`answers`: for each request in turn a status, (status, headers), or a function of the body that returns one of
    these, or None to take it. When there are none left, every request is taken."""

    def __init__(self, port=0, answers=(), certificate=None):
        self.answers, self.lock = collections.deque(answers), threading.Lock()
        self.taken, self.requests, self.headers = [], [], []  # bodies; (path, status); of the requests
        self.changed = threading.Condition(self.lock)
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                server.answer(self)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.http.daemon_threads = True
        self.scheme = "https" if certificate else "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"{self.scheme}://localhost:{self.http.server_address[1]}"

    def answer(self, request):
        body = request.rfile.read(int(request.headers["Content-Length"]))
        if request.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        with self.lock:
            told = self.answers.popleft() if self.answers else None
        told = told(body) if callable(told) else told
        status, more = told if isinstance(told, tuple) else (told or 200, {})
        with self.changed:
            if status == 200:
                self.taken.append((request.path, body))
            self.requests.append((request.path, status))
            self.headers.append(dict(request.headers))
            self.changed.notify_all()
        with contextlib.suppress(OSError):
            request.send_response(status)
            for name, value in {"Content-Length": "0", **more}.items():
                request.send_header(name, value)
            request.end_headers()

    def wait(self, condition, what, limit=60):
        with self.changed:
            assert self.changed.wait_for(lambda: condition(self), limit), f"waited {limit} s for: {what}; {self.requests}"

    def profiles(self):
        """Of all that was taken: (attributes of the process, profile)."""
        return [(attributes, profile) for path, body in self.taken if path == OTLP
                for attributes, profiles in Otlp(body).resources for profile in profiles]

    def sums(self):
        """{(pid, kind of time): ns}"""
        sums = collections.Counter()
        for attributes, profile in self.profiles():
            assert profile["type"][1] == "nanoseconds"
            sums[attributes["process.pid"], profile["type"][0]] += sum(value for _, _, value in profile["samples"])
        return dict(sums)

    def close(self):
        self.http.shutdown()
        self.http.server_close()


def sampled(*recordings):
    """{(pid, kind of time): ns} of recordings, as the pushes have them."""
    sums = collections.Counter()
    for recording in recordings:
        with contextlib.closing(sqlite3.connect(recording)) as db:
            rows = db.execute("select pid, cpu, gil, wall_ns, cpu_ns from sample join state on state.id = state "
                              "join thread on thread.id = thread join process on process.id = process")
            for pid, cpu, gil, wall_ns, cpu_ns in rows:
                for kind, value in (("cpu", cpu_ns), ("wall", wall_ns), ("off_cpu", wall_ns * (cpu == 3)),
                                    ("gil_wait", wall_ns * (gil == 3)), ("cpu_wait", wall_ns * (cpu == 2))):
                    sums[pid, kind] += value
            for pid, value in db.execute("select pid, time_ns from task_time join event_loop on event_loop.id = loop "
                                         "join process on process.id = process where task_time.state = 0"):
                sums[pid, "await"] += value
    return {key: value for key, value in sums.items() if value}
