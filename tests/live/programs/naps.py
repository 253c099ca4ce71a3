"""Naps of known length with work between them. Writes when each began and how long it took, by the recording's clock."""
import sys
import time


def nap(seconds):
    time.sleep(seconds)


def work(until):
    n = 0
    while time.monotonic() < until:
        n += 1
    return n


def main(path):
    print("ready %d" % __import__("os").getpid(), flush=True)
    with open(path, "w") as log:
        while True:
            for milliseconds in (3, 20, 7):
                work(time.monotonic() + 0.004)
                before = time.monotonic_ns()
                nap(milliseconds / 1000)
                log.write("%d %d\n" % (before, time.monotonic_ns() - before))
            log.flush()


main(sys.argv[1])
