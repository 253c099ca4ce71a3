"""Says who it is, then waits beneath three functions, with a second thread waiting beneath another."""
import sys
import threading

print("version %d.%d.%d" % sys.version_info[:3])
print("build %s" % ("debug" if hasattr(sys, "gettotalrefcount") else "default"))
print("free-threaded %d" % (not getattr(sys, "_is_gil_enabled", lambda: True)()))

LOCK = threading.Lock()
LOCK.acquire()
STARTED = threading.Event()


def waits_in_a_thread():
    print("thread %d" % (threading.get_ident() if hasattr(threading, "get_ident") else threading._get_ident()))
    STARTED.set()
    LOCK.acquire()


def inner():
    print("thread %d" % (threading.get_ident() if hasattr(threading, "get_ident") else threading._get_ident()))
    print("ready")
    sys.stdout.flush()
    sys.stdin.read()


def middle():
    inner()


def outer():
    middle()


thread = threading.Thread(target=waits_in_a_thread)
thread.daemon = True
thread.start()
STARTED.wait()
outer()
