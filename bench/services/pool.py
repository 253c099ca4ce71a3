"""pool.py WORKERS TASKS MILLISECONDS: a pool whose workers live for one task each. Prints their number, and
the CPU time that the kernel charged to them in total and to their parent."""
import multiprocessing
import os
import resource
import sys
import time

started = 0


def crunch(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(i * i for i in range(200))


def count():
    global started
    started += 1


def used(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    workers, tasks, milliseconds = map(int, sys.argv[1:])
    os.register_at_fork(after_in_parent=count)
    pool = multiprocessing.get_context("fork").Pool(workers, maxtasksperchild=1)
    pool.map(crunch, [milliseconds / 1000] * tasks, chunksize=1)
    pool.close()
    pool.join()
    print(started, used(resource.RUSAGE_CHILDREN), used(resource.RUSAGE_SELF))
