"""CPU time that the host of a virtual machine took from it (steal). If it is high, measurements of a running
program say nothing about phlox."""
import multiprocessing
import time

MOST = 0.04  # of the CPU time that was wanted


def now():
    """-> (stolen, wanted) ticks since the machine started, of all CPUs (proc(5): user nice system idle iowait irq softirq steal)"""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return steal, user + nice + system + irq + softirq + steal


def share(since):
    """Share of the CPU time wanted since then."""
    steal, wanted = (b - a for a, b in zip(since, now()))
    return steal / max(1, wanted)


def _spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def wait_until_little_is(longest, say):
    """Some hosts allow more CPU time for a while and take it back afterwards: waiting helps."""
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
