"""Programs that mostly wait, each for one thing."""
import os
import queue
import select
import socket
import subprocess
import threading
import time

from truth import over, part, spin, tell


def run(*threads):
    started = [threading.Thread(target=target, name=name) for name, target in threads]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def timeouts(seconds):
    """Nothing ever notifies: every wait ends by its timeout."""
    condition = threading.Condition()
    end = time.monotonic() + seconds

    def wait_in_vain():
        while time.monotonic() < end:
            with condition, part("wait_in_vain"):
                assert not condition.wait(0.01)

    run(*(("waiter-%d" % i, wait_in_vain) for i in range(3)))
    tell()


def poll_timeouts(seconds):
    one, other = socket.socketpair()
    poll = select.poll()
    poll.register(one, select.POLLIN)
    end = time.monotonic() + seconds

    def poll_in_vain():
        while time.monotonic() < end:
            with part("poll_in_vain"):
                assert not poll.poll(20)

    poll_in_vain()
    other.close()
    tell()


def queues(seconds):
    items = queue.Queue()
    end = time.monotonic() + seconds

    def produce():
        while time.monotonic() < end:
            time.sleep(0.02)
            items.put(1)
        items.put(None)

    def consume():
        with part("consume"):
            while items.get() is not None:
                pass

    run(("producer", produce), ("consumer", consume))
    tell()


def pipes(seconds):
    reading, writing = os.pipe()
    end = time.monotonic() + seconds

    def write_pipe():
        while time.monotonic() < end:
            time.sleep(0.02)
            os.write(writing, b"x")
        os.close(writing)

    def read_pipe():
        with part("read_pipe"):
            while os.read(reading, 1):
                pass

    run(("pipe-writer", write_pipe), ("pipe-reader", read_pipe))
    tell()


def sockets(seconds):
    one, other = socket.socketpair()
    end = time.monotonic() + seconds

    def send_bytes():
        while time.monotonic() < end:
            time.sleep(0.02)
            one.sendall(b"x")
        one.close()

    def receive_bytes():
        with part("receive_bytes"):
            while other.recv(1):
                pass

    run(("sender", send_bytes), ("receiver", receive_bytes))
    tell()


def locks(seconds):
    held = threading.Lock()
    end = time.monotonic() + seconds
    begun = threading.Event()

    def hold_long():
        while time.monotonic() < end:
            with held:
                begun.set()
                time.sleep(0.06)
            time.sleep(0.02)

    def want_lock():
        with part("want_lock"):
            held.acquire()
        held.release()

    def want_often():
        begun.wait()
        while time.monotonic() < end:
            want_lock()
            time.sleep(0.01)

    run(("holder", hold_long), ("wanter", want_often))
    tell()


def sleeps(seconds):
    def nap():
        with part("nap"):
            time.sleep(0.1)

    def stir():
        with part("stir"):
            spin(0.01)

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        nap()
        stir()
    tell()


def timers(seconds):
    done = threading.Event()
    end = time.monotonic() + seconds

    def fire():
        with part("fire"):
            spin(0.01)
        if time.monotonic() < end:
            threading.Timer(0.05, fire).start()
        else:
            done.set()

    fire()
    done.wait()
    tell()


def children(seconds):
    def run_sleep():
        with part("run_sleep"):
            subprocess.run(["sleep", "0.3"], check=True)

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        run_sleep()
    tell()


def stall(seconds):
    """Computes, stops once, computes again."""
    def before():
        with part("before"):
            spin(seconds / 3)

    def stand_still():
        with part("stand_still"):
            time.sleep(seconds / 3)

    def after():
        with part("after"):
            spin(seconds / 3)

    before()
    stand_still()
    after()
    tell()


def brief(seconds):
    """Too few samples for shares of CPU, and many waits with exact times."""
    def short_nap():
        for _ in range(int(seconds / 0.01)):
            with part("short_nap"):
                time.sleep(0.01)

    short_nap()
    tell()


if __name__ == "__main__":
    over({f.__name__: f for f in (timeouts, poll_timeouts, queues, pipes, sockets, locks, sleeps, timers, children, stall, brief)})
