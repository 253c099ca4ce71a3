"""A server on 127.0.0.1 and its clients, as busy as possible: each of their waits is ended by a packet, that is, in an interrupt."""
import os
import socket
import threading


def serve(connection):
    while data := connection.recv(4096):
        connection.sendall(data)


def ask(address):
    while True:
        with socket.create_connection(address) as connection:
            for _ in range(50):
                connection.sendall(b"x" * 1000)
                connection.recv(4096)


with socket.create_server(("127.0.0.1", 0)) as listener:
    if os.fork() == 0:
        for _ in range(4):
            threading.Thread(target=ask, args=(listener.getsockname(),)).start()
    else:
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
