"""Eight workers that are no faster than one, on a machine that is idle: docs/stories.md finds out why.

    python3 waiting.py [SECONDS]
"""
import sys
import threading
import time

cache = {}
cache_lock = threading.Lock()


def ask_the_warehouse(number):
    time.sleep(0.02)  # a request to somebody else's machine
    return number * 7


def stock_of(number):
    with cache_lock:
        if number not in cache:
            cache[number] = ask_the_warehouse(number)
        return cache[number]


def work(worker, until):
    number = worker
    while time.monotonic() < until:
        stock_of(number)
        number += 8


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2
    workers = [threading.Thread(target=work, args=(worker, time.monotonic() + seconds), name=f"worker-{worker}") for worker in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(f"{len(cache) / seconds:.0f} articles a second")


if __name__ == "__main__":
    main()
