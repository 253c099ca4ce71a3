"""What the host of a virtual machine took of its CPUs' time (steal). A test that measures a running program says nothing of phlox then."""
import multiprocessing
import time

MOST = 0.04  # of the time that somebody wanted to run


def now():
    """-> (stolen, wanted) ticks since the machine started, of all CPUs (proc(5): user nice system idle iowait irq softirq steal)"""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return steal, user + nice + system + irq + softirq + steal


def share(since):
    """Of the time that was wanted since then."""
    steal, wanted = (b - a for a, b in zip(since, now()))
    return steal / max(1, wanted)


def _spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def wait_until_little_is(longest, say):
    """Some hosts let a machine use more for a while and take it back afterwards: it helps to wait."""
    end = time.monotonic() + longest
    while True:
        before = now()
        spinning = [multiprocessing.Process(target=_spin, args=(1,)) for _ in range(multiprocessing.cpu_count())]
        for process in spinning:
            process.start()
        for process in spinning:
            process.join()
        if share(before) < MOST or time.monotonic() > end:
            return
        say(f"the host of this machine takes {share(before):.0%} of its CPUs' time: waiting")
        time.sleep(20)
