"""Run by gdb (tests/live/judge.py). Stops a process at random moments; each time phlox dumps it, and then gdb writes what it
finds: native frames from its unwinder, Python frames from CPython's Tools/gdb/libpython.py if there is one.
With "record" the process is recorded instead, from before the stop until it is stopped: the recording ends with the stack at the stop.
$JUDGE: {"pid", "dump": [command], "record": [command] or null, "support": file or null, "moments", "to": file}."""
import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import time

import gdb

asked = json.loads(os.environ["JUDGE"])
if asked["support"]:
    gdb.execute("source " + asked["support"])  # defines Frame, here


def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    while True:
        states = []
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/stat" % (pid, task)) as stat:
                states.append(stat.read().rpartition(")")[2].split()[0])
        if set(states) == {"T"}:
            return
        time.sleep(0.01)


class Recording:
    """Waits until the process has been stopped for longer than the recorder leaves a wait unreported."""

    def __init__(self, command):
        self.path = command[-1]
        self.recorder = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while self.recorder.poll() is None and not self.looked():
            time.sleep(0.01)

    def looked(self):
        try:
            with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % self.path, uri=True)) as database:
                return database.execute("SELECT count(*) FROM sample").fetchone()[0] > 0
        except sqlite3.Error:
            return False

    def end(self):
        time.sleep(0.6)
        self.recorder.send_signal(signal.SIGINT)
        error = self.recorder.communicate()[1]
        return {"status": self.recorder.returncode, "error": error, "recording": self.path}


def python_frames(frame):
    """[[function, file, line or None], ...] of the evaluation that this frame of the interpreter loop runs, innermost first; None: not known."""
    if not asked["support"]:
        return None
    try:
        wrapped = Frame(frame)  # noqa: F821
        if not wrapped.is_evalframe():
            return None
        one, found = wrapped.get_pyop(), []
        while one:
            if one.is_optimized_out():
                return None
            if hasattr(one, "is_shim") and one.is_shim():
                break
            found.append([one.co_name.proxyval(set()), one.filename(), one.current_line_num()])
            # Before 3.11 an evaluation is one frame; since 3.11 its outermost frame is marked.
            if not hasattr(one, "previous") or (hasattr(one, "is_entry") and one.is_entry()):
                break
            one = one.previous()
        return found or None
    except (gdb.error, RuntimeError, ValueError, AttributeError, TypeError, UnicodeDecodeError):
        return None


def frames():
    """Innermost first. Frames that gdb adds from call sites (inlined and tail-called functions) are not on the stack."""
    found, frame = [], gdb.newest_frame()
    while frame is not None and frame.is_valid():
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME) and frame.pc() != 0:
            found.append({"pc": frame.pc(), "name": frame.name(), "symbol": gdb.execute("info symbol %#x" % frame.pc(), to_string=True),
                          "signal": frame.type() == gdb.SIGTRAMP_FRAME, "python": python_frames(frame)})
        frame = frame.older()
    return found


moments = []
for number in range(asked["moments"]):
    recording = Recording([*asked["record"], "%s.%d.phlox" % (asked["to"], number)]) if asked["record"] else None
    time.sleep(random.random() * 0.02)
    stop(asked["pid"])
    if recording:
        moment = recording.end()
    else:
        dump = subprocess.run(asked["dump"], capture_output=True, text=True)
        moment = {"status": dump.returncode, "error": dump.stderr, "dump": dump.stdout}
    with open("/proc/%d/maps" % asked["pid"]) as maps:
        moment["maps"] = maps.read()
    gdb.execute("attach %d" % asked["pid"], to_string=True)
    moment["gdb"] = {}
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        moment["gdb"][thread.ptid[1]] = frames()
    gdb.execute("detach", to_string=True)
    os.kill(asked["pid"], signal.SIGCONT)
    moments.append(moment)
with open(asked["to"], "w") as file:
    json.dump(moments, file)
