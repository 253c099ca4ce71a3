"""phlox import, and the commands that take what other tools recorded: real recordings of the real tools, where they are installed."""
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from cli_support import PHLOX, ordinary_pythons, phlox
from perf_judge import by_perf, by_phlox, differences

sys.path.insert(0, __file__.rpartition("/")[0])

PROGRAM = """
import json, re, threading, zlib
def parse(n):
    for i in range(n): json.loads('[1,2,{"a":3},"x"]')
def squash(n):
    for i in range(n): zlib.compress(b'abc' * 5000)
def deep(depth, call):
    return deep(depth - 1, call) if depth else call(3000)
def main():
    packer = threading.Thread(target=squash, args=(1500,)); packer.start()
    for _ in range(15): deep(5, parse)
    packer.join()
main()
"""


def recorded(folder, name, *options, python="/usr/bin/python3", arguments=("app.py",), output=None):
    (folder / "app.py").write_text(PROGRAM)
    done = subprocess.run(["perf", "record", "-F", "999", *options, "-o", output or name, "--", python, *arguments],
                          cwd=folder, capture_output=True, timeout=120)
    if done.returncode != 0 and re.search(rb"ermission|operations is limited", done.stderr):
        pytest.skip("perf may not record here")
    if done.returncode != 0 and b"unknown switch `z'" in done.stderr:
        pytest.skip("this perf was built without zstd, as Ubuntu's is")
    assert done.returncode == 0, done.stderr
    if output == "-":
        (folder / name).write_bytes(done.stdout)
    return folder / name


needs_perf = pytest.mark.skipif(shutil.which("perf") is None, reason="perf records what is imported here")


def imported(path):
    done = phlox("import", path, "-o", f"{path}.phlox")
    assert done.returncode == 0, done.stderr
    return done.stderr


@needs_perf
@pytest.mark.live
@pytest.mark.parametrize("options", [
    ("--call-graph", "dwarf"),
    ("--call-graph", "dwarf", "--sample-cpu"),
    ("--call-graph", "fp"),
    ("-z", "--call-graph", "dwarf"),
], ids=" ".join)
def test_shares_are_those_of_perf_script(tmp_path, options):
    path = recorded(tmp_path, "perf.data", *options)
    imported(path)
    perf, ours = by_perf(path), by_phlox(f"{path}.phlox")
    assert ours.samples == perf.samples > 60
    assert ours.total == perf.total
    # One stack is more than half a point where the host left us a hundred samples; and what we unwind to its start, and perf does not,
    # has more beneath its callers.
    one, completer = 150 / perf.samples, 100 * max(0, ours.whole - perf.whole) / perf.samples
    wrong = [row for row in differences(perf, ours)
             if abs(row[0] - row[1]) > max(0.5, one) and not (row[2] == "under" and 0 < row[1] - row[0] <= max(0.5, one) + completer)]
    # perf makes names for the entries of a procedure linkage table, which no symbol has.
    wrong = [row for row in wrong if not row[3].endswith("@plt") and row[3] != "[unknown]"]
    assert wrong == []
    assert ours.whole >= perf.whole


@needs_perf
@pytest.mark.live
@pytest.mark.parametrize("packed", [(), ("-z",)], ids=["plain", "-z"])
def test_functions_of_the_vdso_have_their_names(tmp_path, packed):
    loop = ("-c", "import time\nend = time.time() + 1\nwhile time.time() < end: pass")
    path = recorded(tmp_path, "perf.data", "--call-graph", "dwarf", *packed, arguments=loop)
    imported(path)
    perf, ours = by_perf(path), by_phlox(f"{path}.phlox")
    if perf.share(perf.own, "clock_gettime") < 1:
        pytest.skip("the host's clock is not read in the vdso")
    assert abs(perf.share(perf.own, "clock_gettime") - ours.share(ours.own, "clock_gettime")) <= 0.5


@needs_perf
def test_every_cpu_is_recorded(tmp_path):
    path = recorded(tmp_path, "perf.data", "-a", "--call-graph", "dwarf")
    imported(path)
    assert by_phlox(f"{path}.phlox").samples == by_perf(path).samples
    assert re.search(r'"name":|"pid":', phlox("report", "--json", f"{path}.phlox").stdout)


@needs_perf
def test_a_pipe_is_read_as_it_comes(tmp_path):
    path = recorded(tmp_path, "pipe.data", "--call-graph", "dwarf", output="-")
    done = phlox("import", "-", "-o", tmp_path / "piped.phlox", stdin=open(path, "rb"))
    assert done.returncode == 0, done.stderr
    assert by_phlox(tmp_path / "piped.phlox").samples == by_perf(path).samples


