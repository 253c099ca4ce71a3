"""What `make release` made for aarch64, run on x86-64 under qemu-user: it prints its parts, reads recordings as this machine's program does,
and sends profiles by TLS. Run it by `make try-release`.
"""
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile

import pytest
from empty_root import certificate
from package_support import BUSY, ROOT

# (empty_root.py has put tests/cli on the path.)
from profile_server import ProfileServer

DIST = pathlib.Path(os.environ.get("PHLOX_DIST", "/nowhere"))
QEMU = shutil.which("qemu-aarch64-static")
pytestmark = [pytest.mark.live, pytest.mark.skipif(not list(DIST.glob("*-linux-aarch64")), reason="no program for aarch64 in PHLOX_DIST: make try-release"),
              pytest.mark.skipif(platform.machine() != "aarch64" and not QEMU, reason="no qemu-aarch64-static: tools/packages-cross.txt")]


def one(pattern):
    (found,) = DIST.glob(pattern)
    return found


def said(program, *words, emulated=True, **options):
    done = subprocess.run([*([QEMU] if QEMU and emulated else []), program, *words], capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def program():
    return one("phlox-*-linux-aarch64")


def test_it_says_what_it_lacks(program):
    features = re.search("^features: (.*)$", said(program, "--version"), re.M)[1]
    assert features == "kernel capture yes, instruction decoder no (it decodes x86-64 only), debuginfod yes, agent yes"


def test_it_needs_no_library(program):
    assert "INTERP" not in subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("recording", sorted(path.relative_to(ROOT) for path in (ROOT / "tests/recording/old").glob("**/*.phlox")), ids=str)
@pytest.mark.parametrize("words", [["report"], ["report", "--json"], ["export", "-f", "collapsed", "-o", "-"]], ids=" ".join)
def test_it_reads_a_recording_as_the_other_program_does(program, recording, words, tmp_path):
    here = DIST / program.name.replace("aarch64", platform.machine())
    path = shutil.copy(ROOT / recording, tmp_path)
    assert said(program, *words, path) == said(here, *words, path, emulated=False) != ""


def test_it_sends_profiles_by_tls(program, tmp_path):
    server = ProfileServer(certificate=certificate(tmp_path, "localhost"))
    url = f"https://localhost:{server.http.server_address[1]}"
    mark = f"release-aarch64-{os.getpid()}"
    with subprocess.Popen([sys.executable, "-c", BUSY + "print(1, flush=True)\nhot(300)", mark], stdout=subprocess.PIPE) as busy:
        busy.stdout.readline()
        agent = subprocess.Popen([*([QEMU] if QEMU else []), program, "agent", "--name", mark, "--interval", "1s", "--state", tmp_path / "state", "--otlp", url],
                                 stderr=subprocess.PIPE, text=True, env={"SSL_CERT_FILE": str(tmp_path / "certificate.pem")})
        end = time.monotonic() + 60
        while not server.taken and time.monotonic() < end and agent.poll() is None:
            time.sleep(0.05)
        agent.send_signal(signal.SIGTERM)
        told = agent.communicate(timeout=60)[1]
        busy.kill()
    assert server.taken, told


def test_the_wheel_and_the_package_hold_the_same_program(program, tmp_path):
    wheel = zipfile.ZipFile(one("*_aarch64.whl"))
    (inside,) = [name for name in wheel.namelist() if name.endswith(".data/scripts/phlox")]
    assert wheel.read(inside) == program.read_bytes()
    subprocess.run(["dpkg-deb", "-x", one("*_arm64.deb"), tmp_path], check=True)
    assert (tmp_path / "usr/bin/phlox").read_bytes() == program.read_bytes()
    assert said(tmp_path / "usr/bin/phlox", "--version") == said(program, "--version")
