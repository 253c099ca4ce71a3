#!/usr/bin/env python3
"""run_tests.py [--check | --sanitized | --all] [--only ROOM[,ROOM...]] BUILD_DIR   Runs the tests of a built tree; the last line is the total.

GoogleTest: one process per directory, several (shards) for the slowest. pytest: as many workers as CPUs, then the tests
marked `alone`, one by one.

--check      pure tests, and the command line's smoke tests on one interpreter: needs only packages
--sanitized  few interpreters, of pytest only what runs the program; a sanitizer's finding in any process is a failure
--all        pytest on every interpreter, and every live test on every version; default: on those whose data structures differ
--only       the GoogleTest binary ROOM_tests and the folder tests/ROOM

If a test of a running program (pytest's mark `live`, GoogleTest's property `live`) fails, it is retried once, since the
machine may be busy. No other test is retried. Each retry is named, and the last line counts them. A retry waits, up to three
minutes, until the host of a virtual machine takes little CPU time. A test that fails on retry while the host takes more
(stolen_time.py) was not judged: it is named, and counted as skipped.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import stolen_time
import test_totals

TREE = pathlib.Path(os.path.abspath(__file__)).parent.parent  # as called, without resolving links
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "phlox"
SYSTEM = "/usr/bin/python3"
CPUS = len(os.sched_getaffinity(0))
# Time limits in seconds for a GoogleTest process; one that takes longer hangs.
LIMIT, LIMIT_SANITIZED = 900, 3600
# Without shards these would end last, each alone on its CPU.
SHARDS = {"python": 2, "unwind": 2, "sampler": 2}


def say(*words):
    print("run_tests:", *words, flush=True)


# --- GoogleTest -------------------------------------------------------------------------------------------------------
def run_binary(binary, report, limit, **variables):
    """Runs it until it exits; its output is stored next to the report. -> its exit status"""
    report.unlink(missing_ok=True)
    with open(report.with_suffix(".log"), "w") as log:
        process = subprocess.Popen([binary, f"--gtest_output=xml:{report}", *variables.pop("options", [])], stdout=log, stderr=log,
                                   stdin=subprocess.DEVNULL, env={**os.environ, **variables}, start_new_session=True)
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            log.write(f"\nrun_tests: still not over after {limit} s\n")
            return -signal.SIGKILL


def failed_cases(report):
    try:
        return [case for case in ElementTree.parse(report).iter("testcase") if test_totals.outcome(case) == "failed"]
    except (OSError, ElementTree.ParseError):
        return []


def is_live(case):
    """GoogleTest up to 1.10 writes the property as an attribute, later versions as a <property>."""
    return case.get("live") is not None or any(p.get("name") == "live" for p in case.iter("property"))


def run_shard(binary, shard, shards, limit):
    """-> (report, report of the retries or None)"""
    report = binary.with_name(f"{binary.name}.{shard}.xml")
    status = run_binary(binary, report, limit, GTEST_TOTAL_SHARDS=str(shards), GTEST_SHARD_INDEX=str(shard))
    failed = failed_cases(report)
    if status == 0:
        return report, None
    if failed:
        for case in failed:
            print(f"--- {binary.name}: {case.get('classname')}.{case.get('name')}")
            print(*(failure.get("message") for failure in case.iter("failure")), sep="\n", flush=True)
    else:
        # It exited before it could report: the last test named in its log was running.
        report.unlink(missing_ok=True)
        print(f"--- {binary.name}: exit status {status}", *report.with_suffix(".log").read_text(errors="replace").splitlines()[-60:],
              sep="\n", flush=True)
    names = [f"{case.get('classname')}.{case.get('name')}" for case in failed if is_live(case)]
    if not names:
        return report, None
    say(f"{binary.name}: once more, those that look at running programs: {len(names)}")
    again = binary.with_name(f"{binary.name}.{shard}.again.xml")
    stolen_time.wait_until_little_is(180, say)
    run_binary(binary, again, limit, options=["--gtest_filter=" + ":".join(names)])
    return report, again


def run_rooms(binaries, limit):
    jobs = [(binary, shard, SHARDS.get(room, 1)) for room, binary in binaries.items() for shard in range(SHARDS.get(room, 1))]
    jobs.sort(key=lambda job: -job[2])
    with concurrent.futures.ThreadPoolExecutor(CPUS) as pool:
        done = list(pool.map(lambda job: run_shard(*job, limit), jobs))
    return [report for report, _ in done], [again for _, again in done if again]


# --- pytest -----------------------------------------------------------------------------------------------------------
def pytest(python, report, *arguments):
    """-> whether the run was not interrupted: all passed, some failed, or none selected"""
    report.unlink(missing_ok=True)
    status = subprocess.run([python, "-m", "pytest", "-q", f"--junit-xml={report}", *map(str, arguments)], cwd=TREE).returncode
    if status == 5:  # no tests selected: no report
        report.unlink(missing_ok=True)
    if status not in (0, 1, 5):
        say(f"pytest: exit status {status}")
    return status in (0, 1, 5)


def run_pytest(python, build, choice, folders, parallel):
    """-> (whether it was not interrupted, reports, reports of retries)"""
    together, alone, again = (build / name for name in ("pytest.xml", "pytest.alone.xml", "pytest.again.xml"))
    also = f" and {choice}" if choice else ""
    workers = ["-n", CPUS, "--dist", "worksteal"] if parallel else []
    good = pytest(python, together, "-rs", "--durations=25", "--cache-clear", "-m", f"not alone{also}", *workers, *folders)
    good = pytest(python, alone, "-rs", "-m", f"alone{also}", *folders) and good
    reports = [report for report in (together, alone) if report.exists()]
    if not any(failed_cases(report) for report in reports):
        return good, reports, []
    say("once more, those that failed and look at running programs")
    stolen_time.wait_until_little_is(180, say)
    os.environ["PHLOX_SECOND_TRY"] = "1"
    good = pytest(python, again, "--last-failed", "--last-failed-no-failures=none", "-m", "live", *folders) and good
    return good, reports, [again] if again.exists() else []


def bring_perf(build):
    """Ubuntu's `perf` is a script that wants the one made for the running kernel; any other works as well,
    and a container has no other."""
    try:
        if subprocess.run(["perf", "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            return
    except OSError:
        pass
    there = sorted(pathlib.Path("/usr/lib").glob("linux-tools-*/perf"))
    if there:
        folder = build / "path"
        folder.mkdir(exist_ok=True)
        (folder / "perf").unlink(missing_ok=True)
        (folder / "perf").symlink_to(there[-1])
        os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"


# --- all of it --------------------------------------------------------------------------------------------------------
def few_pythons(listed, build):
    """The interpreters whose data structures differ most."""
    seen, rows = set(), []
    for row in pathlib.Path(listed).read_text().splitlines():
        name, _, _, version, flags = row.split("\t")
        kind = (version[:4], flags)
        first = re.match(r"3\.(8|11|13)\.", version) and flags in "-t" and kind not in seen
        if first or re.match(r"system|trixie-3\.13|standalone-3\.14", name):
            rows.append(row)
        if first:
            seen.add(kind)
    path = build / "few.list"
    path.write_text("".join(row + "\n" for row in rows))
    return str(path)


def has_tail_calls(python):
    code = "import sysconfig; print('tail-call-interp' in (sysconfig.get_config_var('CONFIG_ARGS') or ''))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.strip() == "True"


def differing_pythons(listed, build):
    """The first listed interpreter of each version and kind: all of one row of the version table are read
    alike. The system's come first, since most users have those, then those with a C library or a link of
    their own (standalone), which differ most. Interpreters whose loop is made of tail calls are a kind of their own."""
    rows = [row for row in pathlib.Path(listed).read_text().splitlines() if row and not row.startswith("#")]
    rows.sort(key=lambda row: (row.split("\t")[0] != "system", not row.startswith("standalone-3.1") or row.startswith("standalone-3.14")))
    first = {}
    for row in rows:
        _, path, _, version, flags = row.split("\t")
        family = tuple(map(int, version.split(".")[:2]))
        first.setdefault((family, flags, family >= (3, 14) and has_tail_calls(path)), row)
    path = build / "differing.list"
    path.write_text("".join(row + "\n" for row in first.values()))
    return str(path)


def sanitizers_speak(findings):
    """Every user that runs the program may write there."""
    shutil.rmtree(findings, ignore_errors=True)
    findings.mkdir()
    findings.chmod(0o1777)
    os.environ["ASAN_OPTIONS"] = ("detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1:"
                                  f"handle_abort=1:log_path={findings}/asan")
    os.environ["UBSAN_OPTIONS"] = "print_stacktrace=1"
    os.environ["TSAN_OPTIONS"] = f"second_deadlock_stack=1:log_path={findings}/tsan"


def has_pytest(folder):
    return any(folder.rglob("test_*.py")) or any(folder.rglob("*_test.py"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--sanitized", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("build", type=pathlib.Path)
    a = parser.parse_args()
    build = a.build.resolve()
    only = re.findall(r"\w+", a.only)

    os.environ.update(PHLOX_BUILD_DIR=str(build), PHLOX_TREE=str(TREE))
    pythons = SYSTEM if a.check else os.environ.get("PHLOX_PYTHONS") or str(CACHE / "pythons" / "pythons.list")
    os.environ["PHLOX_PYTHONS"] = few_pythons(pythons, build) if a.sanitized else pythons
    python = SYSTEM if a.check else str(pathlib.Path(os.environ.get("PHLOX_VENV") or CACHE / "venv") / "bin" / "python")
    bring_perf(build)
    findings = build / "findings"
    sanitizers_speak(findings)

    binaries = {path.name.removesuffix("_tests"): path for path in sorted((build / "tests").glob("*_tests")) if os.access(path, os.X_OK)}
    folders = [TREE / "tests"]
    if a.sanitized:
        folders = [TREE / "tests" / "cli", TREE / "tests" / "live"]
    if only:
        binaries = {room: path for room, path in binaries.items() if room in only}
        folders = [folder for room in only if has_pytest(folder := TREE / "tests" / room)]
    if not binaries and not folders:
        sys.exit(f"run_tests: there are no tests of {a.only or 'any room'} in {build} and in tests/")

    reports, again = run_rooms(binaries, LIMIT_SANITIZED if a.sanitized else LIMIT)
    good = True
    if a.all:
        os.environ["PHLOX_EVERY_VERSION"] = "1"
    elif not a.sanitized and pythons.endswith(".list"):
        os.environ["PHLOX_PYTHONS"] = differing_pythons(pythons, build)
    if folders:
        good, of_pytest, of_pytest_again = run_pytest(python, build, "smoke" if a.check else "", folders, parallel=not a.check)
        reports += of_pytest or [build / "pytest.xml"]
        again += of_pytest_again
    for file in sorted(findings.iterdir()):
        good = False
        say(f"a sanitizer found something: {file}")
        print(*file.read_text(errors="replace").splitlines()[:40], sep="\n")
    sys.stdout.flush()
    status = test_totals.main(reports, again)
    sys.exit(status if good else 1)


if __name__ == "__main__":
    main()
