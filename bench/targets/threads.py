"""Threads: some run (and compete for the GIL), some sleep, some wait for a lock, one waits on a pipe.

    threads.py SECONDS [RUNNING] [WAITING] [NAP]

NAP: seconds that a sleeping thread sleeps at a time.

`running`: CPU seconds of every running thread by its own clock; the waiting ones use almost none. Work is
counted over all running threads: how long each of them has the GIL scatters far more than their total.
"""
import os
import sys
import threading
import time

import meter

seconds = meter.seconds_argument()
running = int(sys.argv[2]) if len(sys.argv) > 2 else 2
waiting = int(sys.argv[3]) if len(sys.argv) > 3 else 3
nap = float(sys.argv[4]) if len(sys.argv) > 4 else 0.02
stop = threading.Event()
cpu = {}
units = [0] * running
lock = threading.Lock()
read_end, write_end = os.pipe()


def spin():
    x = 0
    for i in range(2000):
        x += i
    return x


def run(name, i):
    start = meter.thread_clock()
    while not stop.is_set():
        spin()
        units[i] += 1
    cpu[name] = meter.thread_clock() - start


def wait_for_lock():
    with lock:
        pass


def wait_asleep():
    while not stop.is_set():
        time.sleep(nap)


def wait_on_pipe():
    os.read(read_end, 1)


WAITS = [wait_for_lock, wait_asleep, wait_on_pipe]
lock.acquire()
threads = [threading.Thread(target=run, name="run-%d" % i, args=("run-%d" % i, i)) for i in range(running)]
threads += [threading.Thread(target=WAITS[i % 3], name="wait-%d" % i) for i in range(waiting)]
for thread in threads:
    thread.start()


def finish():
    stop.set()
    lock.release()
    os.write(write_end, b"x" * waiting)
    for thread in threads:
        thread.join()
    return {"running": cpu}


meter.measure(spin, seconds, finish, lambda: sum(units))