@needs_perf
def test_a_file_through_a_pipe_is_read_whole(tmp_path):
    path = recorded(tmp_path, "perf.data", "--call-graph", "dwarf")
    assert path.stat().st_size > 1 << 20
    done = subprocess.run([PHLOX, "import", "-", "-o", tmp_path / "piped.phlox"], input=path.read_bytes(), capture_output=True)
    assert done.returncode == 0 and b"the file ends" not in done.stderr and b"could not be" not in done.stderr, done.stderr
    assert by_phlox(tmp_path / "piped.phlox").samples == by_perf(path).samples


@needs_perf
def test_stacks_that_perf_cut_come_with_a_hint(tmp_path):
    path = recorded(tmp_path, "perf.data", "--call-graph", "dwarf,512")
    said = phlox("import", path, "-o", tmp_path / "short.phlox").stderr
    assert re.search(r"warning: .*\d+ of \d+ stacks are deeper than the 512 bytes .*--call-graph dwarf,65528", said), said


@needs_perf
def test_every_command_takes_it(tmp_path):
    path = recorded(tmp_path, "perf.data", "--call-graph", "dwarf")
    assert "_PyEval_EvalFrameDefault" in phlox("report", path).stdout
    assert json.loads(phlox("report", "--json", path).stdout)
    assert "_PyEval_EvalFrameDefault" in phlox("export", "-f", "collapsed", path).stdout
    assert phlox("diff", path, path).returncode == 0


def built(path, function, build_id):
    source = f"volatile unsigned long n; __attribute__((noinline)) void {function}(void) {{ for (long i = 0; i < 200000000; i++) n += i; }}"
    subprocess.run(["cc", "-O1", f"-Wl,--build-id={build_id}", "-o", path, "-xc", "-"], check=True, text=True,
                   input=source + f" int main(void) {{ {function}(); }}")


@needs_perf
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts something")
@pytest.mark.parametrize("build_id", ["none", "sha1"])
def test_a_file_of_another_mount_namespace_is_not_the_one_at_its_path_here(tmp_path, build_id):
    if not shutil.which("cc"):
        pytest.skip("builds a program")
    root = tmp_path / "root"
    theirs = root / str(tmp_path / "app").lstrip("/")
    theirs.parent.mkdir(parents=True)
    built(tmp_path / "app", "it_is_ours", build_id)
    built(theirs, "it_is_theirs", build_id)
    path = tmp_path / "perf.data"
    done = subprocess.run(["perf", "record", "-F", "999", "-g", "-o", path, "--", "unshare", "--mount", "sh", "-c",
                           f"mount --bind {theirs} {tmp_path}/app && exec {tmp_path}/app"], capture_output=True, text=True, timeout=120)
    if done.returncode != 0 and ("ermission" in done.stderr or "unshare" in done.stderr or "mount" in done.stderr):
        pytest.skip("neither perf nor mounts here")
    assert done.returncode == 0, done.stderr
    said = imported(path)
    assert f"not those at their paths here, which name nothing (they are of a container, or were replaced): {tmp_path}/app" in said
    stacks = phlox("export", "-f", "collapsed", f"{path}.phlox").stdout
    assert "app+0x" in stacks and "it_is_ours" not in stacks
    # The build-id of theirs was never recorded: the process had ended before perf asked.
    if build_id == "none":
        assert phlox("import", path, "--sysroot", root, "-o", path.with_suffix(".theirs")).returncode == 0
        assert "it_is_theirs" in phlox("export", "-f", "collapsed", path.with_suffix(".theirs")).stdout


def with_trampolines():
    """An interpreter that has -X perf; None: none here has."""
    for path in ordinary_pythons(os.environ.get("PHLOX_PYTHONS", ""), "[2-5]"):
        done = subprocess.run([path, "-X", "perf", "-c", "import sys; print(sys.is_stack_trampoline_active())"],
                              capture_output=True, text=True)
        if done.stdout.strip() == "True":
            return path
    return None


TRAMPOLINES = with_trampolines()


