"""Unrelated load for tests of waits: bytes through a pipe, a storm of forks, a network server."""
import os
import pathlib
import signal
import subprocess
import sys

COMMANDS = [["sh", "-c", "yes | cat > /dev/null"], ["sh", "-c", "while :; do /bin/true; done"],
            [sys.executable, str(pathlib.Path(__file__).parent / "programs" / "busy_network.py")]]


class Noise:
    def __enter__(self):
        self.processes = [subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for command in COMMANDS]
        return self

    def __exit__(self, *_):
        for process in self.processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
