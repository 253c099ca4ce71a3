"""Waits of all kinds. Writes for each what ended it: its timeout, a thread or a process.

ended.py LOG: until there is a file LOG.enough. A lane is a thread that waits, with a thread or a process of its own that ends these waits."""
import asyncio
import ctypes
import fcntl
import os
import queue
import select
import socket
import sys
import threading
import time

PAUSE = 0.005
LONG = 5000  # ms, a timeout that never comes
enough = threading.Event()
log = []
lanes = []


def lane(function):
    lanes.append(function)
    return function


def noted(what, by, wait):
    start = time.monotonic_ns()
    wait()
    log.append((what, threading.get_native_id(), start, time.monotonic_ns() - start, by))


def goes_on():
    return not enough.is_set()


class Ender:
    """A thread that calls `end` a little after each ask()."""

    def __init__(self, end):
        self.asked, self.ready = queue.SimpleQueue(), threading.Event()
        threading.Thread(target=self.run, args=(end,), name="ender", daemon=True).start()
        self.ready.wait()

    def run(self, end):
        self.by = "thread %d" % threading.get_native_id()
        self.ready.set()
        while True:
            self.asked.get()
            time.sleep(PAUSE)
            end()

    def ask(self):
        self.asked.put(1)


def ended_by_thread(what, end, wait, after=lambda: None):
    ender = Ender(end)
    while goes_on():
        ender.ask()
        noted(what, ender.by, wait)
        after()


def timed_out(what, wait):
    while goes_on():
        noted(what, "timeout", wait)


# ---- by their timeout

@lane
def condition_timeout():
    condition = threading.Condition()
    with condition:
        timed_out("condition timeout", lambda: condition.wait(PAUSE))


@lane
def queue_timeout():
    items = queue.Queue()

    def get():
        try:
            items.get(timeout=PAUSE)
        except queue.Empty:
            pass
    timed_out("queue timeout", get)


@lane
def lock_timeout():
    lock = threading.Lock()
    lock.acquire()
    timed_out("lock timeout", lambda: lock.acquire(timeout=PAUSE))


@lane
def poll_timeout():
    one, other = socket.socketpair()
    poll = select.poll()
    poll.register(one, select.POLLIN)
    timed_out("poll timeout", lambda: poll.poll(PAUSE * 1000))
    other.close()


@lane
def select_timeout():
    ends = [os.pipe() for _ in range(3)]
    timed_out("select timeout", lambda: select.select([end[0] for end in ends], [], [], PAUSE))


@lane
def epoll_timeout():
    read_end, _ = os.pipe()
    epoll = select.epoll()
    epoll.register(read_end, select.EPOLLIN)
    timed_out("epoll timeout", lambda: epoll.poll(PAUSE))


@lane
def socket_timeout():
    one, other = socket.socketpair()
    one.settimeout(PAUSE)

    def receive():
        try:
            one.recv(1)
        except socket.timeout:
            pass
    timed_out("socket timeout", receive)
    other.close()


@lane
def asyncio_sleep():
    async def run():
        while goes_on():
            start = time.monotonic_ns()
            await asyncio.sleep(PAUSE)
            log.append(("asyncio sleep", threading.get_native_id(), start, time.monotonic_ns() - start, "timeout"))
    asyncio.run(run())


# ---- by a thread

@lane
def lock():
    one = threading.Lock()
    one.acquire()
    ended_by_thread("lock", one.release, one.acquire)


@lane
def condition():
    one = threading.Condition()

    def notify():
        with one:
            one.notify()

    with one:
        ended_by_thread("condition", notify, one.wait)


@lane
def condition_in_time():
    one = threading.Condition()

    def notify():
        with one:
            one.notify()

    with one:
        ended_by_thread("condition in time", notify, lambda: one.wait(LONG / 1000))


@lane
def queues():
    items = queue.Queue()
    ended_by_thread("queue", lambda: items.put(1), items.get)


@lane
def pipe():
    read_end, write_end = os.pipe()
    ended_by_thread("pipe", lambda: os.write(write_end, b"x"), lambda: os.read(read_end, 1))


@lane
def full_pipe():
    read_end, write_end = os.pipe()
    size = fcntl.fcntl(write_end, 1031, 4096)
    os.write(write_end, b"x" * size)
    ended_by_thread("full pipe", lambda: os.read(read_end, size), lambda: os.write(write_end, b"x" * size))


@lane
def unix_socket():
    one, other = socket.socketpair()
    ended_by_thread("unix socket", lambda: other.send(b"x"), lambda: one.recv(1))


@lane
def datagrams():
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.settimeout(LONG / 1000)
    ended_by_thread("datagram", lambda: other.send(b"x"), lambda: one.recv(1))


def tcp_pair():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        one = socket.create_connection(listener.getsockname())
        return one, listener.accept()[0]


@lane
def tcp():
    one, other = tcp_pair()
    ended_by_thread("tcp", lambda: other.send(b"x"), lambda: one.recv(1))


@lane
def tcp_in_time():
    one, other = tcp_pair()
    other.settimeout(LONG / 1000)
    ended_by_thread("tcp in time", lambda: one.send(b"x"), lambda: other.recv(1))