@needs_perf
@pytest.mark.skipif(TRAMPOLINES is None, reason="a Python without -X perf")
def test_python_functions_are_in_the_stacks(tmp_path):
    path = recorded(tmp_path, "perf.data", "--call-graph", "dwarf,32768", python=TRAMPOLINES, arguments=("-X", "perf", "app.py"))
    said = imported(path)
    stacks = phlox("export", "-f", "collapsed", f"{path}.phlox").stdout
    # In a stripped Python, between two is the function without a name that calls the next trampoline.
    between = r";(python[0-9.]*\+0x[0-9a-f]+ \([^;]*\);)?"
    wanted = between.join([r"<module> \([^;]*app.py\)", r"main \([^;]*app.py\)", r"deep \([^;]*app.py\)"])
    assert re.search(wanted + r";.*;parse \(.*app.py\)", stacks), said
    # What calls Python is folded away, as in our own.
    assert "_PyEval_EvalFrameDefault" not in stacks
    assert "py::" not in stacks


@needs_perf
# Since 3.11 a file holds its version; before that, its name does.
@pytest.mark.parametrize("python", ["/usr/bin/python3", *ordinary_pythons(os.environ.get("PHLOX_PYTHONS", ""), "0")[:1]])
def test_a_hint_says_how_to_get_python_functions(tmp_path, python):
    (tmp_path / "loop.py").write_text("import time\nend = time.time() + 0.5\nwhile time.time() < end: sum(range(1000))\n")
    said = imported(recorded(tmp_path, "silent.data", "-g", python=python, arguments=("loop.py",)))
    silent = re.search(r"warning: .*: (\d+) of (\d+) stacks are of Python that does not tell perf .*python -X perf", said)
    assert silent and int(silent[1]) > int(silent[2]) / 2, said


@needs_perf
@pytest.mark.skipif(TRAMPOLINES is None, reason="a Python without -X perf")
@pytest.mark.parametrize("options", [("-g",), ("--call-graph", "dwarf,32768")], ids=" ".join)
def test_chains_that_break_in_python_come_with_a_hint(tmp_path, options):
    path = recorded(tmp_path, "perf.data", *options, python=TRAMPOLINES, arguments=("-X", "perf", "app.py"))
    said = imported(path)
    stacks = [line.rpartition(" ") for line in phlox("export", "-f", "collapsed", f"{path}.phlox").stdout.splitlines()]
    total = sum(int(count) for *_, count in stacks)
    with_functions = sum(int(count) for stack, _, count in stacks if "app.py)" in stack)
    hint = re.search(r"warning: .*: \d+ of \d+ stacks of Python lack its functions.*--call-graph dwarf", said)
    # Some Pythons are built with frame pointers.
    assert bool(hint) == (with_functions < total / 2), (said, with_functions, total)
    assert hint is None or options == ("-g",)


@needs_perf
def test_switches_show_where_time_was_spent_waiting(tmp_path):
    (tmp_path / "sleep.py").write_text("import time\nfor _ in range(20): sum(range(100000)); time.sleep(0.05)\n")
    path = recorded(tmp_path, "perf.data", "--switch-events", "--call-graph", "dwarf", arguments=("sleep.py",))
    imported(path)
    report = json.loads(phlox("report", "--json", "--state", "blocked", f"{path}.phlox").stdout)
    slept = by_phlox(f"{path}.phlox", "CASE WHEN cpu_ns = 0 THEN wall_ns ELSE 0 END").total
    assert 0.95e9 < slept < 1.6e9
    assert {wait["for"] for wait in report["waits"]} == {"call not recorded"}, report["waits"]


@needs_perf
def test_a_cut_file_gives_what_is_there(tmp_path):
    path = recorded(tmp_path, "perf.data", "--call-graph", "dwarf")
    whole = path.read_bytes()
    (tmp_path / "cut.data").write_bytes(whole[:len(whole) // 2])
    said = imported(tmp_path / "cut.data")
    assert "cut" in said or "could not be read" in said
    assert 0 < by_phlox(f"{tmp_path}/cut.data.phlox").samples < by_perf(path).samples


@needs_perf
def test_the_text_of_perf_script_is_read_too(tmp_path):
    path = recorded(tmp_path, "perf.data", "--call-graph", "dwarf")
    text = subprocess.run(["perf", "script", "--no-inline", "-i", path], capture_output=True, timeout=120).stdout
    (tmp_path / "script.txt").write_bytes(text)
    imported(tmp_path / "script.txt")
    perf, ours = by_perf(path), by_phlox(f"{tmp_path}/script.txt.phlox")
    assert ours.samples == perf.samples
    assert [row for row in differences(perf, ours) if abs(row[0] - row[1]) > 0.5] == []


def test_our_own_collapsed_stacks_come_back(tmp_path):
    (tmp_path / "a.txt").write_text("main (/a.py);work (/a.py) 3\nmain (/a.py) 1\n")
    done = phlox("export", "-f", "collapsed", tmp_path / "a.txt")
    assert done.stdout == "main (/a.py) 1\nmain (/a.py);work (/a.py) 3\n"


SPEEDSCOPE = {"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": "main"}]}}


