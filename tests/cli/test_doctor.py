"""phlox doctor: the rights that it reports are those that recording has, for every user and place."""
import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from cli_support import BUSY, PHLOX, PYTHON, REFUSE, ROOT, phlox, still_runs, wait_until, where_calls_can_be_refused
from test_dump import check_schema

pytestmark = pytest.mark.live

NO_PROCESS, NOT_PYTHON, PERMISSION, STATE = 111, 112, 114, 116
AS_ROOT = os.geteuid() == 0
NOBODY = 65534
only_root = pytest.mark.skipif(not AS_ROOT, reason="gives up rights that only root has")


class Said:
    """What doctor printed, by row; the last line; its status."""

    def __init__(self, done):
        self.status, self.text = done.returncode, done.stdout
        assert done.stderr == "", done.stderr
        lines = done.stdout.splitlines()
        self.last = lines[-1]
        self.rows, name = {}, None
        for line in lines[:-1]:
            if row := re.match(r"(yes|partly|no|      ) +(\S.*?)  +(\S.*)$", line):
                if row.group(2).startswith("hint: "):
                    self.rows[name][2].append(line.strip()[len("hint: "):])
                    continue
                name = row.group(2)
                self.rows[name] = (row.group(1).strip(), row.group(3), [])
            elif line.strip().startswith("hint: "):
                self.rows[name][2].append(line.strip()[len("hint: "):])

    def grade(self, name):
        return self.rows[name][0]

    def found(self, name):
        return self.rows[name][1]

    def hints(self, name):
        return " | ".join(self.rows[name][2])


def doctor(*arguments, before=(), **options):
    return Said(subprocess.run([*before, PHLOX, "doctor", *map(str, arguments)], capture_output=True, text=True, timeout=60, **options))


def without(*calls):
    return ["/usr/bin/python3", "-c", REFUSE, ",".join(calls)]


