# coding: utf-8
"""Starts threads with odd names; prints the address of the interpreter, then identity and name (hex) of each; then waits."""
import binascii
import ctypes
import sys
import threading

PY2 = sys.version_info[0] == 2


class Text(str):
    pass


class Sub(threading.Thread):
    """More attributes than share their keys."""

    def __init__(self, **k):
        super(Sub, self).__init__(**k)
        for i in range(100):
            setattr(self, "attribute_%d" % i, i)


class Slotted(threading.Thread):
    __slots__ = ("a", "b")


def forever():
    stop.wait()


for i in range(700):
    sys.modules["invented.module_%d" % i] = None
sys.modules[Text("subclass.of.str")] = None
stop = threading.Event()
head = ctypes.pythonapi.PyInterpreterState_Head
head.restype = ctypes.c_void_p
print("%d" % head())

NAMES = ["worker", "w" * 3000, "", Text("subclass"), "with;semicolon\n"]
if PY2:
    NAMES.append("gr\xc3\xbcn")
else:
    NAMES += ["gr\u00fcn", "\u540d\u524d", "\U0001f40d snake", "\u00e9" * 500]
threads = []
for kind in (threading.Thread, Sub, Slotted):
    for name in NAMES:
        thread = kind(target=forever, name="before")
        thread.daemon = True
        thread.start()
        thread.name = name
        threads.append(thread)
for i, thread in enumerate(threads):
    if i % 2:
        thread.__dict__["looked_at"] = 1  # makes the dict of an instance that had only values
ended = threading.Thread(target=lambda: None, name="ended")
ended.start()
ended.join()
for thread in threading.enumerate():
    name = thread.name
    raw = name if isinstance(name, bytes) else name.encode("utf-8")
    print("%d %s" % (thread.ident, binascii.hexlify(raw).decode() or "-"))
print("ready")
sys.stdout.flush()
sys.stdin.read()