def speedscope(unit, start, weights):
    profile = {"type": "sampled", "name": "t", "unit": unit, "startValue": start, "endValue": start, "samples": [[0]] * len(weights), "weights": weights}
    return json.dumps(SPEEDSCOPE | {"profiles": [profile]}).encode()


def cpuprofile(start):
    nodes = [{"id": 1, "callFrame": {"functionName": "main", "url": "", "lineNumber": -1}}]
    return json.dumps({"nodes": nodes, "startTime": start, "endTime": start + 50, "samples": [1, 1], "timeDeltas": [10, 20]}).encode()


STRANGE = {
    "nanoseconds since 1970": (speedscope("nanoseconds", 1764246000123456789, [5, 6]), 11),
    "decades in one sample": (speedscope("nanoseconds", 0, [1 << 60, (1 << 60) - 1]), (1 << 61) - 1),
    "milliseconds since 1970": (speedscope("milliseconds", 1764246000123, [0.000005]), 5),
    "Chrome's microseconds since 1970": (cpuprofile(1764246000123456), 40_000),
    "decades of austin": ("".join(f"P1;T0:1;a.py:f:1 {900_000_000_000_000}\n" for _ in range(2)).encode(), 1_800_000_000_000_000_000),
    "UTF-16": (b"\xff\xfe" + "main;w\u00f6rk 3\r\nmain 4\r\n".encode("utf-16-le"), 7),
    "lines of old systems": (b"main;work 3\rmain 4\r", 7),
}


@pytest.mark.smoke
@pytest.mark.parametrize("name", STRANGE)
def test_what_was_imported_is_read_again_with_the_same_sum(tmp_path, name):
    data, total = STRANGE[name]
    (tmp_path / "a.txt").write_bytes(data)
    imported(tmp_path / "a.txt")
    done = phlox("export", "-f", "collapsed", "--show", "everything", tmp_path / "a.txt.phlox")
    assert done.returncode == 0, done.stderr
    assert sum(int(line.rpartition(" ")[2]) for line in done.stdout.splitlines()) == total
    assert phlox("report", tmp_path / "a.txt.phlox").returncode == 0


def test_what_is_no_recording_is_refused_with_words(tmp_path):
    (tmp_path / "words.txt").write_text("these are plain words\n")
    done = phlox("report", tmp_path / "words.txt")
    assert done.returncode == 118, done.stderr
    assert "--from" in done.stderr
    assert phlox("import", tmp_path / "absent").returncode == 118
    # What was there stays.
    (tmp_path / "out.phlox").write_text("mine")
    assert phlox("import", tmp_path / "words.txt", "-o", tmp_path / "out.phlox").returncode == 118
    assert (tmp_path / "out.phlox").read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.phlox", "words.txt"]


@pytest.mark.parametrize("picture, recording", [("flame.svg", "flame.svg.phlox"), ("app.phlox.html", "app.phlox")])
def test_of_a_picture_the_recording_is_named(tmp_path, picture, recording):
    (tmp_path / picture).write_text("<svg/>")
    (tmp_path / recording).write_text("")
    done = phlox("report", tmp_path / picture)
    assert done.returncode == 118
    assert f"hint: the recording is {tmp_path / recording}" in done.stderr


# Of two events, as `perf script` writes them: the first measures time, the second counts.
EVENTS = """app  7/7 [000]  10.001000:    1000000 cpu-clock: 
\t    401000 work+0x8 (/opt/app)
\t    402000 main+0x8 (/opt/app)

app  7/7 [000]  10.002000:    3000000 cpu-clock: 
\t    402000 main+0x8 (/opt/app)

app  7/7 [000]  10.002500:    75000 cache-misses:u: 
\t    401000 work+0x8 (/opt/app)
\t    402000 main+0x8 (/opt/app)

app  7/7 [000]  10.002600:    25000 cache-misses:u: 
\t    403000 miss+0x8 (/opt/app)
\t    402000 main+0x8 (/opt/app)

"""


@pytest.fixture
def two_events(tmp_path):
    (tmp_path / "script.txt").write_text(EVENTS)
    imported(tmp_path / "script.txt")
    return tmp_path / "script.txt.phlox"