@lane
def tcp_epoll():
    one, other = tcp_pair()
    epoll = select.epoll()
    beside = tcp_pair()
    for end in (one, *beside):
        epoll.register(end, select.EPOLLIN)
    ended_by_thread("tcp epoll", lambda: other.send(b"x"), lambda: epoll.poll(LONG / 1000), lambda: one.recv(1))


@lane
def several():
    pairs = [socket.socketpair() for _ in range(3)]
    poll = select.poll()
    for one, _ in pairs:
        poll.register(one, select.POLLIN)
    ended_by_thread("poll of several", lambda: pairs[1][1].send(b"x"), lambda: poll.poll(LONG), lambda: pairs[1][0].recv(1))


@lane
def eventfd():
    if not hasattr(os, "eventfd"):
        return
    one = os.eventfd(0)
    ended_by_thread("eventfd", lambda: os.eventfd_write(one, 1), lambda: os.eventfd_read(one))


@lane
def asyncio_call():
    async def run():
        loop, futures = asyncio.get_running_loop(), []
        ender = Ender(lambda: loop.call_soon_threadsafe(futures.pop().set_result, None))
        while goes_on():
            future = loop.create_future()
            futures.append(future)
            ender.ask()
            start = time.monotonic_ns()
            await future
            log.append(("asyncio call", threading.get_native_id(), start, time.monotonic_ns() - start, ender.by))
    asyncio.run(run())


@lane
def file_lock():
    path = sys.argv[1] + ".lock"
    one, other = open(path, "w"), open(path, "w")
    fcntl.flock(other, fcntl.LOCK_EX)
    may = threading.Semaphore(0)

    def let_go():
        fcntl.flock(other, fcntl.LOCK_UN)
        may.acquire()
        fcntl.flock(other, fcntl.LOCK_EX)
        may_wait.release()

    may_wait = threading.Semaphore(0)

    def after():
        fcntl.flock(one, fcntl.LOCK_UN)
        may.release()
        may_wait.acquire()
    ended_by_thread("file lock", let_go, lambda: fcntl.flock(one, fcntl.LOCK_EX), after)


# ---- by a process

def spawn():
    return os.posix_spawn("/bin/sleep", ["sleep", str(PAUSE)], os.environ)


@lane
def child():
    while goes_on():
        pid = spawn()
        noted("child", "process %d" % pid, lambda: os.waitpid(pid, 0))


@lane
def pidfd():
    if not hasattr(os, "pidfd_open"):
        return
    while goes_on():
        pid = spawn()
        one = os.pidfd_open(pid)
        poll = select.poll()
        poll.register(one, select.POLLIN)
        noted("pidfd", "process %d" % pid, lambda: poll.poll(LONG))
        os.close(one)
        os.waitpid(pid, 0)


class Partner:
    """A process that writes a byte to `write_end` shortly after each byte that it reads; started before there are threads."""

    def __init__(self, read, write):
        self.pid = os.fork()
        if self.pid:
            self.by = "process %d" % self.pid
            return
        ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG
        while read():
            time.sleep(PAUSE)
            write()
        os._exit(0)


def by_process(what, make):
    """`make` -> (partner, go, wait), before there are threads."""
    partner, go, wait = make()

    def run():
        while goes_on():
            go()
            noted(what, partner.by, wait)
    run.__name__ = what
    lanes.append(run)


def pipe_partner():
    (there, go), (back, answer) = os.pipe(), os.pipe()
    partner = Partner(lambda: os.read(there, 1), lambda: os.write(answer, b"x"))
    os.close(there)
    return partner, lambda: os.write(go, b"x"), lambda: os.read(back, 1)


def socket_partner(pair):
    one, other = pair()
    partner = Partner(lambda: other.recv(1), lambda: other.send(b"x"))
    other.close()
    return partner, lambda: one.send(b"x"), lambda: one.recv(1)


def closing_partner():
    """Connects, and closes: ends a wait for a connection, and one for bytes."""
    listener = socket.create_server(("127.0.0.1", 0))
    connection = []

    def read():
        time.sleep(PAUSE)
        connection.append(socket.create_connection(listener.getsockname()))
        return True

    partner = Partner(read, lambda: connection.pop().close())

    def run():
        while goes_on():
            accepted = []
            noted("accept", partner.by, lambda: accepted.append(listener.accept()[0]))
            noted("tcp close", partner.by, lambda: accepted[0].recv(1))
            accepted[0].close()
    lanes.append(run)
    return partner


def main(path):
    by_process("pipe of a process", pipe_partner)
    by_process("unix socket of a process", lambda: socket_partner(socket.socketpair))
    by_process("tcp of a process", lambda: socket_partner(tcp_pair))
    closing = closing_partner()
    print("ready %d" % os.getpid(), flush=True)
    pool = [threading.Thread(target=run, name="waiter", daemon=True) for run in lanes]
    for thread in pool:
        thread.start()
    while not os.path.exists(path + ".enough"):
        time.sleep(PAUSE)
    enough.set()
    for thread in pool:
        thread.join(10)
    os.kill(closing.pid, 9)
    with open(path, "w") as out:
        out.writelines("%s\t%d\t%d\t%d\t%s\n" % entry for entry in list(log))
    print("done", flush=True)
    sys.stdin.read()


main(sys.argv[1])
