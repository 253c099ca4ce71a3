"""A server of profiles for tests, by the official gRPC (tools/install-test-deps.sh brings it): takes pushes of OTLP and Parca, and
answers as it is told. It is not in the tests' environment, whose protobuf is older."""
import collections
import os
import pathlib
import subprocess
import sys
import threading
from concurrent import futures

import pytest

from profile_server import fields

PLACE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "phlox" / "grpc"
if not (PLACE / "grpc").exists():
    pytest.skip("no grpcio here: tools/install-test-deps.sh", allow_module_level=True)
sys.path.append(str(PLACE))
import grpc  # noqa: E402

EXPORT = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
WRITE_RAW = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"
# By the official types: {(pid, kind of time): ns} of files with an ExportProfilesServiceRequest each.
SUMS = """
import collections, sys
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
sums = collections.Counter()
for path in sys.argv[1:]:
    request = ExportProfilesServiceRequest.FromString(open(path, "rb").read())
    strings = request.dictionary.string_table
    for resource in request.resource_profiles:
        pid, = (one.value.int_value for one in resource.resource.attributes if one.key == "process.pid")
        for profile in (profile for scope in resource.scope_profiles for profile in scope.profiles):
            kind = strings[profile.sample_type.type_strindex]
            sums[pid, kind] += sum(value for sample in profile.samples for value in sample.values)
print(dict(sums))
"""


def official_sums(bodies, folder):
    files = []
    for number, body in enumerate(bodies):
        files.append(folder / f"request-{number}")
        files[-1].write_bytes(body)
    done = subprocess.run([sys.executable, "-S", "-c", SUMS, *files], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(PLACE)})
    assert done.returncode == 0, done.stderr
    return eval(done.stdout)


class WriteRaw:
    """parca.profilestore.v1alpha1.WriteRawRequest."""

    def __init__(self, body):
        top = fields(body)
        assert top[3] == [1]
        self.series = []
        for series in map(fields, top[2]):
            labels = {pair[1][0].decode(): pair[2][0].decode() for pair in map(fields, fields(series[1][0])[1])}
            self.series.append((labels, fields(series[2][0])[1][0]))


class GrpcServer:
    """`answers`: for each request in turn a name of a status, (name, words), (name, words, trailers), or a function of the body that
    returns one of these, or None to take it. When there are none left, every request is taken."""

    def __init__(self, port=0, answers=(), certificate=None, services=(EXPORT, WRITE_RAW), **options):
        self.answers = collections.deque(answers)
        self.taken, self.requests, self.metadata = [], [], []  # (path, body); names of statuses; of the requests
        self.changed = threading.Condition()
        server = self

        class Handler(grpc.GenericRpcHandler):
            def service(self, call):
                if call.method not in services:
                    return None
                return grpc.unary_unary_rpc_method_handler(lambda body, context: server.answer(call, body, context))

        self.grpc = grpc.server(futures.ThreadPoolExecutor(4), [Handler()],
                                options=[("grpc.so_reuseport", 0), *(("grpc." + name, value) for name, value in options.items())])
        if certificate:
            chain, key = (path.read_bytes() for path in certificate)
            self.port = self.grpc.add_secure_port(f"127.0.0.1:{port}", grpc.ssl_server_credentials([(key, chain)]))
        else:
            self.port = self.grpc.add_insecure_port(f"127.0.0.1:{port}")
        self.url = f"{'https' if certificate else 'http'}://localhost:{self.port}"
        self.grpc.start()

    def answer(self, call, body, context):
        with self.changed:
            told = self.answers.popleft() if self.answers else None
        told = told(body) if callable(told) else told
        name, words, trailers = (*((told,) if isinstance(told, str) else told or ("OK",)), "", ())[:3]
        with self.changed:
            if name == "OK":
                self.taken.append((call.method, body))
            self.requests.append(name)
            self.metadata.append(dict(call.invocation_metadata))
            self.changed.notify_all()
        if name != "OK":
            context.set_trailing_metadata(trailers)
            context.abort(getattr(grpc.StatusCode, name), words)
        return b""

    def wait(self, condition, what, limit=60):
        with self.changed:
            assert self.changed.wait_for(lambda: condition(self), limit), f"waited {limit} s for: {what}; {self.requests}"

    def close(self):
        self.grpc.stop(None).wait()
