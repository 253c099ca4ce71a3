"""Many idle processes and threads: PROCESSES, forked by the first, of THREADS each, all of which sleep and
occasionally work for a moment.

    crowd.py SECONDS PROCESSES THREADS
"""
import os
import random
import signal
import sys
import threading
import time

import meter

seconds = meter.seconds_argument()
processes, threads = int(sys.argv[2]), int(sys.argv[3])
end = time.monotonic() + seconds


def now_and_then():
    while time.monotonic() < end:
        time.sleep(4 * random.random())
        sum(range(1000))


def crowd():
    for _ in range(threads - 1):
        threading.Thread(target=now_and_then, daemon=True).start()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


children = []
for _ in range(processes - 1):
    child = os.fork()
    if child == 0:
        crowd()
        now_and_then()
        os._exit(0)
    children.append(child)
crowd()
meter.ready()
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
try:
    now_and_then()
finally:
    for child in children:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
    meter.report({})
