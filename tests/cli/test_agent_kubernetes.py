"""packaging/kubernetes.yaml and packaging/Containerfile. No cluster runs here: the namespaces, the capabilities and the read-only root of
the daemon set are set up as Kubernetes does, and the agent records there."""
import os
import re
import shutil
import socket
import subprocess

import pytest

from cli_support import PHLOX, ROOT, phlox
from containers import open_to_all
from profile_server import ProfileServer

yaml = pytest.importorskip("yaml")
DAEMON_SET = yaml.safe_load((ROOT / "packaging" / "kubernetes.yaml").read_text())
POD = DAEMON_SET["spec"]["template"]["spec"]
(AGENT,) = POD["containers"]
RIGHTS = AGENT["securityContext"]
CAPABILITIES = RIGHTS["capabilities"]["add"]
# A container of a pod with hostPID: everything of its own but the PIDs and, for this test, the network.
CONTAINER = """set -e
mount --make-rprivate /
mount --bind {state} {state}
mount -o remount,bind,ro /
hostname phlox-agent-x7k2p
exec setpriv --bounding-set {capabilities} --no-new-privs -- "$@"
"""
live = pytest.mark.live
as_root = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root makes such a container")


def test_it_has_no_more_rights_than_the_documents_say():
    assert POD["hostPID"] is True and not {"hostNetwork", "hostIPC", "serviceAccountName"} & set(POD)
    assert POD["automountServiceAccountToken"] is False
    assert RIGHTS["privileged"] is False and RIGHTS["allowPrivilegeEscalation"] is False and RIGHTS["readOnlyRootFilesystem"] is True
    assert RIGHTS["capabilities"]["drop"] == ["ALL"]
    document = (ROOT / "docs" / "agent.md").read_text()
    assert set(re.findall(r"`CAP_(\w+)`", document.partition("## In Kubernetes")[2].partition("\n## ")[0])) == {*CAPABILITIES, "SYS_NICE"}
    # It writes to no other place of the node than the agent's state.
    (state,) = POD["volumes"]
    assert state["hostPath"]["path"] == environment("node")["STATE_DIRECTORY"] == AGENT["volumeMounts"][0]["mountPath"]


def test_the_labels_fit():
    assert DAEMON_SET["kind"] == "DaemonSet" and DAEMON_SET["apiVersion"] == "apps/v1"
    assert DAEMON_SET["spec"]["selector"]["matchLabels"].items() <= DAEMON_SET["spec"]["template"]["metadata"]["labels"].items()


