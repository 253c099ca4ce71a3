"""packaging/phlox-agent.service: what the documents tell to write there works under what the unit allows. Its limits are those of the file,
set up as systemd does, since no systemd runs here."""
import os
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import urllib.request

import pytest

from cli_support import PHLOX, PYTHON, ROOT, wait_until

UNIT = ROOT / "packaging" / "phlox-agent.service"


def unit():
    """{key: [values]}; the keys differ between the sections."""
    found = {}
    for line in UNIT.read_text().splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith(("#", "[")):
            found.setdefault(key, []).append(value)
    return found


def writable():
    """The folders that the agent may write to: with strict, no others."""
    made = unit()
    assert made["ProtectSystem"] == ["strict"]
    return [pathlib.Path("/var/lib", name) for name in made["StateDirectory"]] + [pathlib.Path(one.lstrip("-+")) for one in made.get("ReadWritePaths", [])]


@pytest.mark.parametrize("document", ["docs/triggers.md", "docs/agent.md", "packaging/phlox-agent.service"])
def test_where_the_documents_tell_the_service_to_write_it_may(document):
    text = (ROOT / document).read_text()
    outputs = [word for line in text.splitlines() if "phlox agent" in line or "--on death" in line and "phlox record" not in line
               for word in re.findall(r"-o (/[^\s`]+)", line)]
    assert outputs or document == "docs/agent.md"
    for output in outputs:
        assert any(pathlib.Path(output).is_relative_to(folder) for folder in writable()), output


def test_systemd_knows_every_line(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd here")
    copy = tmp_path / UNIT.name
    (tmp_path / "agent.env").write_text("OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318\n")
    copy.write_text(UNIT.read_text().replace("/usr/bin/phlox", str(PHLOX)).replace("/etc/phlox/agent.env", str(tmp_path / "agent.env")))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True, timeout=60)
    said = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert not said, done.stderr


# The host read-only but for the folders of the unit, then its capabilities: systemd.exec(5).
SANDBOX = """set -e
mount --make-rprivate /
for one in {writable}; do mount --bind $one $one; done
mount -o remount,bind,ro /
awk '{{print $5}}' /proc/self/mountinfo | sort -u | while read -r one; do
  case "$one" in /|/proc*|/dev*|/sys*) continue ;; esac
  case " {writable} " in *" $one "*) continue ;; esac
  mount -o remount,bind,ro "$one" 2>/dev/null || true
done
umask {umask}
exec setpriv --bounding-set {capabilities} --no-new-privs -- "$@"
"""


@pytest.fixture
def service(start, tmp_path):
    if os.geteuid() != 0 or not shutil.which("setpriv") or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        pytest.skip("no mount namespace can be made here")
    state = tmp_path / "phlox-agent"
    state.mkdir(mode=0o700)
    made = unit()
    capabilities = "-all," + ",".join("+" + one.removeprefix("CAP_").lower() for one in made["CapabilityBoundingSet"][0].split())
    script = SANDBOX.format(writable=shlex.quote(str(state)), umask=made["UMask"][0], capabilities=capabilities)

    def service_(*arguments):
        log = (tmp_path / "log").open("w+")
        process = start(["unshare", "-m", "sh", "-c", script, "sh", PHLOX, "agent", "--otlp", "http://127.0.0.1:9", *arguments],
                        stderr=log, env={**os.environ, "STATE_DIRECTORY": str(state)})
        process.said = lambda: (tmp_path / "log").read_text()
        return process

    service_.state = state
    return service_


@pytest.mark.live
def test_incidents_are_written_below_the_state_folder(service, start, tmp_path):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    mark = f"unit-{os.getpid()}-{tmp_path.name}"
    target = start([PYTHON, "-c", "import sys, time\nprint('ready', flush=True)\nwhile True: time.sleep(0.01)", mark])
    assert target.stdout.readline() == "ready\n"
    agent = service("--name", mark, "--on", f"http=127.0.0.1:{port}", "--after", "0.2", "-o", service.state / "incidents")
    wait_until(lambda: "POST /incident on port" in agent.said() or agent.poll() is not None, "the agent")
    assert agent.poll() is None, agent.said()
    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/incident", data=b"", method="POST"), timeout=10)
    wait_until(lambda: "incident: wrote" in agent.said() or agent.poll() is not None, "the agent")
    names = sorted(file.suffix for file in (service.state / "incidents").glob("incident-*"))
    assert names == [".html", ".phlox", ".txt"], agent.said()


@pytest.mark.live
def test_a_folder_that_the_unit_does_not_name_is_refused_with_what_to_write(service, tmp_path):
    agent = service("--on", "death", "-o", tmp_path / "elsewhere")
    assert agent.wait(60) != 0
    assert "Read-only file system" in agent.said() and "ReadWritePaths=" in agent.said(), agent.said()
