"""Pools with calls that wait: prints the address of the interpreter, then identities of a pool's threads and its calls; waits."""
import ctypes
import os
import sys
import threading

try:
    import concurrent.futures
except ImportError:  # 2.7
    concurrent = None

head = ctypes.pythonapi.PyInterpreterState_Head
head.restype = ctypes.c_void_p
print("%d" % head())
stop = threading.Event()
pools = []
for threads, calls in ((2, 7), (1, 0), (3, 1000)) if concurrent else ():
    pool = concurrent.futures.ThreadPoolExecutor(threads)
    # Some are taken before the others are put in, so that the queue does not begin at its first place.
    for future in [pool.submit(lambda: None) for _ in range(50)]:
        future.result()
    busy = threading.Semaphore(0)

    def hold(busy=busy):
        busy.release()
        stop.wait()

    for _ in range(threads):
        pool.submit(hold)
    for _ in range(threads):
        busy.acquire()
    for _ in range(calls):
        pool.submit(stop.wait)
    pools.append(pool)
    print("%s %d" % (",".join(str(thread.ident) for thread in pool._threads), calls))
print("ready")
sys.stdout.flush()
sys.stdin.read()
os._exit(0)
