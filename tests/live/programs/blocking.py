"""Functions that let no other task of an event loop run."""
import time


def compute(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def nap(seconds):
    time.sleep(seconds)
