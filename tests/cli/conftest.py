"""Programs that the tests of the command line start, each ended with its test."""
import signal
import subprocess

import pytest

from cli_support import BUSY, PYTHON


@pytest.fixture
def workdir(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def start():
    """Starts programs that are ended with the test."""
    started = []

    def start_(command, **options):
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen([str(word) for word in command], text=True, **options)
        started.append(process)
        return process

    yield start_
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe:
                pipe.close()


@pytest.fixture
def busy(start):
    """A Python that computes until the end of the test."""
    process = start([PYTHON, "-c", BUSY])
    assert process.stdout.readline() == "ready\n"
    return process
