"""ARG threads that wait, and the main thread, which started first and computes. Prints `ready PID`."""
import os
import sys
import threading

threading.stack_size(1 << 17)
gate = threading.Event()


def waits():
    gate.wait()


def computes():
    total = 0
    while True:
        for number in range(1000):
            total += number


for _ in range(int(sys.argv[1])):
    threading.Thread(target=waits, daemon=True).start()
print("ready %d" % os.getpid())
sys.stdout.flush()
computes()