def mode_recorded(busy, before=()):
    """As the recording itself names it."""
    done = subprocess.run([*before, PHLOX, "record", "-p", str(busy.pid), "-d", "0.8", "-o", "a.phlox"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return re.search(r"read: (.+?); took", done.stderr).group(1)


def last_line(said):
    return re.search(r"would use: (.+?)\. That is", said.last).group(1)


def plain(mode):
    """Whether a perf event woke it depends on where the program ran."""
    return mode.replace(", woken by a perf event", "")


def is_in_the_kernel(said):
    return said.grade("BPF") == "yes"


def test_the_last_line_is_what_a_recording_does(busy, workdir):
    said = doctor("-p", busy.pid)
    assert said.status == 0
    assert said.last.startswith(f"phlox record -p {busy.pid} would use: ")
    assert plain(last_line(said)) == plain(mode_recorded(busy))
    assert int(re.search(r"\((\d+) samples were tried", said.last).group(1)) > 10
    assert said.grade("memory") == said.grade("Python") == "yes"
    assert re.search(r"CPython 3\.\d+\.\d+", said.found("Python"))
    assert still_runs(busy)
    assert os.listdir() == ["a.phlox"]


def test_of_the_host_alone(workdir):
    said = doctor()
    assert said.status == 0
    assert said.last.startswith("phlox record -p PID would use: ")
    assert "that phlox did not start" in said.found("memory")
    assert "Python" not in said.rows
    assert os.listdir() == []


def test_no_process_that_it_started_is_left(workdir):
    children = pathlib.Path(f"/proc/self/task/{os.getpid()}/children")
    before = children.read_text()
    names = lambda: [p for p in os.listdir("/proc") if p.isdigit() and name_of(p) == "phlox" and parent_of(p) == 1]
    left = set(names())
    doctor()
    wait_until(lambda: set(names()) <= left, "the end of what it tried with")
    assert children.read_text() == before


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def parent_of(pid):
    try:
        return int(re.search(r"^PPid:\t(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M).group(1))
    except (OSError, AttributeError):
        return 0


@pytest.mark.parametrize("pid", [False, True], ids=["host", "process"])
def test_json_is_what_the_schema_says(busy, workdir, pid):
    done = phlox("doctor", "--json", *(["-p", busy.pid] if pid else []))
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    check_schema(found, json.loads((ROOT / "docs/json/doctor.schema.json").read_text()))
    assert found["record"]["status"] == 0 and found["record"]["forecast"] != "none"
    assert ("pid" in found) == pid and (found["record"].get("samples", 0) > 10) == pid
    text = doctor(*(["-p", busy.pid] if pid else []))
    assert [check["name"] for check in found["checks"]] == list(text.rows)


def test_the_error_that_record_would_give_is_printed_and_is_the_status(start, workdir):
    sleeper = start(["sleep", "60"])
    wait_until(lambda: "sleep" in os.readlink(f"/proc/{sleeper.pid}/exe"), "exec")
    for pid, status in [(sleeper.pid, NOT_PYTHON), (2**22 + 1, NO_PROCESS)]:
        said = doctor("-p", pid)
        recorded = phlox("record", "-p", pid)
        assert said.status == recorded.returncode == status
        message, hint = recorded.stderr.strip().splitlines()
        assert said.last == f"phlox record -p {pid} would fail with status {status}: {message.removeprefix('phlox: ')}"
        assert hint in said.text
        found = json.loads(phlox("doctor", "--json", "-p", pid).stdout)
        check_schema(found, json.loads((ROOT / "docs/json/doctor.schema.json").read_text()))
        assert found["record"]["status"] == status


def test_a_zombie(workdir):
    child = os.fork()
    if child == 0:
        os._exit(0)
    try:
        wait_until(lambda: "State:\tZ" in pathlib.Path(f"/proc/{child}/status").read_text(), "a zombie")
        said = doctor("-p", child)
        assert said.status == STATE and "zombie" in said.last
    finally:
        os.waitpid(child, 0)


# --- users ------------------------------------------------------------------------------------------------------------
@pytest.fixture
def public(tmp_path_factory):
    """A phlox that anybody may run."""
    folder = tmp_path_factory.mktemp("public")
    for parent in [folder, *folder.parents]:
        if parent.stat().st_uid == os.getuid() and str(parent) not in ("/", "/tmp"):
            parent.chmod(0o755)
    shutil.copy(PHLOX, folder / "phlox")
    return folder / "phlox"


def as_nobody(program, *arguments):
    return Said(subprocess.run([program, "doctor", *map(str, arguments)], capture_output=True, text=True, timeout=60, user=NOBODY, group=NOBODY,
                               extra_groups=[], cwd="/"))


@only_root
def test_another_users_process(busy, public):
    said = as_nobody(public, "-p", busy.pid)
    assert said.status == PERMISSION and said.grade("memory") == "no"
    assert "it runs as user 0 (root), phlox as user 65534" in said.found("memory")
    assert f"sudo phlox record -p {busy.pid}" in said.hints("memory")
    assert said.last.startswith(f"phlox record -p {busy.pid} would fail with status {PERMISSION}: cannot read memory")
    assert "phlox may not read its memory" in said.found("Python")
    # What would be tried with its threads is not: it would be refused for the same reason.
    assert "perf events" not in said.rows


@only_root
def test_an_ordinary_users_own_process(start, public, workdir):
    own = start(["/usr/bin/python3", "-c", BUSY], user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")
    assert own.stdout.readline() == "ready\n"
    said = as_nobody(public, "-p", own.pid)
    assert said.status == 0 and said.grade("memory") == said.grade("Python") == "yes"
    assert said.grade("real time") == "partly" and "RLIMIT_RTPRIO is 0" in said.found("real time")
    assert "ordinary class" in last_line(said)
    # Events are there, and of no use without the real-time class.
    assert "ptrace stop" in said.found("--native")
    done = subprocess.run([public, "record", "-p", str(own.pid), "-d", "0.8", "-o", "/tmp/phlox-test-doctor.phlox"], capture_output=True, text=True,
                          timeout=60, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")
    pathlib.Path("/tmp/phlox-test-doctor.phlox").unlink(missing_ok=True)
    assert done.returncode == 0, done.stderr
    assert last_line(said) == re.search(r"read: (.+?); took", done.stderr).group(1)


@only_root
def test_the_hint_on_real_time_helps(public):
    said = as_nobody(public)
    assert said.grade("real time") == "partly"
    if "in a container" not in said.found("namespaces"):
        assert "prlimit --rtprio=1" in said.hints("real time")
    with_limit = subprocess.run(["prlimit", "--rtprio=1", "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", public, "doctor"],
                                capture_output=True, text=True, timeout=60, cwd="/")
    if with_limit.stderr.startswith("prlimit:"):
        pytest.skip("root may not raise the limit here")
    said = Said(with_limit)
    assert said.grade("real time") == "yes" and "real time" in last_line(said)


@only_root
def test_root_without_the_capability(start, workdir):
    other = start(["/usr/bin/python3", "-c", BUSY], user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")
    assert other.stdout.readline() == "ready\n"
    said = doctor("-p", other.pid, before=["setpriv", "--bounding-set=-sys_ptrace"])
    assert said.status == PERMISSION
    assert "CAP_SYS_PTRACE" in said.found("memory") and "--cap-add SYS_PTRACE" in said.hints("memory")
    assert "lacks SYS_PTRACE" in said.found("capabilities")


@only_root
def test_no_events_of_the_kernel_without_the_capability(busy, workdir):
    paranoid = int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    said = doctor("-p", busy.pid, before=["setpriv", "--bounding-set=-perfmon,-sys_admin"])
    if paranoid <= 1:
        pytest.skip("everybody may see the kernel here")
    assert said.grade("kernel frames") == "partly" and "CAP_PERFMON" in said.found("kernel frames")
    assert "kernel's too" not in said.found("--native")
    assert "the kernel's too" in doctor("-p", busy.pid).found("--native")


def test_a_traced_process(busy, workdir):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    seize, interrupt, detach, wait_all = 0x4206, 0x4207, 17, 0x40000000
    assert libc.ptrace(seize, busy.pid, None, None) == 0, os.strerror(ctypes.get_errno())
    try:
        said = doctor("-p", busy.pid)
        assert said.status == 0
        assert said.grade("stops") == "partly" and f"process {os.getpid()}" in said.found("stops")
        assert said.grade("process") == "partly"
    finally:
        libc.ptrace(interrupt, busy.pid, None, None)
        os.waitpid(busy.pid, wait_all)
        libc.ptrace(detach, busy.pid, None, None)


# --- filters ----------------------------------------------------------------------------------------------------------
def filtered(busy, *calls):
    done = subprocess.run([*without(*calls), PHLOX, "doctor", "-p", str(busy.pid)], capture_output=True, text=True, timeout=60)
    if done.stderr.startswith("no seccomp"):
        pytest.skip(done.stderr)
    return Said(done)


@where_calls_can_be_refused
def test_a_filter_that_refuses_perf_events(busy, workdir):
    said = filtered(busy, "perf_event_open")
    assert said.status == 0
    assert said.grade("perf events") == "partly"
    assert "seccomp" in said.found("perf events") and "perf_event_open" in said.found("perf events")
    assert "seccomp" in said.hints("perf events") or "sandbox" in said.hints("perf events")
    assert "only perf events tell them" in said.found("kernel frames")
    assert "ptrace stop" in said.found("--native")
    assert "a filter applies to phlox" in said.found("seccomp")
    assert plain(last_line(said)) == plain(mode_recorded(busy, without("perf_event_open")))


@where_calls_can_be_refused
def test_cpus_that_phlox_may_not_enter(busy, workdir):
    said = filtered(busy, "sched_setaffinity")
    assert said.status == 0 and said.grade("CPUs") == "partly"
    assert last_line(said) == mode_recorded(busy, without("sched_setaffinity"))
    assert is_in_the_kernel(said) == ("That is good" in said.last)
    said = filtered(busy, "sched_setaffinity", "bpf")
    assert said.status == 0 and said.grade("CPUs") == "partly"
    assert "stopped for microseconds" in said.found("CPUs")
    assert last_line(said) == mode_recorded(busy, without("sched_setaffinity", "bpf"))
    assert "That is fair" in said.last
    # And no thread was stopped to find that out.
    assert "samples were tried" not in said.last


@where_calls_can_be_refused
def test_where_nothing_proves_a_stack(busy, workdir):
    said = filtered(busy, "sched_setaffinity", "ptrace", "bpf")
    assert said.status == 0 and said.grade("stops") == "partly"
    assert last_line(said) == mode_recorded(busy, without("sched_setaffinity", "ptrace", "bpf"))
    assert "That is poor: nothing proves" in said.last


@where_calls_can_be_refused
def test_no_real_time(busy, workdir):
    said = filtered(busy, "sched_setscheduler", "bpf")
    assert said.grade("real time") == "partly" and "ordinary class" in last_line(said)
    if AS_ROOT:
        assert "sched_setscheduler, errno 1" in said.found("real time") or "cpu.rt_runtime_us" in said.found("real time")


@where_calls_can_be_refused
def test_memory_by_its_file(busy, workdir):
    said = filtered(busy, "process_vm_readv")
    assert said.status == 0 and said.grade("memory") == "partly"
    assert "errno 38" in said.found("memory") and "/proc/PID/mem" in said.found("memory")


@where_calls_can_be_refused
def test_bpf_is_tried(busy, workdir):
    assert "refused (errno 1" in filtered(busy, "bpf").found("BPF")


# --- namespaces and control groups ------------------------------------------------------------------------------------
def test_in_a_user_namespace_of_its_own(workdir):
    flags = ["unshare", "--user", "--map-root-user"]
    if subprocess.run([*flags, "true"], capture_output=True).returncode != 0:
        pytest.skip("may not make a user namespace")
    said = doctor(before=flags)
    assert "a user namespace of its own" in said.found("namespaces")
    assert "they count only for processes in it" in said.found("capabilities")
    assert said.grade("real time") == "partly" and "does not count in this user namespace" in said.found("real time")


def test_a_process_in_namespaces_of_its_own(start, workdir):
    flags = ["unshare", *([] if AS_ROOT else ["--user", "--map-root-user"]), "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run([*flags, "true"], capture_output=True).returncode != 0:
        pytest.skip("may not make namespaces")
    outer = start([*flags, PYTHON, "-c", BUSY])
    assert outer.stdout.readline() == "ready\n"
    (pid,) = map(int, pathlib.Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split())
    said = doctor("-p", pid)
    assert said.status == 0
    assert "namespaces of its own: PID, mount" in said.found("namespaces") and "its number there is 1" in said.found("namespaces")
    assert said.grade("files") == "yes"


def test_a_cpuset_without_the_programs_cpus(start, workdir):
    """Real ones, of control groups version 1 or 2."""
    if not AS_ROOT or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs root and two CPUs")
    group = next((pathlib.Path(root) for root in ("/sys/fs/cgroup/cpuset", "/sys/fs/cgroup") if pathlib.Path(root, "cpuset.cpus").exists()), None)
    if group is None:
        pytest.skip("no cpuset here")
    first, second = sorted(os.sched_getaffinity(0))[:2]
    inner = group / f"phlox-test-{os.getpid()}"
    inner.mkdir()
    try:
        (inner / "cpuset.cpus").write_text(str(first))
        if (group / "cpuset.mems").exists():
            (inner / "cpuset.mems").write_text((group / "cpuset.mems").read_text())
        target = start([PYTHON, "-c", f"import os\nos.sched_setaffinity(0, {{{second}}})\n" + BUSY])
        assert target.stdout.readline() == "ready\n"
        before = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', inner]
        said = doctor("-p", target.pid, before=before)
        assert said.grade("CPUs") == "partly" and f"may not use {second} of its CPUs {second}" in said.found("CPUs")
        assert f"its cpuset leaves phlox {first}" in said.hints("CPUs")
        assert last_line(said) == mode_recorded(target, before)
    except OSError as error:
        pytest.skip(f"may not make a control group: {error}")
    finally:
        wait_until(lambda: gone(inner), "an empty control group")


def gone(folder):
    try:
        folder.rmdir()
    except OSError:
        return False
    return True


def test_a_quota(busy, workdir):
    """It slows phlox down, and is reported with its numbers."""
    roots = [root for root in ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct") if pathlib.Path(root, "cpu.cfs_quota_us").exists()]
    if not AS_ROOT or not roots:
        pytest.skip("needs root and control groups version 1")
    inner = pathlib.Path(roots[0]) / f"phlox-test-{os.getpid()}"
    inner.mkdir()
    try:
        (inner / "cpu.cfs_quota_us").write_text("50000")
        before = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', inner]
        said = doctor("-p", busy.pid, before=before)
        assert said.grade("control groups") == "partly" and "at most 0.5 CPUs" in said.found("control groups")
        if "cpu.rt_runtime_us" in said.found("real time"):
            assert (inner / "cpu.rt_runtime_us").read_text().strip() == "0"
    finally:
        wait_until(lambda: gone(inner), "an empty control group")


# --- Yama -------------------------------------------------------------------------------------------------------------
YAMA = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")


@pytest.mark.skipif(not YAMA.exists() or AS_ROOT, reason="needs Yama, and an ordinary user")
def test_yama_is_named_where_it_refuses(busy):
    scope = int(YAMA.read_text())
    said = doctor()
    assert f"kernel.yama.ptrace_scope is {scope}" in said.found("Yama")
    assert (said.status == PERMISSION) == (scope > 0)
    if scope > 0:
        assert "kernel.yama.ptrace_scope" in said.found("memory")


def test_debug_information_that_lies_elsewhere_is_found(start, workdir):
    """--debug-path as record takes it."""
    if not shutil.which("cc") or not shutil.which("objcopy"):
        pytest.skip("needs a compiler")
    (workdir / "own.c").write_text("int own(int a) { return a + 1; }\n")
    subprocess.run(["cc", "-g", "-shared", "-fPIC", "-Wl,--build-id=sha1", "-o", "libown.so", "own.c"], check=True)
    notes = subprocess.run(["readelf", "-n", "libown.so"], capture_output=True, text=True, check=True).stdout
    build_id = re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)
    folder = workdir / "debug" / ".build-id" / build_id[:2]
    folder.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", "libown.so", folder / f"{build_id[2:]}.debug"], check=True)
    subprocess.run(["strip", "libown.so"], check=True)
    target = start([PYTHON, "-c", f"import ctypes\nctypes.CDLL('{workdir}/libown.so')\n" + BUSY])
    assert target.stdout.readline() == "ready\n"
    lacking = lambda *more: [row["module"] for row in json.loads(phlox("doctor", "--json", "-p", target.pid, *more).stdout)["missing_names"]]
    assert f"{workdir}/libown.so" in lacking()
    assert f"{workdir}/libown.so" not in lacking("--debug-path", workdir / "debug")
