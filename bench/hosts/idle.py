"""Waits, and does a little every five seconds: a scheduler without jobs."""
import sys
import time

sys.stdout.write("ready\n")
sys.stdout.flush()
while True:
    time.sleep(5)
    sorted(str(i) for i in range(100))
