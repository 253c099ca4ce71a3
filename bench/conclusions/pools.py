"""Pools of threads and processes, saturated and idle; forks; the GIL."""
import concurrent.futures
import hashlib
import multiprocessing
import multiprocessing.pool
import os
import queue
import threading
import time

from truth import over, part, spin, tell


def saturated(seconds):
    def ask_database():
        with part("ask_database"):
            time.sleep(0.05)

    with concurrent.futures.ThreadPoolExecutor(4, "worker") as pool:
        for future in [pool.submit(ask_database) for _ in range(int(seconds / 0.05) * 4)]:
            future.result()
    tell()


def unused(seconds):
    """Eight threads that were busy once are idle; the main thread computes."""
    def compute():
        with part("compute"):
            spin(seconds)

    gate = threading.Barrier(8)
    with concurrent.futures.ThreadPoolExecutor(8, "unused") as pool:
        list(pool.map(lambda _: gate.wait(), range(8)))
        compute()
        tell()


def thread_pool(seconds):
    """multiprocessing.pool.ThreadPool: its three helper threads are idle."""
    block = b"x" * 200000

    def burn():
        with part("burn"):
            for _ in range(20):
                hashlib.sha256(block).digest()

    end = time.monotonic() + seconds
    with multiprocessing.pool.ThreadPool(2) as pool:
        while time.monotonic() < end:
            for result in [pool.apply_async(burn) for _ in range(8)]:
                result.get()
    tell()


def own_pool(seconds):
    """A hand-written pool: threads take functions from a queue."""
    tasks = queue.Queue()

    def fetch_task():
        while True:
            task = tasks.get()
            if task is None:
                return
            task()

    def slow_task():
        with part("slow_task"):
            time.sleep(0.03)

    def quick_task():
        with part("quick_task"):
            spin(0.005)

    threads = [threading.Thread(target=fetch_task, name="taker-%d" % i) for i in range(3)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(3):
            tasks.put(slow_task)
        tasks.put(quick_task)
        time.sleep(0.05)
    for _ in threads:
        tasks.put(None)
    for thread in threads:
        thread.join()
    tell()


def contention(seconds):
    def crunch():
        with part("crunch"):
            spin(seconds / 3)

    threads = [threading.Thread(target=crunch, name="cruncher-%d" % i) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tell()


def child_work(seconds):
    before = time.process_time()
    spin(seconds)
    return time.process_time() - before


def processes(seconds):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        used = sum(pool.map(child_work, [seconds / 8] * 8, 1))
    tell(children=used)


def executor_processes(seconds):
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
        used = sum(pool.map(child_work, [seconds / 8] * 8))
    tell(children=used)


def forks(seconds):
    """Trains, then forks helpers that do nothing for `train`."""
    def train():
        with part("train"):
            spin(seconds / 2)
            helpers = [os.fork() for _ in range(1)]
            if 0 in helpers:
                serve()
                os._exit(0)
            spin(seconds / 2)
            for pid in helpers:
                os.waitpid(pid, 0)

    def serve():
        time.sleep(seconds / 2)

    train()
    tell()


if __name__ == "__main__":
    over({f.__name__: f for f in (saturated, unused, thread_pool, own_pool, contention, processes, executor_processes, forks)})