def test_a_report_shows_the_event_that_was_asked_for(two_events):
    by_time = json.loads(phlox("report", two_events, "--json").stdout)
    assert (by_time["weight"], by_time["unit"], by_time["event"], by_time["total"]) == ("wall", "ns", "cpu-clock", 4_000_000)
    missed = json.loads(phlox("report", two_events, "--json", "--event", "cache-misses").stdout)
    assert (missed["weight"], missed["unit"], missed["event"], missed["total"]) == ("event", "count", "cache-misses:u", 100_000)
    assert {row["name"]: row["self"]["weight"] for row in missed["functions"]} == {"work": 75_000, "miss": 25_000}
    text = phlox("report", two_events, "--event", "cache-misses").stdout
    assert "100,000 cache-misses:u" in text.splitlines()[0] and "75,000" in text
    assert "2 samples of cache-misses:u" in phlox("report", two_events, "--event", "cache-misses", "--weight", "samples").stdout


def test_an_event_that_was_not_recorded_is_an_error_that_says_which_were(two_events, busy, workdir):
    done = phlox("report", two_events, "--event", "cycles")
    assert done.returncode == 2 and "no event 'cycles' was recorded" in done.stderr and "cpu-clock, cache-misses:u" in done.stderr
    done = phlox("report", two_events, "--weight", "event")
    assert done.returncode == 2 and "cpu-clock is time" in done.stderr
    assert phlox("record", "-p", busy.pid, "-d", "0.2", "-o", "a.phlox").returncode == 0
    done = phlox("report", "a.phlox", "--event", "cycles")
    assert done.returncode == 2 and "holds time only" in done.stderr


def test_exports_hold_the_event_that_was_asked_for_or_all(two_events, tmp_path):
    collapsed = phlox("export", two_events, "--event", "cache-misses", "-f", "collapsed").stdout
    assert sorted(collapsed.replace(" (app)", "").splitlines()) == ["main;miss 25000", "main;work 75000"]
    rows = [json.loads(line) for line in phlox("export", two_events, "--event", "cache-misses", "-f", "jsonl").stdout.splitlines()]
    assert [(row["event"], row["value"], row["wall_ns"]) for row in rows] == [("cache-misses:u", 75_000, 0), ("cache-misses:u", 25_000, 0)]
    assert phlox("export", two_events, "-o", tmp_path / "all.callgrind").returncode == 0
    text = (tmp_path / "all.callgrind").read_text()
    assert "events: Wall_ns cache-misses_u\nsummary: 4000000 100000\n" in text
    # And back.
    assert phlox("export", two_events, "-o", tmp_path / "all.pb.gz").returncode == 0
    back = json.loads(phlox("report", tmp_path / "all.pb.gz", "--json", "--event", "cache-misses").stdout)
    assert back["total"] == 100_000 and {row["name"] for row in back["functions"]} == {"work", "miss"}
    assert json.loads(phlox("report", tmp_path / "all.pb.gz", "--json").stdout)["total"] == 4_000_000
    # A picture says what its widths are.
    assert phlox("export", two_events, "--event", "cache-misses", "-o", tmp_path / "a.svg").returncode == 0
    assert "Widths: cache-misses:u" in (tmp_path / "a.svg").read_text()


def test_a_difference_is_of_one_event(two_events):
    found = json.loads(phlox("diff", two_events, two_events, "--json", "--event", "cache-misses").stdout)
    assert (found["weight"], found["unit"], found["after_event"]) == ("event", "count", "cache-misses:u")
    assert found["before"]["total"] == found["after"]["total"] == 100_000
    done = phlox("diff", two_events, two_events, "--event", "cache-misses", "--fail-if", "self(work) > 1s")
    assert done.returncode == 2 and "cache-misses:u are weighed" in done.stderr


def page_head(path):
    return json.loads(re.search(r'id="phlox-head">(.*?)</script>', path.read_text(), re.S)[1])


def test_the_page_has_every_event_as_a_weight_to_choose(two_events, tmp_path):
    assert phlox("view", two_events, "-o", tmp_path / "a.html").returncode == 0
    head = page_head(tmp_path / "a.html")
    assert head["weight"] == "wall" and head["events"] == [{"name": "cache-misses:u", "unit": "count"}]
    assert phlox("view", two_events, "--event", "cache-misses", "-o", tmp_path / "b.html").returncode == 0
    head = page_head(tmp_path / "b.html")
    assert head["weight"] == "event1"
    assert head["events"] == [{"name": "cache-misses:u", "unit": "count"}, {"name": "cpu-clock", "unit": "ns"}]
    assert phlox("diff", two_events, two_events, "-o", tmp_path / "c.html").returncode == 0
    assert page_head(tmp_path / "c.html")["events"] == [{"name": "cache-misses:u", "unit": "count"}]
