"""One thread that waits for files, sockets, pipes, a child and time, in turn. Writes for each wait: its kind and name as in a recording, when, how long."""
import fcntl
import os
import select
import socket
import sys
import threading
import time
import tty

PAUSE = float(sys.argv[3])  # each wait is about as long
UNTIL = time.monotonic() + float(sys.argv[2])


def answer(connection):
    while True:
        asked = connection.recv(1)
        if not asked:
            return
        time.sleep(PAUSE)
        connection.send(asked)


def in_background(work, *arguments):
    thread = threading.Thread(target=work, args=arguments, name=work.__name__)
    thread.daemon = True
    thread.start()


def tcp():
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(1)
    client = socket.create_connection(server.getsockname())
    accepted = server.accept()[0]
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return server, client, accepted, "%s:%d" % server.getsockname()


def written_later(descriptor):
    def work():
        time.sleep(PAUSE)
        os.write(descriptor, b"x")
    in_background(work)


def main(folder):
    folder = os.path.realpath(folder)
    log = []

    def noted(kind, name, wait):
        before = time.monotonic_ns()
        wait()
        log.append((kind, name, before, time.monotonic_ns() - before))

    server, client, accepted, address = tcp()
    in_background(answer, accepted)
    other_server, other_client, other_accepted, other_address = tcp()
    in_background(answer, other_client)
    path = os.path.join(folder, "app.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(1)
    unix = socket.socket(socket.AF_UNIX)
    unix.connect(path)
    in_background(answer, listener.accept()[0])
    pipe, pipe_end = os.pipe()
    fifo_path = os.path.join(folder, "fifo")
    os.mkfifo(fifo_path)
    fifo = os.open(fifo_path, os.O_RDWR)
    terminal, terminal_end = os.openpty()
    tty.setraw(terminal_end)
    silent = os.pipe()[0]
    locked = os.path.join(folder, "locked file")
    lock, other_lock = open(locked, "w"), open(locked)
    poll = select.epoll()
    for one in (silent, unix.fileno()):
        poll.register(one, select.EPOLLIN)

    def request(connection):
        connection.send(b"x")
        connection.recv(1)

    def patient_request():
        client.settimeout(5)
        request(client)
        client.settimeout(None)

    def accept():
        def connect():
            time.sleep(PAUSE)
            socket.create_connection(server.getsockname()).close()
        in_background(connect)
        server.accept()[0].close()

    def read(descriptor, end):
        written_later(end)
        os.read(descriptor, 1)

    def take_lock():
        def let_go():
            time.sleep(PAUSE)
            fcntl.flock(other_lock, fcntl.LOCK_UN)
        fcntl.flock(other_lock, fcntl.LOCK_EX)
        in_background(let_go)
        fcntl.flock(lock, fcntl.LOCK_EX)
        fcntl.flock(lock, fcntl.LOCK_UN)

    def events():
        unix.send(b"x")
        poll.poll()
        unix.recv(1)

    def select_one():
        written_later(pipe_end)
        select.select([pipe], [], [], 5)
        os.read(pipe, 1)

    def child():
        pid = os.fork()
        if pid == 0:
            time.sleep(PAUSE)
            os._exit(0)
        before = time.monotonic_ns()
        os.waitpid(pid, 0)
        log.append(("process", str(pid), before, time.monotonic_ns() - before))

    waits = [("socket", address, lambda: request(client)), ("socket", address, patient_request), ("client", other_address, lambda: request(other_accepted)),
             ("listener", address, accept), ("socket", path, lambda: request(unix)), ("pipe", "", lambda: read(pipe, pipe_end)),
             ("pipe", fifo_path, lambda: read(fifo, fifo)), ("device", os.ttyname(terminal_end), lambda: read(terminal_end, terminal)),
             ("file", locked, take_lock), ("pipe", "", select_one), ("time", "", lambda: select.select([], [], [], PAUSE))]
    # Two more where the kernel reports which one was ready.
    if sys.argv[4] == "kernel":
        waits += [("socket", path, events), ("time", "", lambda: poll.poll(PAUSE))]
    if hasattr(os, "eventfd"):
        counter = os.eventfd(0)

        def read_counter():
            def work():
                time.sleep(PAUSE)
                os.eventfd_write(counter, 1)
            in_background(work)
            os.eventfd_read(counter)
        waits.append(("object", "eventfd", read_counter))

    def wait_for_all():
        while time.monotonic() < UNTIL:
            for wait in waits:
                noted(*wait)
            child()

    waiter = threading.Thread(target=wait_for_all, name="waiter")
    waiter.daemon = True
    waiter.start()
    print("ready %d" % os.getpid())
    sys.stdout.flush()
    waiter.join()
    with open(os.path.join(folder, "log"), "w") as out:
        out.writelines("%s\t%s\t%d\t%d\n" % entry for entry in log)
    print("done")
    sys.stdout.flush()
    sys.stdin.read()


main(sys.argv[1])
