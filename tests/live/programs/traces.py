"""Threads that work for spans of traces and publish them: what runs in a function named after a span runs while that span is published,
and what runs in nothing() runs without one. Arguments: the library of thread_context.c (none: it is in the program), seconds until it publishes."""
import ctypes
import mmap
import os
import struct
import sys
import threading
import time

library = ctypes.PyDLL(sys.argv[1] if len(sys.argv) > 1 and sys.argv[1] else None)
file = ctypes.CDLL(None).memfd_create(b"OTEL_CTX", 0)  # some builds of Python have no os.memfd_create
os.ftruncate(file, 4096)
header = mmap.mmap(file, 4096)
os.close(file)


def field(number, payload):
    return bytes([number << 3 | 2, len(payload)]) + payload


def attribute(key, value):
    return field(1, key.encode()) + field(2, field(1, value.encode()))


def publish():
    message = field(1, field(1, attribute("service.name", "shop"))) + field(2, attribute("threadlocal.schema_version", "tls_v1"))
    publish.kept = ctypes.create_string_buffer(message, len(message))
    header[8:16], header[24:32] = struct.pack("II", 2, len(message)), struct.pack("Q", ctypes.addressof(publish.kept))
    header[16:24] = struct.pack("Q", time.monotonic_ns())
    header[:8] = b"OTEL_CTX"


def work():
    until = time.monotonic() + 0.012
    while time.monotonic() < until:
        sum(range(100))
    time.sleep(0.012)


def span_17():
    work()


def span_34():
    work()


def nothing():
    work()


def again(trace):
    while True:
        library.attach(trace, 17)
        span_17()
        library.attach(trace, 34)
        span_34()
        library.attach(0, 0)
        nothing()


threads = [threading.Thread(target=again, args=(170 + i,), name="trace-%d" % (170 + i), daemon=True) for i in range(2)]
for thread in threads:
    thread.start()
if len(sys.argv) > 2:
    print("ready", os.getpid(), flush=True)
    time.sleep(float(sys.argv[2]))
    publish()
else:
    publish()
    print("ready", os.getpid(), flush=True)
time.sleep(3600)
