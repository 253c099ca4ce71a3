"""phlox agent over gRPC, against a server of the official gRPC (grpc_server.py): what arrives is what was sampled, and what a status
means is what the agent does."""
import collections
import os
import re
import shutil
import subprocess

import pytest

from cli_support import phlox, wait_until
from grpc_server import EXPORT, WRITE_RAW, GrpcServer, WriteRaw, official_sums
from profile_server import Otlp
from test_agent import Running, add_pprof, free_port, sampled, serve, targets  # noqa: F401

pytestmark = pytest.mark.live


@pytest.fixture
def serve_grpc():
    servers = []

    def serve_(*arguments, **options):
        servers.append(GrpcServer(*arguments, **options))
        return servers[-1]

    yield serve_
    for server in servers:
        server.close()


def test_what_arrives_is_what_was_sampled(start, serve_grpc, targets, tmp_path):  # noqa: F811
    _, mark = targets
    server = serve_grpc()
    headers = tmp_path / "headers"
    headers.write_text("Authorization: Bearer one\n")
    headers.chmod(0o600)
    agent = Running(start, tmp_path, mark, "--otlp-grpc", server.url, "-o", tmp_path / "a.phlox", "--header-file", headers)
    server.wait(lambda s: len(s.taken) >= 3, "three pushes")
    said = agent.end()
    assert {path for path, _ in server.taken} == {EXPORT}
    assert official_sums([body for _, body in server.taken], tmp_path) == sampled(tmp_path / "a.phlox"), said
    assert all(one["authorization"] == "Bearer one" and one["user-agent"].startswith("phlox/") for one in server.metadata)
    assert agent.waiting() == [] and "warning" not in said


@pytest.mark.skipif(shutil.which("go") is None, reason="no go here")
def test_parca_gets_a_pprof_of_each_process(start, serve_grpc, targets, tmp_path):  # noqa: F811
    (first, _), mark = targets
    server = serve_grpc()
    agent = Running(start, tmp_path, mark, "--parca", server.url, "-o", tmp_path / "a.phlox")
    server.wait(lambda s: len(s.taken) >= 3, "three pushes")
    agent.end()
    sums, services = collections.Counter(), {}
    for path, body in server.taken:
        assert path == WRITE_RAW
        for labels, pprof in WriteRaw(body).series:
            assert labels["__name__"] == "process_cpu"
            services[int(labels["pid"])] = labels["service_name"]
            add_pprof(sums, int(labels["pid"]), pprof, tmp_path)
    assert dict(sums) == sampled(tmp_path / "a.phlox") and services[first.pid] == "shop"


def too_many(body):
    return ("RESOURCE_EXHAUSTED", "grpc: received message larger than max (5 vs. 4)") if len(Otlp(body).resources) > 1 else None


def test_nothing_is_lost_on_the_way_to_a_server_with_all_faults(start, serve_grpc, targets, tmp_path):  # noqa: F811
    _, mark = targets
    port = free_port()  # no server answers there at first
    agent = Running(start, tmp_path, mark, "--otlp-grpc", f"http://localhost:{port}", "-o", tmp_path / "a.phlox")
    wait_until(lambda: "no server answers there" in agent.said and len(agent.waiting()) >= 2, "a failure, and pushes that wait")
    server = serve_grpc(port, answers=[("UNAUTHENTICATED", "no token"), ("RESOURCE_EXHAUSTED", "too many requests"), "UNAVAILABLE",
                                       "DEADLINE_EXCEEDED", *[too_many] * 40])
    server.wait(lambda s: len(s.taken) >= 8, "all faults, then pushes", 120)
    said = agent.end()
    assert official_sums([body for _, body in server.taken], tmp_path) == sampled(tmp_path / "a.phlox"), said
    for words in ("no server answers there", "needs credentials, or rejects these (UNAUTHENTICATED, gRPC status 16): \"no token\"",
                  "--header-file", "asks for a pause", "it is not available now", "it takes too long to answer", "too large for it"):
        assert said.count(words) == 1, said
    assert "accepts profiles again" in said and not re.search(r"push(es)? lost", said) and agent.waiting() == []


def test_a_pause_that_the_server_asks_for_is_kept(start, serve_grpc, targets, tmp_path):  # noqa: F811
    # google.rpc.Status with a RetryInfo of an hour.
    info = b"\x0a\x28type.googleapis.com/google.rpc.RetryInfo\x12\x05\x0a\x03\x08\x90\x1c"
    details = b"\x08\x08\x1a" + bytes([len(info)]) + info
    _, mark = targets
    server = serve_grpc(answers=[("RESOURCE_EXHAUSTED", "wait", (("grpc-status-details-bin", details),))])
    agent = Running(start, tmp_path, mark, "--otlp-grpc", server.url)
    wait_until(lambda: len(agent.waiting()) >= 4, "pushes that wait for the end of the pause")
    assert server.requests == ["RESOURCE_EXHAUSTED"]
    agent.end()


