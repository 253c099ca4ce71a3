"""Threads that compute and pass the GIL on: each writes when it noticed that it took it over from another one, by the recording's clock."""
import os
import sys
import threading
import time


def have_it(me, owner, log, until):
    """Short rounds: a thread that is switched in sees at once that another one ran before."""
    now = time.monotonic_ns
    while now() < until:
        before = owner[0]
        if before != me:
            owner[0] = me
            log.append((now(), before, me))


def main(path, threads, seconds):
    owner, log = [0], []
    until = time.monotonic_ns() + int(seconds * 1e9)

    def run():
        have_it(threading.get_native_id(), owner, log, until)

    pool = [threading.Thread(target=run) for _ in range(threads)]
    for thread in pool:
        thread.start()
    print("ready %d" % os.getpid(), flush=True)
    for thread in pool:
        thread.join()
    with open(path, "w") as out:
        out.writelines("%d %d %d\n" % entry for entry in log)
    print("done", flush=True)
    sys.stdin.read()


main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
