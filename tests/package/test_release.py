"""What `make release` packs, made here of the phlox that the tests use, and of a file that is no more than the head of a program for the
other machine: its parts, its tags, its sums, the same bytes twice.
"""
import hashlib
import importlib.util
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import zipfile

import pytest
from package_support import BUSY, PHLOX, ROOT

pytestmark = [pytest.mark.live,
              pytest.mark.skipif(importlib.util.find_spec("scikit_build_core") is None, reason="not installed: scikit-build-core"),
              pytest.mark.skipif(not pathlib.Path("/var/lib/dpkg/status").exists(), reason="the parts are named by dpkg")]


MACHINE = platform.machine()
OTHER = {"x86_64": "aarch64", "aarch64": "x86_64"}[MACHINE]
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
HEAD = b"\x7fELF\2\1\1" + bytes(11) + {"x86_64": b"\x3e\0", "aarch64": b"\xb7\0"}[OTHER] + bytes(44)


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """Packs both programs into a folder. The other machine's libraries are those that a root lists."""
    folder = tmp_path_factory.mktemp("other")
    for path, text in {"root/var/lib/phlox-packages": "libdw-dev 0.1-2\nlibssl3 3.0-1\n", "root/usr/share/doc/libdw-dev/copyright": "terms of libdw\n"}.items():
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_text(text)
    (folder / "program").write_bytes(HEAD)

    def pack(dist, **environment):
        return subprocess.run([sys.executable, ROOT / "tools/release.py", dist, PHLOX, folder / "program"], capture_output=True, text=True, timeout=300,
                              env={**os.environ, f"PHLOX_{OTHER.upper()}_ROOT": str(folder / "root"), **environment})

    return pack


@pytest.fixture(scope="module")
def dist(packed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("release") / "dist"
    done = packed(folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"release: made for {MACHINE} and {OTHER}"
    return folder


@pytest.fixture(scope="module")
def wheel(dist):
    return wheel_for(MACHINE, dist)


def wheel_for(machine, dist):
    (made,) = dist.glob(f"*_{machine}.whl")
    return made


def test_the_sums_are_of_all_files(dist):
    sums = dict(reversed(line.split("  ")) for line in (dist / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == {path.name for path in dist.iterdir()} - {"SHA256SUMS"}
    assert all(hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest for name, digest in sums.items())


def test_a_second_time_it_has_the_same_bytes(dist, packed, tmp_path):
    again = tmp_path / "again"
    assert packed(again).returncode == 0
    assert (again / "SHA256SUMS").read_text() == (dist / "SHA256SUMS").read_text()


def test_without_the_list_of_a_machine_s_libraries_it_says_what_makes_it(packed, tmp_path):
    done = packed(tmp_path / "dist", **{f"PHLOX_{OTHER.upper()}_ROOT": str(tmp_path)})
    assert done.returncode == 1 and "tools/aarch64-root.sh" in done.stderr, done.stderr


def test_each_machine_has_its_program_its_package_and_its_parts(dist):
    for machine, program in ((MACHINE, pathlib.Path(PHLOX).read_bytes()), (OTHER, HEAD)):
        (copy,) = dist.glob(f"phlox-*-linux-{machine}")
        assert copy.read_bytes() == program
        (package,) = dist.glob(f"phlox_*_{DEBIAN[machine]}.deb")
        field = subprocess.run(["dpkg-deb", "-f", package, "Architecture"], capture_output=True, text=True, check=True).stdout
        assert field.strip() == DEBIAN[machine]
        files = zipfile.ZipFile(wheel_for(machine, dist))
        (inside,) = [name for name in files.namelist() if name.endswith("/scripts/phlox")]
        assert files.read(inside) == program
    # Of the other machine's libraries, what its root lists and the program has.
    parts = json.loads(next(dist.glob(f"*{OTHER}.cdx.json")).read_text())["components"]
    of_packages = {part["name"]: part["purl"] for part in parts if "-cross" not in part["name"] and "arch=source" not in part["purl"]}
    assert list(of_packages) == ["libdw-dev"] and f"@0.1-2?arch={DEBIAN[OTHER]}&" in of_packages["libdw-dev"]
    licences = files.read(inside.split(".data/")[0] + ".dist-info/licenses/LICENSES.txt").decode()
    assert "\nlibdw-dev\n\nterms of libdw\n" in licences


@pytest.mark.parametrize("machine", DEBIAN)
def test_the_wheel_says_what_it_is_for(machine, dist):
    """By its name and by its tags alike: pip reads the one, others the other."""
    wheel = wheel_for(machine, dist)
    with zipfile.ZipFile(wheel) as files:
        (facts,) = [name for name in files.namelist() if name.endswith(".dist-info/WHEEL")]
        tags = re.findall(r"^Tag: (.*)$", files.read(facts).decode(), re.M)
        assert files.namelist()[-1].startswith(facts.split("/")[0])
    assert tags == [f"py3-none-{name}_{machine}" for name in ("manylinux_2_17", "manylinux2014", "musllinux_1_1")]
    assert wheel.name.endswith("-py3-none-" + ".".join(tag.removeprefix("py3-none-") for tag in tags) + ".whl")


def test_the_wheel_lists_its_parts(dist, wheel):
    with zipfile.ZipFile(wheel) as files:
        (inside,) = [name for name in files.namelist() if re.search(r"\.dist-info/sboms/[^/]+\.cdx\.json$", name)]
        parts = json.loads(files.read(inside))
        licences = files.read(inside.split("/")[0] + "/licenses/LICENSES.txt").decode()
    assert parts == json.loads(next(dist.glob(f"*{MACHINE}.cdx.json")).read_text())
    assert parts["bomFormat"] == "CycloneDX"
    named = {component["name"] for component in parts["components"]}
    assert {"libdw-dev", "libsqlite3-dev", "libc6-dev"} <= named and "cmake" not in named
    assert "Apache License" in licences and "\nlibdw-dev\n" in licences


def test_it_installs_without_a_network_and_records(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "v"], check=True)
    python = tmp_path / "v/bin/python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", "--disable-pip-version-check", wheel], check=True, timeout=120)
    program = tmp_path / "busy.py"
    program.write_text(BUSY)
    done = subprocess.run([python.parent / "phlox", "record", "-d", "1", "-o", tmp_path / "a.phlox", "--", python, program], capture_output=True, text=True, timeout=60)
    assert (tmp_path / "a.phlox").exists() and "samples" in done.stderr, done.stderr
