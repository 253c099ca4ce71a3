"""Threads that wait for each other: for a queue, a lock, a condition, a pipe, a socket. Writes for each wait: its kind, when, how long, and its waker."""
import os
import queue
import socket
import sys
import threading
import time

PAUSE = 0.004


def noted(log, what, wait):
    before = time.monotonic_ns()
    wait()
    log.append((what, before, time.monotonic_ns() - before))


def wait_for_all(log, until, now, items, lock, condition, pipe, connection):
    def take_item():
        items.get()

    def take_lock():
        with lock:
            pass

    def be_notified():
        with condition:
            condition.wait()

    def read_pipe():
        os.read(pipe, 1)

    def receive():
        connection.recv(1)

    while time.monotonic() < until:
        for what, wait in (("queue", take_item), ("condition", be_notified), ("pipe", read_pipe), ("socket", receive), ("lock", take_lock)):
            now[0] = what
            noted(log, what, wait)


def end_them_all(until, now, items, lock, condition, pipe, connection):
    def put_item():
        items.put(1)

    def notify():
        with condition:
            condition.notify()

    def write_pipe():
        os.write(pipe, b"x")

    def send():
        connection.send(b"x")

    def let_go():
        lock.release()

    end = {"queue": put_item, "condition": notify, "pipe": write_pipe, "socket": send, "lock": let_go}
    lock.acquire()
    while time.monotonic() < until:
        time.sleep(PAUSE)
        what = now[0]
        end[what]()
        if what == "lock":
            while now[0] == "lock":
                time.sleep(0.001)
            lock.acquire()


def main(path, seconds):
    log, now = [], ["queue"]
    until = time.monotonic() + seconds
    read_end, write_end = os.pipe()
    one, other = socket.socketpair()
    items, lock, condition = queue.Queue(), threading.Lock(), threading.Condition()
    lock_holder = threading.Thread(target=end_them_all, args=(until, now, items, lock, condition, write_end, other), name="ender", daemon=True)
    lock_holder.start()
    waiter = threading.Thread(target=wait_for_all, args=(log, until - 0.2, now, items, lock, condition, read_end, one), name="waiter", daemon=True)
    waiter.start()
    print("ready %d" % os.getpid(), flush=True)
    waiter.join()
    with open(path, "w") as out:
        out.writelines("%s %d %d\n" % entry for entry in log)
    print("done", flush=True)
    sys.stdin.read()


main(sys.argv[1], float(sys.argv[2]))
