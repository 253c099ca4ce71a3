"""An event loop that does what it is told on standard input, one command a line: what the conditions of phlox record --on are about."""
import asyncio
import os
import signal
import sys
import threading
import time

kept = []


def stall_here():
    time.sleep(0.4)


def spin_here(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def hold_the_gil():
    sum(range(60_000_000))  # one call of C


def fill_memory(size):
    kept.append(os.urandom(1 << 20) * (size >> 20))


def die_of_a_signal(number):
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def obey():
    word, *rest = sys.stdin.readline().split() or ["quit"]
    if word == "stall":
        stall_here()
    elif word == "spin":
        threading.Thread(target=spin_here, args=(float(rest[0]),), name="spinner").start()
    elif word == "gil":
        threading.Thread(target=hold_the_gil, name="holder").start()
    elif word == "memory":
        fill_memory(int(rest[0]))
    elif word == "die":
        die_of_a_signal(int(rest[0]))
    elif word == "quit":
        os._exit(0)
    print("done", word, flush=True)


async def main():
    signal.signal(signal.SIGUSR1, lambda *_: print("USR1", flush=True))
    asyncio.get_running_loop().add_reader(sys.stdin, obey)
    print("ready", flush=True)
    while True:
        await asyncio.sleep(0.02)


asyncio.run(main())
