"""Facts about this machine."""
import functools
import platform
import subprocess


def kernel_tells_names():
    """Whether /proc/kallsyms shows us real addresses (kernel.kptr_restrict)."""
    try:
        with open("/proc/kallsyms") as file:
            return int(file.readline().split()[0], 16) != 0
    except (OSError, IndexError):
        return False


def distribution():
    """debian, ubuntu..."""
    return platform.freedesktop_os_release().get("ID", "")


@functools.lru_cache(maxsize=None)
def node_inflates():
    """Whether Node.js has the page's DecompressionStream, which came with 18."""
    try:
        return subprocess.run(["node", "-e", "process.exit(typeof DecompressionStream === 'undefined' ? 1 : 0)"], timeout=60).returncode == 0
    except OSError:
        return False
