"""argv: a number of threads. They sleep, each at a different depth of calls, while the main thread waits for them. Prints
`ready PID` when all have started. Runs on every Python."""
import os
import sys
import threading
import time


def sleep(depth, there):
    if depth:
        return sleep(depth - 1, there)
    there.release()
    time.sleep(600)


def main(count):
    there = threading.Semaphore(0)
    threading.stack_size(256 * 1024)
    for i in range(count):
        thread = threading.Thread(target=sleep, args=(i % 7, there), name="sleeper-%d" % i)
        thread.daemon = True
        thread.start()
    for i in range(count):
        there.acquire()
    sys.stdout.write("ready %d\n" % os.getpid())
    sys.stdout.flush()
    time.sleep(600)


main(int(sys.argv[1]))
