"""deaths.py KIND COUNT LOG: forks COUNT children, one after the other, that end by a signal while they are in a known function, and writes one line for each.

KIND: killed (SIGKILL by the parent), aborted (SIGABRT by the parent), stopped (the same, handled by the child, which then ends), crashed (a fault of
the child's own), raised (os.abort of the child's own). Lines: pid, signal, function of the sender ("-": none), function of the child, of its second thread.
"""
import ctypes
import os
import random
import signal
import sys
import threading
import time

kind, count, log = sys.argv[1], int(sys.argv[2]), open(sys.argv[3], "w")


def spin(end):
    while True:
        if time.monotonic() > end:
            return


def doze():
    time.sleep(100)


def waits():
    threading.Event().wait()


def crash(end):
    spin(end)
    ctypes.string_at(0)


def give_up(end):
    spin(end)
    os.abort()


def kill_it(pid):
    os.kill(pid, signal.SIGKILL)


def abort_it(pid):
    os.kill(pid, signal.SIGABRT)


def at_work(number, ready):
    threading.Thread(target=waits, daemon=True).start()
    if kind == "stopped":
        signal.signal(signal.SIGABRT, lambda *_: os._exit(1))
    os.write(ready, b"x")
    end = time.monotonic() + random.uniform(0.03, 0.05)
    if kind == "crashed":
        crash(end)
    elif kind == "raised":
        give_up(end)
    if number % 2:
        doze()
    spin(time.monotonic() + 100)


SIGNALS = {"killed": "SIGKILL", "aborted": "SIGABRT", "stopped": "SIGABRT", "crashed": "SIGSEGV", "raised": "SIGABRT"}
print("ready", os.getpid(), flush=True)
time.sleep(0.3)
for number in range(count):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        at_work(number, write)
    sender, place = "-", "doze" if number % 2 else "spin"
    if kind == "crashed":
        place = "string_at"
    elif kind == "raised":
        sender = place = "give_up"
    else:
        os.read(read, 1)
        time.sleep(random.uniform(0.03, 0.05))
        send = kill_it if kind == "killed" else abort_it
        send(pid)
        sender = send.__name__
    os.waitpid(pid, 0)
    os.close(read)
    os.close(write)
    print(pid, SIGNALS[kind], sender, place, "wait", sep="\t", file=log, flush=True)
time.sleep(0.1)
