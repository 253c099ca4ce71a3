"""Programs in two versions: changes.py NAME SECONDS before|after. The change is known; `stay` never changes."""
import asyncio
import sys
import threading
import time

from truth import over, part, spin, tell

AFTER = sys.argv[3:] == ["after"]


def stay(seconds):
    with part("stay"):
        spin(seconds)


def changing(seconds):
    with part("changing"):
        spin(seconds)


def removed(seconds):
    """A phase that is removed."""
    if not AFTER:
        changing(seconds / 2)
    stay(seconds / 2)
    tell()


def faster(seconds):
    """A loop step that takes a quarter of its former time."""
    for _ in range(20):
        changing(seconds / 40 * (0.25 if AFTER else 1))
        stay(seconds / 40)
    tell()


def unblocked(seconds):
    """An event loop that was blocked for a while is no longer blocked."""
    def blocking():
        with part("blocking"):
            if not AFTER:
                time.sleep(seconds / 2)

    async def main():
        blocking()
        stay(seconds / 2)

    asyncio.run(main())
    tell()


def lock_dropped(seconds):
    """Two threads that had to wait for each other no longer have to."""
    lock = threading.Lock()

    def slow_step():
        for _ in range(10):
            if AFTER:
                time.sleep(seconds / 20)
            else:
                with lock:
                    time.sleep(seconds / 20)

    threads = [threading.Thread(target=slow_step) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stay(seconds / 5)
    tell()


def nothing(seconds):
    for _ in range(10):
        stay(seconds / 20)
        changing(seconds / 20)
    tell()


if __name__ == "__main__":
    over({f.__name__: f for f in (removed, faster, unblocked, lock_dropped, nothing)})
