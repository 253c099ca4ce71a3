"""The wheel, made of the tree with the phlox that was built for the tests, in an environment that has nothing else of it."""
import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import zipfile

import pytest
from package_support import BUSY, PHLOX, ROOT

pytestmark = [pytest.mark.live,
              pytest.mark.skipif(importlib.util.find_spec("scikit_build_core") is None, reason="not installed: scikit-build-core")]


def done(*command, **options):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, **options)
    assert result.returncode == 0, result.stdout + result.stderr
    return result


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    settings = {"cmake.source-dir": ROOT / "tests/package/prebuilt", "cmake.define.PHLOX_PREBUILT": PHLOX, "build-dir": folder / "build"}
    done(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-w", folder,
         *[f"--config-settings={name}={value}" for name, value in settings.items()], ROOT)
    (made,) = folder.glob("phlox-*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """(its Python, what to run it with). pytest and IPython are those of the tests: next to it, not in it."""
    folder = tmp_path_factory.mktemp("environment")
    done(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    done(python, "-m", "pip", "install", "--no-index", "--disable-pip-version-check", wheel)
    site = done(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip()
    with open(os.path.join(site, "tests.pth"), "w") as file:
        file.write(sysconfig.get_path("purelib") + "\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PHLOX_", "PYTHON"))}
    return python, {**environment, "PATH": "/usr/bin:/bin", "IPYTHONDIR": str(folder / "ipython")}


def test_it_holds_the_program_the_package_and_the_plugin(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {"phlox/__init__.py", "phlox/py.typed", "phlox/ipython.py", "phlox/pytest_plugin.py"} <= set(names)
    assert any(name.endswith(".data/scripts/phlox") for name in names)
    assert any(name.endswith("LICENSE") for name in names)
    assert "-py3-none-" in wheel.name and "-none-any" not in wheel.name, "of this platform, and of any Python"


def test_the_program_is_on_the_path_of_its_environment(installed):
    python, environment = installed
    assert done(python.parent / "phlox", "--version", env=environment).stdout.startswith("phlox ")


def test_it_records(installed, tmp_path):
    python, environment = installed
    program = BUSY + """
import json, sys, phlox
assert phlox.__file__.startswith(sys.prefix), phlox.__file__
with phlox.profile() as p: hot(0.4)
mine = {frame.function for stretch in p.recording.spans() for frame in stretch.stack}
theirs = phlox.record(command=[sys.executable, "-c", "import time; time.sleep(.3)"])
print(json.dumps(["hot" in mine, len(theirs.threads)]))
"""
    assert json.loads(done(python, "-c", program, cwd=tmp_path, env=environment).stdout.splitlines()[-1]) == [True, 1]


@pytest.mark.skipif(importlib.util.find_spec("IPython") is None, reason="not installed: IPython")
def test_a_cell_is_recorded(installed, tmp_path):
    python, environment = installed
    program = """
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "phlox")
with capture_output() as out:
    shell.run_cell_magic("phlox", "", "import time\\nend = time.monotonic() + 0.4\\nwhile time.monotonic() < end: sum(range(300))")
print(out.outputs[0].data["text/html"][:7])
"""
    assert done(python, "-c", program, cwd=tmp_path, env=environment).stdout.splitlines()[-1] == "<iframe"


def test_the_plugin_is_found_without_being_named(installed, tmp_path):
    python, environment = installed
    (tmp_path / "test_it.py").write_text(BUSY + "def test_slow(): hot(0.4)\n")
    said = done(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--phlox", "run.phlox", "test_it.py", cwd=tmp_path, env=environment)
    assert (tmp_path / "run.phlox").exists(), said.stdout
    labels = done(python, "-c", "import phlox; print([label.text for label in phlox.load('run.phlox').labels])", cwd=tmp_path, env=environment).stdout
    assert "test_it.py::test_slow" in labels
