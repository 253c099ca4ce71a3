"""The section `hosts`: what is counted, and how one host's pushes become those of another."""
import gzip
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "bench"))

from harness import hosts  # noqa: E402


def test_a_push_of_another_host_has_its_name_alone_and_the_same_size():
    text = b"\x0a\x15" + (hosts.NAME % 0).encode() + b" and the rest"
    other = gzip.decompress(hosts.relabelled(gzip.compress(text), 499))
    assert other == text.replace(b"host-000", b"host-499") and len(other) == len(text)


def test_a_day_is_so_much_as_the_time_that_was_measured():
    one = {"error": "", "python": "3.12", "seconds": 864, "pythons": 8, "answers": 1, "pushes": 57, "body_bytes": 400_000, "header_bytes": 100_000, "stored_bytes": 1_000_000,
           "agent_cpu": 0.012, "agent_mib": 30}
    many = {"error": "", "hosts": 500, "seconds": 86.4, "pushes": 4_000, "refused": 3, "sent_bytes": 20_000_000, "stored_bytes": 25_000_000, "collector_cpu": 0.1,
            "collector_mib": 50, "late": 0, "median_ms": 2, "worst_ms": 30}
    text = hosts.document({"one": [one], "many": [many]})
    assert "| 3.12 | 14 | 8 | 57 | 50 MB | 100 MB | 1.2 % | 30 MiB |" in text
    assert "| 500 | 1 | 4000 | 3 | 2 ms, 30 ms | 10 % | 50 MiB | 20.0 GB | 25.0 GB |" in text
