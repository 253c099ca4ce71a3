"""Targets in namespaces, control groups and roots of their own, seen from outside and from within: docs/containers.md. Their files lie
beneath their own root, their ids are others, and rights are missing."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess

import pytest
from cli_support import BUSY, PHLOX, PYTHON, REFUSE, looks_in_the_kernel, phlox, wait_until, where_calls_can_be_refused
from containers import APP, AS_ROOT, KINDS, NOBODY, Container, as_user, control_group, limit_cpu, open_to_all

pytestmark = pytest.mark.live
ID = "4d216b14a0c40e23de0a7aae3a289f3e4d216b14a0c40e23de0a7aae3a289f3e"
USAGE, NO_PROCESS, PERMISSION = 2, 111, 114
only_root = pytest.mark.skipif(not AS_ROOT, reason="gives up rights that only root has, or makes control groups")
MODE = "in the kernel (BPF)" if looks_in_the_kernel() else "same CPU"
FOUND = re.compile(r"inside \(/inner/app\.py\) \d+")


@pytest.fixture(params=KINDS)
def contained(request, start, tmp_path):
    return Container(start, tmp_path, request.param)


@pytest.fixture
def container(start, tmp_path):
    return Container(start, tmp_path, "pivot_root" if AS_ROOT else "rootless_pivot_root")


def meta(path):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return dict(db.execute("SELECT key, value FROM meta"))


# --- from outside and from within -------------------------------------------------------------------------------------
def test_it_is_recorded_from_outside(contained):
    assert contained.pid != contained.inner_pid
    for as_owner in {False, contained.uid != os.getuid()}:
        done = contained.outside("record", "-p", contained.pid, "-d", "0.5", "-o", "-", as_owner=as_owner)
        assert done.returncode == 0, done.stderr
        assert FOUND.search(done.stdout), done.stdout
        assert MODE in done.stderr if not as_owner and AS_ROOT else "same CPU" in done.stderr
        assert "unproved" not in done.stderr
    done = contained.outside("record", "--mode", "no-kernel", "-p", contained.pid, "-d", "0.5", "-o", "-")
    assert done.returncode == 0, done.stderr
    assert FOUND.search(done.stdout), done.stdout
    assert "same CPU" in done.stderr and "unproved" not in done.stderr


def test_it_is_recorded_from_within(contained):
    """docker exec: its root, its numbers."""
    done = contained.inside("record", "-p", contained.inner_pid, "-d", "0.5", "-o", "-")
    assert done.returncode == 0, done.stderr
    assert FOUND.search(done.stdout), done.stdout
    assert "same CPU" in done.stderr and "unproved" not in done.stderr
    said = contained.inside("doctor", "-p", contained.inner_pid)
    mode = re.search(r"read: (.+?); took", done.stderr).group(1).replace(", woken by a perf event", "")
    assert said.returncode == 0 and f"would use: {mode}" in said.stdout.replace(", woken by a perf event", ""), said.stdout
    assert str(contained.inner_pid) in contained.inside("list").stdout


def test_its_source_and_its_libraries_are_read_beneath_its_own_root(contained):
    assert not os.path.exists("/inner/app.py")
    # The sample may fall between two calls; the loop's line is where it nearly always is.
    wait_until(lambda: "while time.monotonic() < end: sum(range(200))" in contained.outside("dump", "-p", contained.pid).stdout, "a line of source")
    said = contained.outside("doctor", "-p", contained.pid)
    assert re.search(r"^yes +files +phlox can open all \d+", said.stdout, re.M), said.stdout


def test_no_link_in_its_root_leads_out(container, tmp_path):
    """The name of a source file is resolved below the container's root, whatever links are there."""
    secret = tmp_path / "secret.py"
    secret.write_text("\n\n\nnobody is to see this line\n" * 3)
    open_to_all(tmp_path)
    app = container.root_seen / "inner" / "app.py"
    links = (secret, pathlib.Path("../" * 20 + str(secret)[1:]), f"/proc/self/root{secret}", f"/proc/1/root{secret}", f"/proc/{os.getpid()}/root{secret}")
    for link in links:
        app.unlink()
        app.symlink_to(link)
        done = container.outside("dump", "-p", container.pid)
        assert done.returncode == 0 and "inside (/inner/app.py" in done.stdout, done.stderr
        assert "nobody is to see" not in done.stdout, link
    # And one that stays within is followed.
    app.unlink()
    app.symlink_to("/inner/../../../../inner/real.py")
    (container.root_seen / "inner" / "real.py").write_text(APP)
    wait_until(lambda: "while time.monotonic() < end" in container.outside("dump", "-p", container.pid).stdout, "a line of source")


