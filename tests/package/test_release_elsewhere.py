"""What `make release` made, on systems that it was not built on: Debian and Ubuntu without compiler or library of phlox's, as an ordinary
user; a Python on musl; an empty root. Needs root, and much of the network: run it by `make try-release`."""
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

import pytest
from package_support import BUSY

DIST = pathlib.Path(os.environ.get("PHLOX_DIST", "/nowhere"))
ROOTS = pathlib.Path(os.environ.get("PHLOX_ROOTS", "/var/tmp/phlox-roots"))
PYTHONS = pathlib.Path(os.environ.get("PHLOX_PYTHONS_DIR") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "phlox/pythons")
MACHINE = platform.machine()
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
SUITES = ["bookworm", "jammy", "noble"]
pytestmark = [pytest.mark.live, pytest.mark.skipif(not DIST.is_dir(), reason="PHLOX_DIST is not set: make try-release")]

PROGRAM = BUSY + """
import phlox
with phlox.profile() as p: hot(0.4)
print(phlox.__file__, "hot" in p.recording.report(), p.recording.counters["samples"])
"""


def one(pattern):
    (found,) = DIST.glob(pattern)
    return found


def done(*command, **options):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, **options)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


def in_root(suite, script):
    """What a shell script says, run as an ordinary user in a root of that suite, with the files of DIST in /dist and no network."""
    root = ROOTS / suite
    (root / "dist").mkdir(exist_ok=True)
    mounts = 'for d in proc dev sys; do mount --rbind /$d "$0/$d"; done; mount --bind "$1" "$0/dist"; mount -t tmpfs none "$0/tmp"; chmod 1777 "$0/tmp"'
    run = 'exec chroot --userspec=4711:4711 "$0" /usr/bin/env -i HOME=/tmp PATH=/usr/bin:/bin:/usr/sbin:/sbin sh -euc "$2"'
    if script.startswith("#root"):
        run = run.replace("--userspec=4711:4711 ", "")
    return done("unshare", "--mount", "--net", "--propagation", "private", "sh", "-euc", f"{mounts}; {run}", root, DIST, script)


def recorded(said):
    found = re.search(r'recorded .*"taken": (\d+)', said)
    assert found and int(found[1]) > 10, said


RECORDS = f"""
cat > /tmp/busy.py <<'EOF'
{BUSY}
hot(1)
EOF
phlox --version
phlox record -q -o /tmp/a.phlox -- python3 /tmp/busy.py
phlox report /tmp/a.phlox | grep -q hot
echo recorded $(phlox query --json /tmp/a.phlox 'SELECT sum(samples) AS taken FROM sample')
"""


@pytest.fixture(scope="module", params=SUITES)
def suite(request):
    if os.geteuid() != 0:
        pytest.skip("only root can give a program another root")
    if not (ROOTS / request.param / "ok").exists():
        pytest.skip(f"no root of {request.param}: tools/release-roots.sh")
    return request.param


def test_the_sums_are_right():
    for line in (DIST / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((DIST / name).read_bytes()).hexdigest() == digest, name


def test_the_wheel_installs_without_a_network_and_records(suite):
    wheel = one(f"*{MACHINE}*.whl").name
    said = in_root(suite, f"""
python3 -m venv /tmp/v
/tmp/v/bin/python -m pip install -q --no-index --disable-pip-version-check /dist/{wheel}
cat > /tmp/profile.py <<'EOF'
{PROGRAM}
EOF
cd /tmp; /tmp/v/bin/python /tmp/profile.py
PATH=/tmp/v/bin:$PATH
{RECORDS}""")
    assert re.search(r"^/tmp/v/lib/\S+ True \d\d+$", said, re.M), said
    recorded(said)


def test_the_package_installs_by_itself_and_records(suite):
    package = one(f"*_{DEBIAN[MACHINE]}.deb").name
    said = in_root(suite, f"""#root
dpkg -i /dist/{package} > /tmp/dpkg.log 2>&1 || {{ cat /tmp/dpkg.log; exit 1; }}
trap 'dpkg --purge phlox > /dev/null' EXIT
dpkg -S /usr/bin/phlox
{RECORDS}""")
    recorded(said)


def test_a_python_on_musl_takes_the_wheel_and_is_recorded(tmp_path):
    python = PYTHONS / "bin/3.13musl"
    if not python.exists():
        pytest.skip("no Python on musl: tools/get-pythons.sh musl")
    # It has no pip of its own; this one asks it for its tags.
    done(sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--disable-pip-version-check", "--target", tmp_path / "site", one(f"*{MACHINE}*.whl"))
    # Nor has it sqlite3, so it cannot count the samples.
    (tmp_path / "profile.py").write_text(PROGRAM.replace('p.recording.counters["samples"]', "p.recording.report().count('hot')"))
    environment = {"PATH": f"{tmp_path}/site/bin:/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(tmp_path / "site")}
    said = done(python, tmp_path / "profile.py", env=environment, cwd=tmp_path)
    assert re.search(r" True [1-9]\d*$", said, re.M), said


def test_the_program_runs_where_nothing_else_is(tmp_path):
    shutil.copy(one(f"phlox-*-linux-{MACHINE}"), tmp_path / "phlox")
    assert done("chroot", tmp_path, "/phlox", "--version").startswith("phlox ")


@pytest.mark.parametrize("machine", DEBIAN)
def test_others_agree_with_the_tags(machine):
    """auditwheel reads what the program needs of a C library: nothing, so any tag is true."""
    wheels = list(DIST.glob(f"*{machine}*.whl"))
    if not wheels:
        pytest.skip(f"there is no wheel for {machine}")
    done(sys.executable, "-m", "twine", "check", "--strict", *wheels)
    if machine != MACHINE:
        return  # it speaks of its own machine alone
    said = done(sys.executable, "-m", "auditwheel", "show", wheels[0])
    assert "requires no external shared libraries" in said, said
