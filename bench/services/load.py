"""load.py PORT SECONDS CONNECTIONS [COUNT]: CONNECTIONS clients, each sending one request after the other.
Not the service's Python. A hundred times a second the number of answers is written to the file COUNT."""
import mmap
import socket
import sys
import threading
import time


def client(port, end, answered, which):
    while time.monotonic() < end:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=10) as one:
                one.sendall(b"GET / HTTP/1.0\r\nHost: here\r\n\r\n")
                while one.recv(4096):
                    pass
            answered[which] += 1
        except OSError:
            time.sleep(0.01)


def count(path, end, answered):
    with open(path, "wb+") as file:
        file.truncate(20)
        with mmap.mmap(file.fileno(), 20) as text:
            while time.monotonic() < end:
                text[:] = b"%20d" % sum(answered)
                time.sleep(0.01)


end = time.monotonic() + float(sys.argv[2])
answered = [0] * int(sys.argv[3])
threads = [threading.Thread(target=client, args=(int(sys.argv[1]), end, answered, i)) for i in range(len(answered))]
if len(sys.argv) > 4:
    threads.append(threading.Thread(target=count, args=(sys.argv[4], end, answered)))
for one in threads:
    one.start()
