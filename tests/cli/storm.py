"""A program that computes in threads and is sent signals all the time, and counts both. storm.py THREADS KIND… [for=SECONDS]

    directed  a real-time signal to each computing thread a hundred times a second (they queue: none may be missing)
    timer     setitimer, two hundred times a second
    children  SIGCHLD: forks and waits
    stopped   nothing by itself: the test stops and continues it
    quiet     nothing at all

A line on its standard input is answered with the counts; `end`, or the end of the time, ends it with 7 and 0."""
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time

# A sender of its own: among threads that compute it would wait for the GIL most of the time.
SENDER = """
import ctypes, select, sys
libc = ctypes.CDLL(None)
tgkill, number, pid, *tids = map(int, sys.argv[1:])
sent = 0
while not select.select([0], [], [], 0.01)[0]:
    for tid in tids:
        sent += libc.syscall(tgkill, pid, tid, number) == 0
print(sent)
"""

threads = int(sys.argv[1])
kinds = [word for word in sys.argv[2:] if not word.startswith("for=")]
seconds = next((float(word[4:]) for word in sys.argv[2:] if word.startswith("for=")), None)
libc = ctypes.CDLL(None, use_errno=True)

work, tids = [0] * threads, [0] * threads
over = False
sent = children = reaped = interrupted = 0
timer = 0 if "timer" in kinds else None

# One byte for each call of the C handler, whichever thread it was called in.
arrived, byte = os.pipe()
os.set_blocking(byte, False)
signal.set_wakeup_fd(byte, warn_on_full_buffer=False)
got = 0


def on_timer(number, frame):
    global timer
    timer += 1


signal.signal(signal.SIGRTMIN, lambda number, frame: None)
signal.signal(signal.SIGCHLD, lambda number, frame: None)
signal.signal(signal.SIGALRM, on_timer)


def compute(index):
    tids[index] = threading.get_native_id()
    while not over:
        total = 0
        for i in range(300):
            total += i * i
        work[index] += 1


def count_arrivals():
    """Signals are blocked here, so that its reads are its own."""
    global got
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while True:
        got += os.read(arrived, 65536).count(int(signal.SIGRTMIN))


def fork():
    global children, reaped
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while not over:
        pid = os.posix_spawn("/bin/true", ["true"], {})
        children += 1
        reaped += os.waitpid(pid, 0) == (pid, 0)
        time.sleep(0.005)


def sleep():
    """A call that ends with EINTR when it is broken off; nothing ever comes to this thread."""
    global interrupted
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    nothing, _ = os.pipe()
    poll = select.epoll()
    poll.register(nothing, select.EPOLLIN)
    events = ctypes.create_string_buffer(64)
    if libc.epoll_wait(poll.fileno(), events, 1, -1) < 0:
        interrupted += 1


def background(function):
    threading.Thread(target=function, daemon=True).start()


def tell():
    print(json.dumps({"work": work, "tids": tids, "sent": sent, "got": got, "timer": timer, "children": children, "reaped": reaped,
                      "interrupted": interrupted}), flush=True)


computing = [threading.Thread(target=compute, args=(i,), daemon=True) for i in range(threads)]
for thread in computing:
    thread.start()
background(count_arrivals)
# A job that is stopped and continued has its calls broken off by that (signal(7)).
if "stopped" not in kinds:
    background(sleep)
forks = threading.Thread(target=fork, daemon=True)
if "children" in kinds:
    forks.start()
if "timer" in kinds:
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
while not all(tids):
    time.sleep(0.001)
sender = None
if "directed" in kinds:
    sender = subprocess.Popen([sys.executable, "-c", SENDER, "234" if os.uname().machine == "x86_64" else "131", str(int(signal.SIGRTMIN)), str(os.getpid()), *map(str, tids)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
if seconds is None:
    print("ready", flush=True)
    for line in sys.stdin:
        if line == "end\n":
            break
        tell()
else:
    time.sleep(seconds)
if sender:
    sent = int(sender.communicate("end\n")[0])
over = True
signal.setitimer(signal.ITIMER_REAL, 0)
if forks.is_alive():
    forks.join()
for thread in computing:
    thread.join()
until = time.monotonic() + 5
while got < sent and time.monotonic() < until:
    time.sleep(0.01)
tell()
sys.exit(0 if seconds is None else 7)
