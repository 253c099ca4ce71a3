"""Three subinterpreters, or ARG, each busy in its own thread and with a second thread, and the main interpreter.

Prints `ready PID`. What belongs to interpreter N has functions named sN_..., so a stack that mixes two was never there.
"""
import os
import sys
import threading
import time

COUNT = int(sys.argv[1]) if sys.argv[1:] else 3

SCRIPT = """
import os, time, threading
def s{n}_c(): return 1
def s{n}_b(): return s{n}_c()
def s{n}_a(): return s{n}_b()
def s{n}_turn():
    for _ in range(2000): s{n}_a()
    time.sleep(0)
def s{n}_beside():
    while True: time.sleep(0.05)
thread = threading.Thread(target=s{n}_beside, name="beside-{n}")
thread.daemon = {daemon}
thread.start()
os.write({said}, b".")
os.read({go}, 1)
while True: s{n}_turn()
"""


def running(number, said, go):
    """A function that runs the script in a new interpreter, through the newest interface of this version."""
    version = sys.version_info[:2]
    # 3.12: an interpreter of its own allows no daemon threads.
    script = SCRIPT.format(n=number, said=said, go=go, daemon=version < (3, 9))
    if version >= (3, 14):
        from concurrent import interpreters
        made = interpreters.create()
        return lambda: made.exec(script)
    if version >= (3, 13):
        import _interpreters
        made = _interpreters.create()
        return lambda: _interpreters.exec(made, script)
    import _xxsubinterpreters
    # 3.9 to 3.11: an isolated one may not start threads. Before 3.12 all share the one GIL.
    options = {"isolated": False} if (3, 9) <= version < (3, 12) else {}
    made = _xxsubinterpreters.create(**options)
    return lambda: _xxsubinterpreters.run_string(made, script)


def main_turn():
    time.sleep(0.01)


said, says = os.pipe()
go, goes = os.pipe()
# None is busy before all are ready. Before 3.12 they share one GIL, and a thread that waits for it asks only its own interpreter's threads to
# drop it (take_gil in Python/ceval_gil.h): while one interpreter was busy, another needed seconds or minutes until it was ready.
for number, run in [(number, running(number, says, go)) for number in range(1, COUNT + 1)]:
    threading.Thread(target=run, name="host-%d" % number, daemon=True).start()
seen = 0
while seen < COUNT:
    seen += len(os.read(said, 1))
print("ready %d" % os.getpid())
sys.stdout.flush()
os.write(goes, b"." * COUNT)
end = time.time() + 60
while time.time() < end:
    main_turn()
os._exit(0)