def test_a_pipe_or_a_device_in_place_of_its_source_is_not_opened(container):
    app = container.root_seen / "inner" / "app.py"
    app.unlink()
    os.mkfifo(app)
    done = container.outside("dump", "-p", container.pid)
    assert done.returncode == 0 and "inside (/inner/app.py" in done.stdout, done.stderr


def test_files_that_were_deleted(start, tmp_path):
    """Of the interpreter, what is mapped is read all the same."""
    copied = tmp_path / "python"
    shutil.copy(os.path.realpath("/usr/bin/python3"), copied)
    target = start([copied, "-c", BUSY], env={**os.environ, "PYTHONHOME": "/usr"})
    assert target.stdout.readline() == "ready\n"
    copied.unlink()
    done = phlox("record", "--native", "-p", target.pid, "-d", "0.5", "-o", "-")
    assert done.returncode == 0, done.stderr
    assert re.search(r"work \(<string>\);hot \(<string>\)", done.stdout)


# --- as the container counts ------------------------------------------------------------------------------------------
def test_a_pid_as_a_process_of_the_container_counts(container):
    for command in (("record", "-d", "0.5", "-o", "-"), ("dump",), ("doctor",), ("top", "-n", "1")):
        done = container.outside(*command, "--in", container.pid, "-p", container.inner_pid)
        assert done.returncode == 0, done.stderr
        assert re.search(r"inside +\(?(/inner/)?app\.py", done.stdout) or f"record -p {container.pid} would use" in done.stdout
    nobody = container.outside("dump", "--in", container.pid, "-p", 4711)
    assert nobody.returncode == NO_PROCESS and "has no process 4711" in nobody.stderr and f"its processes are {container.inner_pid}" in nobody.stderr


def test_a_container_is_found_by_its_id_and_the_recording_says_where_it_was(start, tmp_path):
    with control_group("memory", f"phlox-test-{os.getpid()}/docker-{ID}.scope") as group:
        container = Container(start, tmp_path, "pivot_root", groups=[group])
        recording = tmp_path / "a.phlox"
        for name in (ID, ID[:12]):
            done = container.outside("record", "--in", name, "-p", container.inner_pid, "-d", "0.5", "-o", recording, "--force")
            assert done.returncode == 0, done.stderr
        facts = meta(recording)
        assert facts[f"container.{container.pid}"] == ID
        assert facts[f"control_group.{container.pid}"].endswith(f"/docker-{ID}.scope")
        with contextlib.closing(sqlite3.connect(recording)) as db:
            assert db.execute("SELECT pid, namespace_pid FROM process").fetchall() == [(container.pid, container.inner_pid)]
        words = f"In container {ID[:12]}, where {container.pid} is process {container.inner_pid}\n"
        assert words in phlox("report", recording).stdout and words in phlox("report", "--markdown", recording).stdout
        report = json.loads(phlox("report", "--json", recording).stdout)
        assert report["containers"] == words.strip()
        (row,) = report["processes"]
        assert (row["pid"], row["namespace_pid"], row["container"]) == (container.pid, container.inner_pid, ID)
        assert row["control_group"] == facts[f"control_group.{container.pid}"]
        container.process.kill()
        container.process.wait()


@pytest.mark.parametrize("words, status, said", [
    (("dump", "--in", "0123456789ab", "-p", "1"), NO_PROCESS, "no process is in a container 0123456789ab"),
    (("record", "--in", "0123456789ab"), USAGE, "needs -p"),
    (("record", "--in", "0123456789ab", "--", "python3"), USAGE, "needs -p"),
    (("dump", "--in", "self", "-p", "0"), USAGE, "not the id of a process"),
])
def test_a_container_that_is_wrong_is_named(words, status, said, workdir):
    done = phlox(*words)
    assert said in done.stderr and "hint: " in done.stderr, done.stderr
    assert done.returncode != 0 and (status == USAGE or done.returncode == status)


# --- what an engine takes away ----------------------------------------------------------------------------------------
# Docker's default profile refuses these to a container without the capabilities for them; ptrace and process_vm_readv it allows since
# Linux 4.8 (moby: profiles/seccomp/default.json).
DOCKER = "perf_event_open,bpf"
# What docker run leaves a container's root with (moby: oci/caps/defaults.go); setpriv takes all others away.
DEFAULT_CAPABILITIES = ("chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service,net_raw,sys_chroot,mknod,audit_write,setfcap")


