"""Three hundred threads, of which a few compute and the others sleep deep in Python. crowd.py COMPUTING; a line of its input is
answered with what has been computed."""
import sys
import threading
import time

computing = int(sys.argv[1])
work = [0] * computing


def compute(index):
    while True:
        total = 0
        for i in range(300):
            total += i * i
        work[index] += 1


def deep(levels, event):
    if levels:
        return deep(levels - 1, event)
    while not event.wait(0.5):
        pass


threads = [threading.Thread(target=deep, args=(30, threading.Event()), daemon=True) for _ in range(300 - computing)]
threads += [threading.Thread(target=compute, args=(i,), daemon=True) for i in range(computing)]
for thread in threads:
    thread.start()
print("ready", flush=True)
for line in sys.stdin:
    print(sum(work), time.process_time(), flush=True)
