"""argv: how. Forks through the C library alone, without PyOS_AfterFork_Child, as servers do that embed an interpreter.
The child prints `ready PID` and computes, the parent waits for it. Runs on every Python.

  main      in the main thread
  threads   the same, and the child starts threads of its own
  leftover  while there are threads that the child does not have
  reused    the same, and the child has threads where those were
  thread    in another thread than the main one
  raw       by the system call: the C library does not know either
  recycled  the parent's id, which is left in the child's thread state, is one of the child's threads; the parent is gone
"""
import ctypes
import os
import sys
import threading
import time

libc = ctypes.PyDLL(None)


def spin():
    total = 0
    for i in range(2000):
        total += i
    return total


def computes_in_main():
    sys.stdout.write("ready %d\n" % os.getpid())
    sys.stdout.flush()
    while True:
        spin()


def computes_in_thread(started):
    started.set()
    while True:
        spin()


def sleeps_in_parent():
    time.sleep(600)


def start(function, *arguments):
    thread = threading.Thread(target=function, args=arguments)
    thread.daemon = True
    thread.start()
    return thread


def start_computing():
    started = threading.Event()
    start(computes_in_thread, started)
    started.wait()


def recycle(parent):
    """Starts threads until one has the id that the parent had."""
    while os.path.exists("/proc/%d" % parent):
        time.sleep(0.01)
    for _ in range(1000):
        with open("/proc/sys/kernel/ns_last_pid", "w") as last:
            last.write(str(parent - 1))
        start_computing()
        if os.path.exists("/proc/%d/task/%d" % (os.getpid(), parent)):
            return
    sys.exit("the id was not to be had")


def child(how, parent):
    if how in ("threads", "reused"):
        for _ in range(2):
            start_computing()
    if how == "recycled":
        recycle(parent)
    computes_in_main()


def fork(how):
    parent = os.getpid()
    if (libc.syscall(57) if how == "raw" else libc.fork()) == 0:
        child(how, parent)
    if how == "recycled":
        os._exit(0)
    time.sleep(600)


how = sys.argv[1]
if how in ("leftover", "reused"):
    for _ in range(3):
        start(sleeps_in_parent)
    time.sleep(0.2)
if how == "thread":
    start(fork, how).join()
else:
    fork(how)
