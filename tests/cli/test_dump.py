"""phlox dump: one sample of every thread."""
import json
import os
import pathlib
import re

import pytest
from cli_support import PYTHON, ROOT, phlox, still_runs, wait_until

pytestmark = [pytest.mark.smoke, pytest.mark.live]

THREADS = """
import threading, time
def waits(seconds, *rest, key=None):
    word = "text"
    time.sleep(seconds)
for i in range(3):
    threading.Thread(target=waits, args=(60 + i,), name=f"waiter-{i}", daemon=True).start()
def outer():
    inner()
def inner():
    print("ready", flush=True)
    time.sleep(60)
outer()
"""


@pytest.fixture
def threaded(start, tmp_path):
    path = tmp_path / "app.py"
    path.write_text(THREADS)
    process = start([PYTHON, "app.py"], cwd=tmp_path)
    assert process.stdout.readline() == "ready\n"
    # "ready" comes before the sleeps: wait for the kernel to have all four asleep.
    wait_until(lambda: all(re.search(r"^State:\tS", (task / "status").read_text(), re.M)
                           for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir()), "four sleeping threads")
    return process


def test_every_thread_with_its_stack_and_source(threaded):
    done = phlox("dump", "-p", threaded.pid)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Process {threaded.pid}: ")
    assert "CPython 3." in done.stdout
    main = re.search(r"Thread .*MainThread.*\n(?:    .*\n)+", done.stdout).group(0)
    assert re.search(r"blocked in \w+", main)
    assert re.search(r"    inner \(.*app\.py:12\)\n        time\.sleep\(60\)\n    outer \(.*app\.py:9\)\n        inner\(\)\n    <module> \(.*app\.py:13\)", main)
    for i in range(3):
        assert f"waiter-{i}" in done.stdout
    assert done.stdout.count("    waits (") == 3
    assert still_runs(threaded)


def test_variables_are_shown_when_asked_for_with_a_warning(threaded):
    assert "seconds" not in phlox("dump", "-p", threaded.pid).stdout.replace("sleep(seconds)", "")
    done = phlox("dump", "--locals", "-p", threaded.pid)
    assert done.returncode == 0
    assert "secrets" in done.stderr
    for value in (60, 61, 62):
        assert re.search(rf"^ +seconds = {value}$", done.stdout, re.M)
    assert re.search(r"^ +word = 'text'$", done.stdout, re.M)
    assert re.search(r"^ +key = None$", done.stdout, re.M)


def check_schema(value, schema, path="$"):
    """The part of JSON Schema that docs/json uses."""
    known = {"$schema", "title", "description", "type", "required", "additionalProperties", "properties", "items", "enum", "const"}
    assert set(schema) <= known, f"{path}: teach this test {set(schema) - known}"
    if "const" in schema:
        assert value == schema["const"], path
    if "enum" in schema:
        assert value in schema["enum"], f"{path}: {value}"
    types = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "number": (int, float)}
    if "type" in schema:
        assert isinstance(value, types[schema["type"]]), f"{path}: {value!r}"
        assert schema["type"] not in ("integer", "number") or not isinstance(value, bool), path
    if isinstance(value, dict):
        assert set(schema.get("required", [])) <= set(value), f"{path}: {set(schema['required']) - set(value)}"
        for key, part in value.items():
            assert key in schema["properties"], f"{path}.{key}"
            check_schema(part, schema["properties"][key], f"{path}.{key}")
    if isinstance(value, list):
        for i, part in enumerate(value):
            check_schema(part, schema["items"], f"{path}[{i}]")


def test_json_is_what_the_schema_says(threaded):
    done = phlox("dump", "--json", "--locals", "-p", threaded.pid)
    assert done.returncode == 0
    found = json.loads(done.stdout)
    check_schema(found, json.loads((ROOT / "docs/json/dump.schema.json").read_text()))
    assert found["processes"][0]["pid"] == threaded.pid
    threads = {thread["name"]: thread for thread in found["threads"]}
    assert {"MainThread", "waiter-0", "waiter-1", "waiter-2"} <= set(threads)
    assert threads["MainThread"]["tid"] == threaded.pid
    assert [frame["function"] for frame in threads["MainThread"]["frames"]] == ["inner", "outer", "<module>"]
    waits = [frame for frame in threads["waiter-1"]["frames"] if frame["function"] == "waits"]
    assert {"name": "seconds", "value": "61", "argument": True} in waits[0]["variables"]


def test_the_id_of_a_thread_gives_its_process(threaded):
    tid = next(int(task.name) for task in pathlib.Path(f"/proc/{threaded.pid}/task").iterdir() if int(task.name) != threaded.pid)
    done = phlox("dump", "-p", tid)
    assert done.returncode == 0
    assert done.stdout.startswith(f"Process {threaded.pid}: ")
    assert f"{tid} is a thread of process {threaded.pid}" in done.stderr
    assert done.stdout.count("    waits (") == 3


def test_names_cannot_move_the_cursor(start, tmp_path):
    path = tmp_path / "a\x1b[31m.py"
    path.write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)  # \x1b[2J\n")
    odd = start([PYTHON, path])
    assert odd.stdout.readline() == "ready\n"
    done = phlox("dump", "-p", odd.pid)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout


def test_a_file_outside_of_the_targets_root_is_not_read(start, tmp_path):
    """A source name is the target's word: a link or a device behind it must not be followed out or opened."""
    script = "import time\ncode = compile('import time\\nprint(\"ready\", flush=True)\\ntime.sleep(60)', '/proc/self/environ', 'exec')\nexec(code)"
    odd = start([PYTHON, "-c", script], env={**os.environ, "SECRET": "a\nb\nthe third line"})
    assert odd.stdout.readline() == "ready\n"
    done = phlox("dump", "-p", odd.pid)
    assert done.returncode == 0
    assert "/proc/self/environ:3" in done.stdout
    assert "third line" not in done.stdout


@pytest.mark.parametrize("words, status", [(["dump"], 2), (["dump", "-p", "x"], 2), (["dump", "-p", str(2**22 + 1)], 111)])
def test_errors(words, status):
    done = phlox(*words)
    assert done.returncode == status
    assert done.stdout == "" and done.stderr.startswith("phlox: ")
