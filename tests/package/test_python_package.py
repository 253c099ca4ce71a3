"""`import phlox`, on real interpreters."""
import importlib.util
import os
import subprocess
import sys

import pytest
from package_support import BUSY, ROOT, environment, interpreters, run, said

pytestmark = pytest.mark.live


PROFILE = BUSY + """
import json, os, phlox
with phlox.profile() as p:
    hot(0.6)
r = p.recording
walls = {}
for s in r.spans():
    for name in {f.function for f in s.stack} if s.stack else ():
        walls[name] = walls.get(name, 0) + s.wall_s
print(json.dumps({"hot": walls["hot"], "threads": [t.name for t in r.threads], "pid": r.processes[0].pid == os.getpid(),
                  "duration": r.duration_s, "samples": r.counters["samples"], "kept": os.path.exists(r.path),
                  "report": "hot" in r.report(), "svg": r.exported("svg").count("<svg"), "first": next(r.events()).kind}))
"""


@pytest.mark.parametrize("python", interpreters())
def test_a_block_is_recorded_by_a_separate_recorder(python, tmp_path):
    found = said(run(python, PROFILE, cwd=tmp_path))
    assert found["hot"] == pytest.approx(0.6, rel=0.2) and found["hot"] <= found["duration"]
    # No thread of the package's own is among them.
    assert found["threads"] == ["MainThread"]
    assert found["pid"] and found["kept"] and found["report"] and found["samples"] > 20
    assert found["svg"] >= 1 and found["first"] == "recording starts"
    assert os.listdir(tmp_path) == []


def test_the_libraries_of_the_program_are_not_the_recorders(tmp_path):
    """An interpreter with a folder of libraries of its own: one of them would not do for phlox."""
    (tmp_path / "libdw.so.1").write_text("another one")
    program = BUSY + "import phlox\nwith phlox.profile() as p: hot(0.3)\nprint(p.recording.counters['samples'], 'hot' in p.recording.report())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env={**environment(), "LD_LIBRARY_PATH": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    samples, known = done.stdout.split()
    assert int(samples) > 10 and known == "True"


def test_rows_are_those_of_the_file(tmp_path):
    program = BUSY + """
import json, sqlite3, sys, threading, phlox
def waits(): threading.Event().wait(0.4)
with phlox.profile("app.phlox"):
    t = threading.Thread(target=waits, name="waiter"); t.start(); hot(0.3); t.join()
r = phlox.load("app.phlox")
db = sqlite3.connect("app.phlox")
one = lambda sql: db.execute(sql).fetchone()[0]
rows = list(r.spans())
assert len(rows) == one("select count(*) from sample")
assert abs(sum(s.wall_s for s in rows) - one("select sum(wall_ns) from sample") / 1e9) < 1e-6
assert sum(s.samples for s in rows) == one("select sum(samples) from sample")
assert {s.cpu for s in rows} == {row[0] for row in db.execute("select distinct cpu from span")}
assert {s.gil for s in rows} == {row[0] for row in db.execute("select distinct gil from span")}
assert len(list(r.stacks())) == one("select count(*) from stack") and len(r.frames) == one("select count(*) from frame")
assert [e.text for e in r.events()] == [row[0] for row in db.execute("select text from event order by id")]
assert {t.name for t in r.threads} == {"MainThread", "waiter"}
waiting = next(s for s in rows if s.thread.name == "waiter" and s.stack and s.cpu == "blocked" and "waits" in [f.function for f in s.stack])
chain = []
at = waiting.stack.id
while at:
    frame, at = db.execute("select frame, parent from stack where id = ?", (at,)).fetchone()
    chain.append(frame)
assert [f.id for f in waiting.stack] == chain
assert waiting.cpu == "blocked" and 0 <= waiting.start_s < r.duration_s
columns = r.columns()
assert {len(values) for values in columns.values()} == {len(rows)}
assert r.columns("labels") == {"start_s": [], "end_s": [], "text": []} and r.labels == []
assert len(r.columns("threads")["id"]) == len(r.threads)
print(json.dumps(0))
"""
    assert said(run(sys.executable, program, cwd=tmp_path)) == 0
    assert os.listdir(tmp_path) == ["app.phlox"]


