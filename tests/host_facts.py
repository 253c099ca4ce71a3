"""Facts about this machine."""
import platform


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
