"""Programs whose time is spent in children that are not Python."""
import os
import resource
import subprocess
import time

from truth import over, part, spin, tell


def children_cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def busy_children(seconds):
    """Four shells of the program itself use the CPUs: no other program does."""
    shells = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(4)]

    def compute():
        with part("compute"):
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                sum(range(1000))

    compute()
    for shell in shells:
        shell.kill()
        shell.wait()
    tell(children=children_cpu())


def compiler(seconds):
    """Waits for a child that computes, such as a compiler or ffmpeg."""
    def wait_for_compiler():
        with part("wait_for_compiler"):
            subprocess.run(["sh", "-c", "i=0; while [ $i -lt %d ]; do i=$((i+1)); done" % int(seconds * 400000)], check=True)

    wait_for_compiler()
    tell(children=children_cpu())


def many_children(seconds):
    def run_true():
        with part("run_true"):
            subprocess.run(["true"], check=True)

    def think():
        with part("think"):
            spin(0.01)

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        run_true()
        think()
    tell(children=children_cpu())


def pipe_from_child(seconds):
    """A child has the other end of the pipe."""
    child = subprocess.Popen(["sh", "-c", "while sleep 0.05; do echo x; done"], stdout=subprocess.PIPE)

    def read_child():
        with part("read_child"):
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                os.read(child.stdout.fileno(), 10)

    read_child()
    child.kill()
    child.wait()
    tell()


if __name__ == "__main__":
    over({f.__name__: f for f in (busy_children, compiler, many_children, pipe_from_child)})
