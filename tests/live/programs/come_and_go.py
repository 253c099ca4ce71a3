"""Threads that live for 20 ms, five at a time, until it is killed."""
import os
import threading
import time


def work():
    end = time.time() + 0.02
    while time.time() < end:
        sum(range(100))


print("ready %d" % os.getpid(), flush=True)
while True:
    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
