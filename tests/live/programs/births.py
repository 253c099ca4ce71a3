"""Forks children that live for some milliseconds, until it is killed.

    births.py LOG loop|pool

Prints `ready PID`. Writes for each child: its id, when it was forked and reaped (CLOCK_MONOTONIC, ns), and the CPU time that the kernel
reports for it (ns).
"""
import multiprocessing
import os
import random
import sys
import time

log = open(sys.argv[1], "w", buffering=1)
parent = os.getpid()
forked = {}
fork, waitpid = os.fork, os.waitpid


def noted_fork():
    start = time.monotonic_ns()
    pid = fork()
    if pid:
        forked[pid] = start
    return pid


def noted_waitpid(pid, flags):
    """The kernel knows its CPU time once it has left its CPU, a little after it reports its end."""
    if os.getpid() != parent:
        return waitpid(pid, flags)
    if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | flags) is None:
        return 0, 0
    end = time.monotonic_ns()
    time.sleep(0.005)
    pid, status, usage = os.wait4(pid, 0)
    log.write("%d %d %d %d\n" % (pid, forked.pop(pid), end, (usage.ru_utime + usage.ru_stime) * 1e9))
    return pid, status


def spin():
    for _ in range(100):
        pass


def work(ms):
    end = time.process_time() + ms / 1000
    while time.process_time() < end:
        spin()


def loop():
    while True:
        pid = os.fork()
        if pid == 0:
            work(random.uniform(5, 20))
            os._exit(0)
        os.waitpid(pid, 0)


def pool():
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as workers:
        while True:
            workers.map(work, [random.uniform(5, 20) for _ in range(50)], chunksize=1)


os.fork, os.waitpid = noted_fork, noted_waitpid
print("ready %d" % parent, flush=True)
{"loop": loop, "pool": pool}[sys.argv[2]]()
