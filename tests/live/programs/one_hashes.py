"""ARG threads that wait, and one that started first and computes in C, without the GIL. Prints `ready PID`."""
import hashlib
import os
import sys
import threading

threading.stack_size(1 << 17)
gate = threading.Event()


def waits():
    gate.wait()


def hashes():
    data = b"x" * (1 << 25)
    while True:
        hashlib.sha256(data).digest()


threading.Thread(target=hashes, daemon=True).start()
for _ in range(int(sys.argv[1])):
    threading.Thread(target=waits, daemon=True).start()
print("ready %d" % os.getpid())
sys.stdout.flush()
gate.wait()