@pytest.mark.skipif(not shutil.which("kubectl"), reason="no kubectl here")
def test_kubectl_reads_it(tmp_path):
    shutil.copy(ROOT / "packaging" / "kubernetes.yaml", tmp_path)
    (tmp_path / "kustomization.yaml").write_text("resources: [kubernetes.yaml]\n")
    done = subprocess.run(["kubectl", "kustomize", tmp_path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout) == DAEMON_SET


def test_the_image_runs_the_agent():
    lines = re.findall(r"^([A-Z]+) (.*)$", (ROOT / "packaging" / "Containerfile").read_text(), re.M)
    last = lines[max(i for i, (word, _) in enumerate(lines) if word == "FROM"):]
    assert last[0] == ("FROM", "scratch")
    words = dict(last)
    assert words["COPY"].split() == ["phlox-static", "/usr/bin/phlox"]
    assert words["ENTRYPOINT"] == '["/usr/bin/phlox"]' and words["CMD"] == '["agent"]' and AGENT["args"] == ["agent"] and "command" not in AGENT
    # Where the static program looks for them.
    assert last[1][1].split()[-1] == "/etc/ssl/certs/ca-certificates.crt"
    assert '"/etc/ssl/certs/ca-certificates.crt"' in (ROOT / "src/phlox/http/curl_http.cpp").read_text()


def environment(node, address="127.0.0.1"):
    """As the kubelet makes it, without the secret, which is optional."""
    made = {}
    for one in AGENT["env"]:
        if "value" in one:
            made[one["name"]] = re.sub(r"\$\((\w+)\)", lambda name: made[name[1]], one["value"])
        elif "fieldRef" in one["valueFrom"]:
            made[one["name"]] = {"spec.nodeName": node, "status.hostIP": address}[one["valueFrom"]["fieldRef"]["fieldPath"]]
        else:
            assert one["valueFrom"]["secretKeyRef"]["optional"] is True
    return made


@pytest.fixture
def container(tmp_path):
    if subprocess.run(["unshare", "-muiC", "true"], capture_output=True).returncode != 0:
        pytest.skip("no namespaces can be made here")
    state = tmp_path / "state"
    state.mkdir(mode=0o755)  # as the kubelet makes a folder of the node

    def command(*words, capabilities=CAPABILITIES):
        script = CONTAINER.format(state=state, capabilities=",".join(["-all", *("+" + one.lower() for one in capabilities)]))
        return ["unshare", "-muiC", "sh", "-c", script, "sh", PHLOX, *words]

    command.state = state
    return command


@pytest.fixture
def target(start, tmp_path_factory):
    """A Python of another user, whose files nobody else may read."""
    home = tmp_path_factory.mktemp("home")
    open_to_all(home)
    script = home / "shop.py"
    script.write_text("import time\ndef serve():\n    while True: sum(range(1000)); time.sleep(0.001)\nprint('ready', flush=True)\nserve()\n")
    for path in (script, home):
        os.chown(path, 65534, 65534)
        path.chmod(0o700)
    mark = f"kubernetes-{os.getpid()}-{home.name}"
    one = start(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", script, mark],
                env={"OTEL_SERVICE_NAME": "shop", "PATH": "/usr/bin"})
    assert one.stdout.readline() == "ready\n"
    return one, mark


@live
@as_root
def test_the_agent_records_with_exactly_these_rights(start, container, target, tmp_path):
    one, mark = target
    made = environment("node-7")
    assert made["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://127.0.0.1:4317" and made["OTEL_EXPORTER_OTLP_PROTOCOL"] == "grpc"
    server = ProfileServer()  # of HTTP: the official gRPC may not be here
    made |= {"OTEL_EXPORTER_OTLP_ENDPOINT": server.url, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "STATE_DIRECTORY": str(container.state)}
    agent = start(container(*AGENT["args"], "--name", mark, "--interval", "1s", "-v"), stderr=(tmp_path / "log").open("w"), env={**os.environ, **made})
    server.wait(lambda s: len(s.taken) >= 2, "two pushes")
    agent.terminate()
    said = (agent.wait(60), (tmp_path / "log").read_text())
    server.close()
    attributes, profile = server.profiles()[-1]
    assert attributes["process.pid"] == one.pid and attributes["service.name"] == "shop", said
    assert attributes["host.name"] == attributes["k8s.node.name"] == "node-7" and socket.gethostname() != "node-7"
    stacks = {tuple(stack[-2:]) for _, profile in server.profiles() for stack, _, _ in profile["samples"]}
    assert ("serve", "<module>") in stacks, stacks
    assert "cannot sample inside the kernel" not in said[1] or "would use: in the kernel" not in phlox("doctor").stdout, said


# What doctor no longer says without it.
NEEDED = {"BPF": "would use: in the kernel (BPF)", "PERFMON": "would use: in the kernel (BPF)", "SYS_PTRACE": "would use: in the kernel (BPF)",
          "DAC_READ_SEARCH": "yes     waiting"}


@live
@as_root
@pytest.mark.parametrize("without", CAPABILITIES)
def test_each_of_them_is_needed(without, container, target):
    one, _ = target
    if "would use: in the kernel" not in phlox("doctor").stdout:
        pytest.skip("this host does not allow kernel sampling")

    def doctor(capabilities):
        done = subprocess.run(container("doctor", "-p", str(one.pid), capabilities=capabilities), capture_output=True, text=True, timeout=60)
        return done.stdout

    assert NEEDED[without] in doctor(CAPABILITIES)
    assert NEEDED[without] not in doctor([other for other in CAPABILITIES if other != without])
