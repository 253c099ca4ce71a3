"""A program for `--native`. argv: what to do, how often. Threads work without the GIL."""
import os
import random
import sys
import threading
import time
import zlib

what, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
data = bytes(1 << 20)


def reads():
    with open("/dev/zero", "rb", buffering=0) as file:
        into = bytearray(1 << 22)
        while True:
            file.readinto(into)


def busy():
    for _ in range(count):
        threading.Thread(target=checksums, daemon=True).start()
    ready()
    threading.Event().wait()


def checksums():
    while True:
        zlib.crc32(data)


def dozes():
    """Sleeps for a sixth of the time, in short naps."""
    ready()
    while True:
        end = time.monotonic() + 0.002
        while time.monotonic() < end:
            pass
        time.sleep(0.0003)


def crowd():
    """Sleeps, and works a little now and then."""
    for _ in range(count):
        threading.Thread(target=now_and_then, daemon=True).start()
    ready()
    threading.Event().wait()


def now_and_then():
    while True:
        time.sleep(random.random() * 4)
        for _ in range(20):
            zlib.crc32(data)


def ready():
    print("ready", os.getpid())
    sys.stdout.flush()


if what == "reads":
    ready()
globals()[what]()
