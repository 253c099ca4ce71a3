"""Installs the peers into a directory outside the tree: py-spy and austin from PyPI, Tachyon
(profiling.sampling) with CPython 3.15 from Debian sid, unpacked by a private apt. Also the imports of the
targets of section `native`. Does not change the host's own packages.
"""
import glob
import os
import subprocess
import sys

APT = """Dir::Etc::sourcelist "{0}/sources.list"; Dir::Etc::sourceparts "{0}/parts";
Dir::State "{0}/state"; Dir::State::Lists "{0}/lists"; Dir::State::status "{0}/status"; Dir::Cache "{0}/cache";
Acquire::Check-Valid-Until "false"; Acquire::Languages "none"; APT::Install-Recommends "false";
APT::Sandbox::User "root"; APT::Get::AllowUnauthenticated "false";
"""


def mirror():
    """The Debian mirror configured on this machine."""
    for path in glob.glob("/etc/apt/sources.list.d/*.sources") + glob.glob("/etc/apt/sources.list"):
        with open(path) as file:
            for line in file:
                if not line.startswith(("URIs:", "deb ")):
                    continue
                for word in line.split():
                    if "://" in word and "security" not in word:
                        return word
    raise RuntimeError("no Debian mirror is set up")


def venv(cache):
    directory = os.path.join(cache, "venv")
    if not os.path.exists(os.path.join(directory, "bin", "py-spy")):
        subprocess.run([sys.executable, "-m", "venv", directory], check=True)
        subprocess.run([os.path.join(directory, "bin", "pip"), "-q", "install", "py-spy", "austin-dist", "austin-python"], check=True)
    return directory


def environment(directory, python, *packages):
    """Its interpreter; made anew if an earlier attempt was not finished."""
    inside = os.path.join(directory, "bin", "python")
    done = os.path.join(directory, "complete")
    if not os.path.exists(done):
        subprocess.run([python, "-m", "venv", "--clear", directory], check=True)
        subprocess.run([inside, "-m", "pip", "-q", "install", "--only-binary", ":all:", *packages], check=True)
        open(done, "w").close()
    return inside


def packages(cache, python, version):
    """The interpreter of an environment with the imports of forest.py and dataflow.py."""
    return environment(os.path.join(cache, "packages-" + version), python, "pandas<3", "scikit-learn<2", "bytewax<0.22")


def huge_packages(cache, python, version):
    """The interpreter of an environment with the imports of huge.py. torch is left out: with what it needs, it takes
    gigabytes. Install it there to measure with it."""
    return environment(os.path.join(cache, "huge-" + version), python, "numpy", "scipy", "scikit-learn", "polars", "pyarrow")


def server_packages(cache, python, version):
    """The interpreter of an environment with gunicorn."""
    directory = os.path.join(cache, "server-" + version)
    inside = os.path.join(directory, "bin", "python")
    if not os.path.exists(os.path.join(directory, "bin", "gunicorn")):
        subprocess.run([python, "-m", "venv", "--clear", directory], check=True)
        subprocess.run([inside, "-m", "pip", "-q", "install", "gunicorn>=20"], check=True)
    return inside


def hotspot(cache):
    """Hotspot's perf.data parser from Debian's package, unpacked separately: the package itself brings a
    desktop. It needs libqt5core5a and libqt5network5 on the host. None if it is unavailable or does not run."""
    places = "usr/lib/*/libexec/hotspot-perfparser"
    folder = os.path.join(cache, "hotspot")
    found = glob.glob("/" + places) or glob.glob(os.path.join(folder, places))
    if not found:
        os.makedirs(folder, exist_ok=True)
        subprocess.run(["apt-get", "-qq", "download", "hotspot"], cwd=folder, stderr=subprocess.DEVNULL)
        for package in glob.glob(os.path.join(folder, "*.deb")):
            subprocess.run(["dpkg", "-x", package, folder])
        found = glob.glob(os.path.join(folder, places))
    if not found or subprocess.run([found[0], "--version"], capture_output=True).returncode != 0:
        print("no Hotspot: apt-get install libqt5core5a libqt5network5, and apt-get download hotspot", file=sys.stderr)
        return None
    return found[0]


def sid(cache):
    """A root directory with Debian sid's python3.15 and C library; None if unavailable."""
    root = os.path.join(cache, "sid")
    if os.path.exists(os.path.join(root, "usr", "bin", "python3.15")):
        return root
    apt = os.path.join(cache, "apt")
    for part in ("lists/partial", "cache/archives/partial", "state", "parts"):
        os.makedirs(os.path.join(apt, part), exist_ok=True)
    open(os.path.join(apt, "status"), "w").close()
    with open(os.path.join(apt, "sources.list"), "w") as file:
        file.write("deb %s sid main\n" % mirror())
    with open(os.path.join(apt, "apt.conf"), "w") as file:
        file.write(APT.format(apt))
    environment = dict(os.environ, APT_CONFIG=os.path.join(apt, "apt.conf"), LC_ALL="C")
    try:
        subprocess.run(["apt-get", "-qq", "update"], env=environment, check=True)
        subprocess.run(["apt-get", "-qq", "-y", "--download-only", "install", "python3.15"], env=environment, check=True)
    except subprocess.CalledProcessError as error:
        print("no Tachyon: %s" % error, file=sys.stderr)
        return None
    for directory in ("tmp", "dev", "proc", "etc", "usr/bin", "usr/sbin", "usr/lib", "usr/lib64"):
        os.makedirs(os.path.join(root, directory), exist_ok=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        if not os.path.lexists(os.path.join(root, name)):
            os.symlink("usr/" + name, os.path.join(root, name))
    for package in glob.glob(os.path.join(apt, "cache/archives/*.deb")):
        subprocess.run(["dpkg", "-x", package, root], check=True)
        os.unlink(package)
    return root


def host_packages(cache, python, version):
    """The interpreter of an environment with the servers and NumPy that the section `hosts` runs."""
    return environment(os.path.join(cache, "host-" + version), python, "gunicorn", "uvicorn", "numpy")