def docker_default(*more, refused=DOCKER):
    kept = ",".join(["-all"] + ["+" + name for name in [*DEFAULT_CAPABILITIES.split(","), *more]])
    return ["setpriv", f"--bounding-set={kept}", f"--inh-caps={kept}", "/usr/bin/python3", "-c", REFUSE, refused]


@only_root
@where_calls_can_be_refused
def test_within_dockers_default_profile(container):
    """The same user's process, with what docker run leaves: proved, without real time and without perf events. The program has all
    of root's capabilities here; it gives up as much as phlox lacks, as its own container would have made it."""
    pid = container.pid
    lacks = container.inside("record", "-p", container.inner_pid, "-d", "0.5", "-o", "-", before=docker_default())
    assert lacks.returncode == PERMISSION and "capabilities that phlox lacks" in lacks.stderr, lacks.stderr
    assert "SYS_PTRACE" in lacks.stderr
    done = container.inside("record", "--native", "-p", container.inner_pid, "-d", "1", "-o", "-", before=docker_default("sys_ptrace"))
    assert done.returncode == 0, done.stderr
    assert "inside (/inner/app.py)" in done.stdout
    assert "ptrace stop of running threads, with native frames" in done.stderr
    said = container.inside("doctor", "-p", container.inner_pid, before=docker_default("sys_ptrace"))
    assert said.returncode == 0
    assert "a seccomp filter around phlox forbids it (perf_event_open" in said.stdout, said.stdout
    assert re.search(r"^partly +real time +no CAP_SYS_NICE", said.stdout, re.M), said.stdout
    assert os.path.exists(f"/proc/{pid}")


@only_root
@where_calls_can_be_refused
def test_both_in_one_container_by_dockers_defaults(start, tmp_path):
    """docker exec, or an entry point that starts both: nothing is asked for. The way is proved, in the ordinary class."""
    container = Container(start, tmp_path, "pivot_root", program=[*docker_default(), "/usr/bin/python3", "/inner/app.py"])
    done = container.inside("record", "-p", container.inner_pid, "-d", "0.5", "-o", "-", before=docker_default())
    assert done.returncode == 0, done.stderr
    assert FOUND.search(done.stdout)
    assert "same CPU (ordinary class" in done.stderr and "unproved" not in done.stderr
    # An old kernel's profile, or an engine of one's own: reading is refused, and what helps is said.
    refused = container.inside("record", "-p", container.inner_pid, "-d", "0.5", "-o", "-",
                               before=docker_default(refused=DOCKER + ",process_vm_readv,ptrace"))
    assert refused.returncode == 0 or "seccomp" in refused.stderr, refused.stderr


# One thread holds the GIL, another computes without it.
BESIDE = """
import hashlib, os, threading
def beside():
    data = bytes(1 << 20)
    while True: hashlib.sha256(data)
threading.Thread(target=beside, daemon=True).start()
print("ready", os.getpid(), flush=True)
while True: sum(range(200))
"""


@only_root
@pytest.mark.parametrize("mode, program", [([], ["/inner/app.py"]), (["--mode", "hands-off"], ["/inner/app.py"]), ([], ["-c", BESIDE])],
                         ids=["on_its_cpu", "from_elsewhere", "beside_the_holder"])
def test_a_quota_shows_as_waiting_for_a_cpu(start, tmp_path, mode, program):
    """Held back by its control group for four fifths of its time, a program that only computes is found runnable, not running."""
    with control_group("cpu", f"phlox-test-{os.getpid()}") as group:
        limit_cpu(group, 0.2)
        container = Container(start, tmp_path, "pivot_root", ("/usr/bin/python3", *program), groups=[group])
        recording = tmp_path / "a.phlox"
        done = container.outside("record", "-p", container.pid, *mode, "-d", "2", "-r", "200", "--max-overhead", "off", "-o", recording)
        assert done.returncode == 0, done.stderr
        with contextlib.closing(sqlite3.connect(recording)) as db:
            threads = db.execute("SELECT sum(wall_ms), sum(iif(cpu = 'runnable', wall_ms, 0)), sum(cpu_ms) FROM span WHERE gil IS NOT 'waits' GROUP BY thread").fetchall()
        assert len(threads) == (2 if "-c" in program else 1)
        assert sum(used for *_, used in threads) < 0.35 * max(wall for wall, *_ in threads), threads
        for wall, runnable, _ in threads:
            assert runnable > 0.5 * wall, threads
        assert "waited for a CPU" in done.stderr and "quota" in done.stderr
        said = container.outside("doctor", "-p", container.pid)
        assert re.search(r"the process: at most 0\.2 CPUs, throttled in \d+ of \d+ periods", said.stdout), said.stdout
        container.process.kill()
        container.process.wait()


