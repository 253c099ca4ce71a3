"""What `make install` and `make deb` put where, from the tree that was built for the tests. The package holds that program, not the static one."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

try:
    import tomllib
except ImportError:  # before Python 3.11
    import tomli as tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PHLOX_BUILD_DIR", ROOT / "build" / "dev"))
VERSION, CANDIDATE = re.search(r'project\(phlox VERSION ([0-9.]+).*?set\(PHLOX_CANDIDATE "(.*?)"', (ROOT / "CMakeLists.txt").read_text(), re.S).groups()

FILES = ["bin/phlox", "share/man/man1/phlox.1", "share/bash-completion/completions/phlox", "share/fish/vendor_completions.d/phlox.fish"]


def works(program):
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    assert VERSION in said
    done = subprocess.run([program, "record", "-q", "-o", "-", "--", "/usr/bin/python3", "-c", "import time; time.sleep(0.3)"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "<module>" in done.stdout


def test_make_install_brings_program_manual_and_completions(tmp_path):
    subprocess.run(["cmake", "--install", BUILD, "--prefix", tmp_path, "--strip"], check=True, capture_output=True)
    for name in FILES:
        assert (tmp_path / name).stat().st_size > 0
    assert (tmp_path / "share/zsh/site-functions/_phlox").stat().st_size > 0
    works(tmp_path / "bin" / "phlox")
    assert (tmp_path / "share/man/man1/phlox.1").read_text().startswith(".TH")


def test_make_deb_makes_a_package_that_needs_no_other(tmp_path):
    if not shutil.which("dpkg-deb"):
        pytest.skip("no dpkg here")
    made = subprocess.run([ROOT / "tools/release.py", "--deb", tmp_path / "deb", BUILD / "phlox"], capture_output=True, text=True, timeout=300)
    assert made.returncode == 0, made.stdout + made.stderr
    (package,) = (tmp_path / "deb").iterdir()
    number = VERSION + ("~" + CANDIDATE if CANDIDATE else "")
    assert re.fullmatch(rf"phlox_{re.escape(number)}_(amd64|arm64)\.deb", package.name)
    field = lambda name: subprocess.run(["dpkg-deb", "-f", package, name], capture_output=True, text=True, check=True).stdout.strip()
    assert (field("Package"), field("Version"), field("Depends")) == ("phlox", number, "")
    assert re.search(r"<.+@.+>", field("Maintainer"))
    root = tmp_path / "root"
    subprocess.run(["dpkg-deb", "-x", package, root], check=True)
    packaging = [f"share/doc/phlox/{path.name}" for path in (ROOT / "packaging").iterdir()]
    for name in [*FILES, *packaging, "share/zsh/vendor-completions/_phlox"]:
        assert (root / "usr" / name).exists() or (root / "usr" / f"{name}.gz").exists(), name
    assert "Apache" in (root / "usr/share/doc/phlox/copyright").read_text()
    works(root / "usr/bin/phlox")


def test_the_wheel_has_the_version_and_the_name_of_the_program():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    provider = project["tool"]["scikit-build"]["metadata"]["version"]
    found = re.search(provider["regex"], (ROOT / provider["input"]).read_text())
    assert provider["result"].format(**found.groupdict()) == VERSION + CANDIDATE
    assert project["project"]["name"] == "phlox"
    for name in [project["project"]["readme"], *project["tool"]["scikit-build"]["wheel"]["license-files"]]:
        assert (ROOT / name).is_file()
