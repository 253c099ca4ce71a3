"""What the system gives no more of: memory, threads, room in files. Each command ends with a message and an exit status, never by a signal."""
import os
import resource
import subprocess

import pytest
from cli_support import BUILD, BUSY, LIMIT, PHLOX, phlox, still_runs

pytestmark = [pytest.mark.live, pytest.mark.skipif(BUILD.name in ("asan", "tsan"), reason="a sanitizer needs address space of its own")]
MB = 1 << 20
COMMANDS = {
    "record": ("record", "-p", "{pid}", "-d", "0.5", "-o", "{name}.phlox"),
    "native": ("record", "--native", "-p", "{pid}", "-d", "0.5", "-o", "{name}.phlox"),
    "no-kernel": ("record", "--mode", "no-kernel", "-p", "{pid}", "-d", "0.5", "-o", "{name}.phlox"),
    "dump": ("dump", "-p", "{pid}"),
    "report": ("report", "whole.phlox"),
    "diff": ("diff", "whole.phlox", "whole.phlox"),
    "page": ("export", "whole.phlox", "-o", "{name}.html"),
    "import": ("import", "whole.collapsed", "-o", "{name}.phlox"),
    "doctor": ("doctor",),
}


def limited(name, command, pid, limits):
    def limit():
        for what, most in limits:
            resource.setrlimit(what, (most, most))
    words = [word.format(pid=pid, name=name) for word in COMMANDS[command]]
    return subprocess.run([PHLOX, *words], preexec_fn=limit, capture_output=True, text=True, timeout=LIMIT)


@pytest.fixture
def recorded(busy, workdir):
    assert phlox("record", "-p", busy.pid, "-d", 0.3, "-o", "whole.phlox").returncode == 0
    assert phlox("export", "whole.phlox", "-o", "whole.collapsed").returncode == 0
    return busy


def starts_with():
    """MB of address space that are enough for phlox to print its version."""
    for most in range(4, 64):
        done = subprocess.run([PHLOX, "--version"], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most * MB, most * MB)), capture_output=True)
        if done.returncode == 0:
            return most
    raise AssertionError("phlox --version takes more than 64 MB")


@pytest.mark.parametrize("command", COMMANDS)
def test_memory_that_is_not_there(recorded, command):
    refused, least = 0, starts_with()
    for more in (0, 0.5, 1, 2, 3, 5, 8, 14, 25, 40, 60, 90, 130, 180, 250):
        done = limited(f"{command}{more}", command, recorded.pid, [(resource.RLIMIT_AS, int((least + more) * MB))])
        said = (least, more, done.returncode, done.stderr)
        assert done.returncode >= 0 and "terminate" not in done.stderr, said
        if done.returncode:
            refused += 1
            assert done.stderr.startswith("phlox: "), said
    # Of so small a recording these two need no more than to start.
    assert refused > 0 or command in ("report", "page")
    assert still_runs(recorded)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives rights up")
@pytest.mark.parametrize("command", ["record", "no-kernel", "page"])
def test_threads_that_are_not_started(recorded, workdir, command):
    """RLIMIT_NPROC counts all of a user's threads: those of a user who has none other."""
    os.chmod(workdir, 0o777)
    user = 61234
    own = subprocess.Popen(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "/usr/bin/python3", "-c", BUSY],
                           stdout=subprocess.PIPE, text=True)
    assert own.stdout.readline() == "ready\n"
    try:
        done = subprocess.run(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "prlimit", "--nproc=1", PHLOX,
                               *(word.format(pid=own.pid, name="a") for word in COMMANDS[command])], capture_output=True, text=True, timeout=LIMIT)
    finally:
        own.kill()
        own.wait()
    assert done.returncode >= 0 and "terminate" not in done.stderr, (done.returncode, done.stderr)


def test_a_file_that_may_not_grow(recorded):
    done = limited("a", "record", recorded.pid, [(resource.RLIMIT_FSIZE, 60_000)])
    assert done.returncode == 117, (done.returncode, done.stderr)
    assert "a.phlox" in done.stderr
    assert not os.path.exists("a.phlox") or phlox("report", "a.phlox").returncode == 0
    assert still_runs(recorded)


def test_a_program_that_is_started_has_its_own_dispositions(workdir):
    # CPython ignores SIGXFSZ from its start on; a shell does not.
    done = phlox("record", "-o", "a.phlox", "--", "sh", "-c", "grep SigIgn /proc/self/status; exec python3 -c 'import time; time.sleep(0.3)'")
    ignored = int(done.stdout.split()[1], 16)
    assert not ignored >> 24 & 1, done.stdout  # 25 - 1
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kib", [64, 200])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_small_stack(recorded, command, kib):
    """Only the soft limit is small: it is raised. The hard one too: that is said, unless root may raise it."""
    soft = subprocess.run([PHLOX, *(word.format(pid=recorded.pid, name="soft") for word in COMMANDS[command])], capture_output=True, text=True, timeout=LIMIT,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (kib << 10, resource.getrlimit(resource.RLIMIT_STACK)[1])))
    assert soft.returncode == 0, soft.stderr
    hard = limited("hard", command, recorded.pid, [(resource.RLIMIT_STACK, kib << 10)])
    assert hard.returncode == 0 or hard.returncode == 119 and "the limit of the stack" in hard.stderr, (hard.returncode, hard.stderr)


def test_a_program_gets_the_stack_that_phlox_got(workdir):
    done = subprocess.run([PHLOX, "record", "-q", "-o", "a.phlox", "--", "python3", "-c", "import resource as r, time; time.sleep(.3); print(r.getrlimit(r.RLIMIT_STACK)[0])"],
                          capture_output=True, text=True, timeout=LIMIT,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (200 << 10, resource.getrlimit(resource.RLIMIT_STACK)[1])))
    assert done.returncode == 0 and done.stdout == f"{200 << 10}\n", (done.returncode, done.stdout, done.stderr)
