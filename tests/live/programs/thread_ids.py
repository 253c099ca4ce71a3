"""Threads that print their kernel ids: a line "NAME TID" each, then `ready PID`. Python 2.7 to 3.15."""
import ctypes
import os
import platform
import sys
import threading
import time

GETTID = {"x86_64": 186, "aarch64": 178}[platform.machine()]
kernel_id = getattr(threading, "get_native_id", lambda: ctypes.CDLL(None).syscall(GETTID))
lines = []
all_there = threading.Event()


def turn():
    time.sleep(0.01)


def run():
    lines.append("%s %d" % (threading.current_thread().name, kernel_id()))
    while True:
        turn()


for name in ("shop", "till", "cellar"):
    thread = threading.Thread(target=run, name=name)
    thread.daemon = True
    thread.start()
lines.append("%s %d" % (threading.current_thread().name, kernel_id()))
while len(lines) < 4:
    time.sleep(0.01)
with open(sys.argv[1], "w") as out:
    out.write("\n".join(lines))
sys.stdout.write("ready %d\n" % os.getpid())
sys.stdout.flush()
while True:
    turn()