@only_root
def test_a_cpuset_that_keeps_phlox_off_its_cpu(start, tmp_path):
    """A sidecar of a container with its own CPUs: threads are stopped for microseconds there, and that is reported."""
    first, second = (sorted(os.sched_getaffinity(0)) * 2)[:2]
    if first == second:
        pytest.skip("one CPU")
    memory = pathlib.Path("/sys/fs/cgroup/cpuset/cpuset.mems")
    with control_group("cpuset", f"phlox-test-its-{os.getpid()}") as its, control_group("cpuset", f"phlox-test-ours-{os.getpid()}") as ours:
        for group, cpu in ((its, second), (ours, first)):
            (group / "cpuset.cpus").write_text(str(cpu))
            if memory.exists():
                (group / "cpuset.mems").write_text(memory.read_text())
        container = Container(start, tmp_path, "pivot_root", groups=[its])
        before = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', ours]
        for options, mode in (([], MODE if MODE.startswith("in the kernel") else "ptrace stop"), (["--mode", "no-kernel"], "ptrace stop")):
            done = container.outside("record", *options, "-p", container.pid, "-d", "0.6", "-o", "-", before=before)
            assert done.returncode == 0, done.stderr
            assert FOUND.search(done.stdout) and mode in done.stderr
        said = container.outside("doctor", "-p", container.pid, before=[*before, "/usr/bin/python3", "-c", REFUSE, "bpf"])
        assert f"its cpuset leaves phlox {first}" in said.stdout and "ptrace stop" in said.stdout.splitlines()[-1], said.stdout
        container.process.kill()
        container.process.wait()


# --- an ordinary user -------------------------------------------------------------------------------------------------
@only_root
def test_an_ordinary_user_records_what_it_starts(tmp_path):
    shutil.copy(PHLOX, tmp_path / "phlox")
    (tmp_path / "own").mkdir()
    open_to_all(tmp_path)
    os.chown(tmp_path / "own", NOBODY, NOBODY)
    done = subprocess.run([*as_user(NOBODY), "prlimit", "--rtprio=0", tmp_path / "phlox", "record", "-o", "a.phlox", "--", "/usr/bin/python3", "-c", BUSY, "1"],
                          capture_output=True, text=True, timeout=60, cwd=tmp_path / "own")
    assert done.returncode == 0, done.stderr
    assert "same CPU (ordinary class" in done.stderr
    assert (tmp_path / "own" / "a.phlox").stat().st_uid == NOBODY


@only_root
@where_calls_can_be_refused
def test_a_service_that_its_unit_starts_under_phlox(tmp_path, start):
    """User=, NoNewPrivileges=, SystemCallFilter=@system-service; then systemctl stop."""
    shutil.copy(PHLOX, tmp_path / "phlox")
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "state").mkdir()
    open_to_all(tmp_path)
    os.chown(tmp_path / "state", NOBODY, NOBODY)
    service = start([*as_user(NOBODY), "--no-new-privs", "prlimit", "--rtprio=0", "/usr/bin/python3", "-c", REFUSE, "ptrace,perf_event_open",
                     tmp_path / "phlox", "record", "--", "/usr/bin/python3", tmp_path / "app.py"], cwd=tmp_path / "state", stderr=subprocess.PIPE)
    assert service.stdout.readline().startswith("ready")
    recorded = lambda: list((tmp_path / "state").glob("app-*.phlox"))  # noqa: E731
    wait_until(lambda: recorded() and samples(recorded()[0]) > 20, "some looks")
    service.terminate()
    _, said = service.communicate(timeout=60)
    assert service.returncode == 128 + 15, said
    assert "same CPU (ordinary class" in said and "the recording is complete" in said and "unproved" not in said
    assert "end_monotonic_ns" in meta(recorded()[0])


def samples(path):
    try:
        with contextlib.closing(sqlite3.connect(path)) as db:
            return db.execute("SELECT sum(samples) FROM sample").fetchone()[0] or 0
    except sqlite3.Error:
        return 0


@only_root
def test_an_ordinary_user_and_a_container_of_root(container):
    """What is refused is said by name, and by doctor alike."""
    user = as_user(NOBODY)
    done = container.outside("record", "-p", container.pid, "-o", "/tmp/phlox-test-never.phlox", before=user)
    assert done.returncode == PERMISSION, done.stderr
    assert "it runs as user 0 (root), phlox as user 65534" in done.stderr and f"sudo phlox record -p {container.pid}" in done.stderr
    said = container.outside("doctor", "-p", container.pid, before=user)
    assert said.returncode == PERMISSION and f"would fail with status {PERMISSION}" in said.stdout.splitlines()[-1]