def test_a_python_without_sqlite3_records_and_reports(tmp_path):
    """As pyenv builds it where SQLite's headers are not installed."""
    program = "import sys; sys.modules['sqlite3'] = None" + BUSY + """
import json, phlox
with phlox.profile("app.phlox") as p: hot(0.3)
errors = []
for path in ("app.phlox", "no.phlox"):
    try:
        next(phlox.load(path).spans())
    except phlox.PhloxError as error:
        errors.append(str(error))
print(json.dumps({"report": "hot" in p.recording.report(), "errors": errors}))
"""
    (tmp_path / "no.phlox").write_text("not one")
    assert said(run(sys.executable, program, cwd=tmp_path)) == {
        "report": True,
        "errors": ["this Python has no sqlite3 module, which reads the rows of a recording (hint: report() and export() do not need it)",
                   "no.phlox is no recording (hint: what other tools recorded: phlox import FILE)"]}


def test_a_recording_goes_away_with_its_object_unless_it_has_a_name(tmp_path):
    program = BUSY + """
import gc, json, os, phlox
with phlox.profile() as p: hot(0.1)
path = p.recording.path
before = os.path.exists(path)
del p; gc.collect()
print(json.dumps([before, os.path.exists(os.path.dirname(path))]))
"""
    assert said(run(sys.executable, program, cwd=tmp_path)) == [True, False]


def test_another_process_and_a_command(tmp_path):
    program = BUSY + f"""
import json, subprocess, sys, phlox
child = subprocess.Popen([sys.executable, "-c", {BUSY!r} + "print(1, flush=True); hot(60)"], stdout=subprocess.PIPE)
child.stdout.readline()
other = phlox.record(pid=child.pid, duration=0.5, rate=100)
child.kill(); child.wait()
fails = phlox.record(command=[sys.executable, "-c", {BUSY!r} + "hot(0.3); raise SystemExit(3)"], output="c.phlox")
print(json.dumps([other.processes[0].pid == child.pid, other.meta["rate_hz"], 0.3 < other.duration_s < 2, fails.processes[0].how_ended]))
"""
    done = run(sys.executable, program, cwd=tmp_path)
    assert said(done) == [True, "100", True, "exit 3"]
    assert "phlox" not in done.stderr


def test_errors_are_passed_on_in_the_programs_words(tmp_path):
    (tmp_path / "no.phlox").write_text("nothing of the kind, and long enough to be something else" * 10)
    program = """
import json, phlox
def message(call):
    try: call()
    except phlox.PhloxError as error: return [error.message, bool(error.hint), error.status]
    except (ValueError, RuntimeError) as error: return type(error).__name__
print(json.dumps([message(lambda: phlox.record(pid=2**22 + 1, duration=1)), message(lambda: phlox.load("no.phlox")),
                  message(lambda: phlox.load("none.phlox")), message(lambda: phlox.record()), message(lambda: phlox.record(command=["no-such-program"])),
                  message(lambda: phlox.profile("flame.svg").__enter__()), message(lambda: phlox.profile().recording),
                  message(lambda: phlox.profile(rate="x").__enter__())]))
"""
    found = said(run(sys.executable, program, cwd=tmp_path))
    assert found[0] == [f"no process {2**22 + 1}", True, 111]
    assert found[1][0].startswith("no.phlox is no recording") and found[2][0] == "cannot open none.phlox: No such file or directory"
    assert found[3] == "ValueError" and found[4][2] == 127 and "no-such-program" in found[4][0] and found[5] == "ValueError" and found[6] == "RuntimeError"
    assert found[7][2] == 2 and "rate" in found[7][0]
    assert os.listdir(tmp_path) == ["no.phlox"]


def test_an_exception_passes_and_the_recording_is_there(tmp_path):
    program = BUSY + """
import json, phlox
p = phlox.profile("app.phlox")
try:
    with p:
        hot(0.2); raise KeyError("mine")
except KeyError as error:
    print(json.dumps([str(error), len(list(p.recording.spans())) > 0]))
"""
    assert said(run(sys.executable, program, cwd=tmp_path)) == ["'mine'", True]