def test_a_body_that_the_server_refuses_is_dropped_and_said_once(start, serve_grpc, targets, tmp_path):  # noqa: F811
    _, mark = targets
    server = serve_grpc(answers=[("INVALID_ARGUMENT", "what is this?")] * 2)
    agent = Running(start, tmp_path, mark, "--otlp-grpc", server.url)
    server.wait(lambda s: len(s.taken) >= 1, "a push after two that were refused")
    said = agent.end()
    assert said.count("it does not accept the request (INVALID_ARGUMENT, gRPC status 3): \"what is this?\"") == 1 and "2 pushes lost" in said, said


def test_a_message_larger_than_the_server_takes_is_named(start, serve_grpc, targets, tmp_path):  # noqa: F811
    _, mark = targets
    server = serve_grpc(max_receive_message_length=100)
    agent = Running(start, tmp_path, mark, "--otlp-grpc", server.url)
    wait_until(lambda: "too large for it" in agent.said, "the size to be refused")
    said = agent.end()
    assert said.count("the request is too large for it (RESOURCE_EXHAUSTED, gRPC status 8)") == 1 and "lost" in said, said
    assert server.taken == []


def test_a_server_without_the_service_is_named_and_profiles_wait(start, serve_grpc, targets, tmp_path):  # noqa: F811
    _, mark = targets
    port = free_port()
    first = GrpcServer(port, services=[WRITE_RAW])
    agent = Running(start, tmp_path, mark, "--otlp-grpc", f"http://localhost:{port}", "-o", tmp_path / "a.phlox")
    wait_until(lambda: "UNIMPLEMENTED, gRPC status 12" in agent.said and len(agent.waiting()) >= 2, "the service to be missed")
    assert "--feature-gates=service.profilesSupport" in agent.said
    first.close()
    server = serve_grpc(port)
    server.wait(lambda s: len(s.taken) >= 2, "pushes", 120)
    agent.end()
    assert official_sums([body for _, body in server.taken], tmp_path) == sampled(tmp_path / "a.phlox")


def test_a_port_of_plain_http_is_named_and_profiles_wait(start, serve, targets, tmp_path):  # noqa: F811
    _, mark = targets
    server = serve()
    agent = Running(start, tmp_path, mark, "--otlp-grpc", server.url)
    wait_until(lambda: "is this the port for gRPC" in agent.said and len(agent.waiting()) >= 2, "the wrong port to be named")
    agent.end()
    assert server.taken == []


def test_connections_that_the_server_ends_lose_nothing(start, serve_grpc, targets, tmp_path):  # noqa: F811
    _, mark = targets
    server = serve_grpc(max_connection_age_ms=500, max_connection_age_grace_ms=100)
    agent = Running(start, tmp_path, mark, "--otlp-grpc", server.url, "-o", tmp_path / "a.phlox")
    server.wait(lambda s: len(s.taken) >= 5, "five pushes")
    said = agent.end()
    assert official_sums([body for _, body in server.taken], tmp_path) == sampled(tmp_path / "a.phlox"), said
    assert "cannot send" not in said


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl here")
def test_a_server_must_prove_who_it_is(start, serve_grpc, targets, tmp_path):  # noqa: F811
    _, mark = targets
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    server = serve_grpc(certificate=(certificate, key))
    agent = Running(start, tmp_path, mark, "--otlp-grpc", server.url)
    wait_until(lambda: "its certificate is not trusted" in agent.said, "the certificate to be refused")
    agent.end()
    assert server.requests == []
    # By the variables of OpenTelemetry alone.
    agent = Running(start, tmp_path, mark, env={"OTEL_EXPORTER_OTLP_CERTIFICATE": str(certificate), "OTEL_EXPORTER_OTLP_ENDPOINT": server.url,
                                                "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20two"})
    server.wait(lambda s: len(s.taken) >= 2, "pushes over TLS")
    agent.end()
    assert {one["authorization"] for one in server.metadata} == {"Bearer two"}


def test_a_protocol_that_phlox_does_not_speak_is_refused():
    done = phlox("agent", env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"})
    assert done.returncode == 2 and "does not send by 'http/json'" in done.stderr and "use grpc or http/protobuf" in done.stderr
