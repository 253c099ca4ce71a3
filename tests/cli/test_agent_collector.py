"""phlox agent and a real OpenTelemetry Collector (tools/get-otelcol.sh builds it): what its file exporter wrote is what was sampled."""
import collections
import contextlib
import json
import os
import pathlib
import socket
import sqlite3
import urllib.request

import pytest

from cli_support import PYTHON, phlox, wait_until
from test_agent import Running, free_port, sampled, targets  # noqa: F401

COLLECTOR = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "phlox" / "otelcol" / "otelcol"
CONFIG = """
receivers: {{otlp: {{protocols: {{{protocol}: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{file: {{path: "{path}"}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{profiles: {{receivers: [otlp], exporters: [file]}}}}
"""
pytestmark = [pytest.mark.live, pytest.mark.skipif(not COLLECTOR.exists(), reason="no collector here: tools/get-otelcol.sh")]


def written(path):
    """{(pid, kind of time): ns} of the lines that the file exporter wrote."""
    sums = collections.Counter()
    for line in path.read_text().splitlines():
        data = json.loads(line)
        strings = data["dictionary"]["stringTable"]
        for resource in data["resourceProfiles"]:
            # The collector makes references to its dictionary of what was sent in full.
            pids = [one["value"]["intValue"] for one in resource["resource"]["attributes"]
                    if one.get("key", strings[one.get("keyStrindex", 0)]) == "process.pid"]
            for scope in resource["scopeProfiles"]:
                for profile in scope["profiles"]:
                    kind = strings[profile["sampleType"]["typeStrindex"]]
                    sums[int(pids[0]), kind] += sum(int(value) for sample in profile["samples"] for value in sample["values"])
    return dict(sums)


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError:
        return False
    return True


def test_the_collector_knows_the_spans_of_samples(start, tmp_path):
    """Of an export, in which one thread worked for a span in a part of its time."""
    recording, body, path, port = tmp_path / "app.phlox", tmp_path / "app.otlp", tmp_path / "profiles.json", free_port()
    program = "import time\nend = time.monotonic() + 0.8\nwhile time.monotonic() < end: sum(range(100))"
    assert phlox("record", "-o", recording, "--", PYTHON, "-c", program).returncode == 0
    trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    with contextlib.closing(sqlite3.connect(recording)) as db:
        begin = int(db.execute("SELECT value FROM meta WHERE key = 'start_monotonic_ns'").fetchone()[0])
        db.execute("INSERT INTO trace_time VALUES (1, 1, ?, ?, ?, ?)", (begin + 300_000_000, begin + 500_000_000, trace, span))
        db.commit()
    done = phlox("export", "-f", "otlp", "--show", "everything", recording, "-o", body)
    assert done.returncode == 0, done.stderr
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG.format(port=port, path=path, protocol="http"))
    start([COLLECTOR, "--config", config, "--feature-gates=service.profilesSupport"], stderr=(tmp_path / "collector.log").open("w"))
    wait_until(lambda: answers(port), "the collector to listen")
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1development/profiles", body.read_bytes(), {"Content-Type": "application/x-protobuf"})
    assert urllib.request.urlopen(request, timeout=20).status == 200
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"), "the collector to write")
    data = json.loads(path.read_text())
    links, strings = data["dictionary"]["linkTable"], data["dictionary"]["stringTable"]
    sums = collections.Counter()
    for profile in data["resourceProfiles"][0]["scopeProfiles"][0]["profiles"]:
        if strings[profile["sampleType"]["typeStrindex"]] != "wall":
            continue
        for sample in profile["samples"]:
            link = links[sample.get("linkIndex", 0)]
            sums[link.get("traceId", ""), link.get("spanId", "")] += sum(map(int, sample["values"]))
    assert set(sums) == {("", ""), (trace, span)}
    assert sums[trace, span] == pytest.approx(200e6, rel=0.02)


@pytest.mark.parametrize("option, protocol", [("--otlp", "http"), ("--otlp-grpc", "grpc")])
def test_the_collector_writes_what_was_sampled(start, targets, tmp_path, option, protocol):  # noqa: F811
    _, mark = targets
    port, path = free_port(), tmp_path / "profiles.json"
    agent = Running(start, tmp_path, mark, option, f"http://localhost:{port}", "-o", tmp_path / "a.phlox")
    wait_until(lambda: len(agent.waiting()) >= 2, "pushes that wait for the collector to start")
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG.format(port=port, path=path, protocol=protocol))
    collector = start([COLLECTOR, "--config", config, "--feature-gates=service.profilesSupport"], stderr=(tmp_path / "collector.log").open("w"))
    wait_until(lambda: answers(port), "the collector to listen")
    wait_until(lambda: "accepts profiles again" in agent.said and not agent.waiting(), "everything to be sent")
    said = agent.end()
    collector.terminate()
    collector.wait(60)
    assert written(path) == sampled(tmp_path / "a.phlox"), said + (tmp_path / "collector.log").read_text()
