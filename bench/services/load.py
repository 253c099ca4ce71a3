"""load.py PORT SECONDS CONNECTIONS: so many clients, each with one request after the other. No Python of the service."""
import socket
import sys
import threading
import time


def client(port, end):
    while time.monotonic() < end:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=10) as one:
                one.sendall(b"GET / HTTP/1.0\r\nHost: here\r\n\r\n")
                while one.recv(4096):
                    pass
        except OSError:
            time.sleep(0.01)


end = time.monotonic() + float(sys.argv[2])
threads = [threading.Thread(target=client, args=(int(sys.argv[1]), end)) for _ in range(int(sys.argv[3]))]
for one in threads:
    one.start()