def test_each_call_of_a_decorated_function(tmp_path):
    program = BUSY + """
import json, phlox
@phlox.profile("call.phlox")
def work(): hot(0.2); return 5
print(json.dumps([work(), work(), any(f.function == "work" for f in phlox.load("call.phlox").frames)]))
"""
    assert said(run(sys.executable, program, cwd=tmp_path)) == [5, 5, True]


def test_where_yama_asks_for_it_the_recorder_waits_to_be_named(tmp_path):
    """As on Ubuntu: only a process that this one names may read it. Its file is made up; the check is real."""
    (tmp_path / "scope").write_text("1\n")
    program = BUSY + """
import json, phlox, phlox._recorder as r
r._YAMA = "scope"
named = []
allow = r._allow
r._allow = lambda pid: (named.append(pid), allow(pid))
with phlox.profile() as p: hot(0.3)
print(json.dumps([len(named), r._must_be_allowed(1), p.recording.counters["samples"] > 10]))
"""
    assert said(run(sys.executable, program, cwd=tmp_path)) == [1, False, True]


def test_without_the_program(tmp_path):
    program = """
import json, os, sys, phlox
os.environ.pop("PHLOX_BIN"); os.environ["PATH"] = "/nowhere"
import phlox._program as p
p.sysconfig.get_path = lambda *a: "/nowhere"
sys.executable = "/nowhere/python"
try: phlox.record(pid=1)
except phlox.NotInstalled as error: print(json.dumps(error.hint))
"""
    assert "pip install phlox" in said(run(sys.executable, program, cwd=tmp_path))


# --- where these are installed ----------------------------------------------------------------------------------------
def needs(*modules):
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


@needs("pandas", "polars")
def test_data_frames(tmp_path):
    program = BUSY + """
import json, phlox
with phlox.profile() as p: hot(0.4)
r = p.recording
a, b = r.pandas(), r.polars()
assert list(a.columns) == b.columns and len(a) == b.height > 10
assert abs(a.wall_s.sum() - b["wall_s"].sum()) < 1e-9
stacks = r.pandas("stacks")
in_hot = a.merge(stacks[stacks.function == "hot"][["stack"]].drop_duplicates(), on="stack")
for table in ("stacks", "threads", "labels"): assert len(r.pandas(table)) == r.polars(table).height
print(json.dumps(float(in_hot.wall_s.sum())))
"""
    assert said(run(sys.executable, program, cwd=tmp_path)) == pytest.approx(0.4, rel=0.2)


@needs("IPython")
def test_a_cell_shows_its_flame_graph(tmp_path):
    program = """
import json
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "phlox")
with capture_output() as out:
    shell.run_cell_magic("phlox", "--by line", "def spin():\\n    return sum(range(300))\\nimport time\\nend = time.monotonic() + 0.4\\n"
                         "while time.monotonic() < end: spin()\\nprint('hello')")
shown = out.outputs[0].data["text/html"]
print(json.dumps([out.stdout, len(out.outputs), shown.startswith("<iframe"), "spin" in shown, str(shell.user_ns["_phlox"])]))
"""
    env = {**environment(), "IPYTHONDIR": str(tmp_path / "ipython")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env=env, cwd=tmp_path)
    found = said(done)
    assert found[:4] == ["hello\n", 1, True, True] and "<Recording" in found[4]


@needs("nbclient", "ipykernel")
def test_a_notebook_runs_with_it(tmp_path):
    program = """
import json, nbformat
from nbclient import NotebookClient
cells = ["%load_ext phlox", "%%phlox\\nimport time\\ndef spin(): return sum(range(300))\\nend = time.monotonic() + 0.4\\nwhile time.monotonic() < end: spin()",
         "_phlox.counters['samples']"]
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
NotebookClient(notebook, timeout=60).execute()
html = [o["data"]["text/html"] for o in notebook.cells[1].outputs if "data" in o and "text/html" in o["data"]]
print(json.dumps([len(html), "spin" in html[0], int(notebook.cells[2].outputs[0]["data"]["text/plain"]) > 10]))
"""
    assert said(run(sys.executable, program, cwd=tmp_path)) == [1, True, True]


@needs("mypy")
def test_types_hold(tmp_path):
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path, "phlox"], capture_output=True, text=True,
                          cwd=ROOT / "python", timeout=300)
    assert done.returncode == 0, done.stdout
