"""What `make release` packs, made here of the phlox that the tests use: its parts, its tags, its sums, the same bytes twice."""
import hashlib
import importlib.util
import json
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


def packed(folder):
    done = subprocess.run([sys.executable, ROOT / "tools/release.py", folder, PHLOX], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    return packed(tmp_path_factory.mktemp("release") / "dist")


@pytest.fixture(scope="module")
def wheel(dist):
    (made,) = dist.glob("*.whl")
    return made


def test_the_sums_are_of_all_files(dist):
    sums = dict(reversed(line.split("  ")) for line in (dist / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == {path.name for path in dist.iterdir()} - {"SHA256SUMS"}
    assert all(hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest for name, digest in sums.items())


def test_a_second_time_it_has_the_same_bytes(dist, tmp_path):
    again = packed(tmp_path / "again")
    assert (again / "SHA256SUMS").read_text() == (dist / "SHA256SUMS").read_text()


def test_the_wheel_says_what_it_is_for(wheel):
    """By its name and by its tags alike: pip reads the one, others the other."""
    machine = platform.machine()
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
    assert parts == json.loads(next(dist.glob("*.cdx.json")).read_text())
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
