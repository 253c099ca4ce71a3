"""phlox mcp, as a client sees it: raw messages over the standard streams of the built program."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys

import pytest
from cli_support import LIMIT, PHLOX, ROOT, count, is_recording, phlox, still_runs, wait_until
from mcp_client import Client
from test_dump import check_schema

pytestmark = pytest.mark.live

NOBODY = 65534
OFFICIAL = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "phlox" / "mcp-client"
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives up rights that only root has")
MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


@pytest.fixture
def connect(tmp_path, monkeypatch):
    """Starts servers, each ended with its test. Recordings without a place go below tmp_path."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    clients = []

    def connect_(*arguments, **options):
        clients.append(Client(*arguments, **options))
        return clients[-1]

    yield connect_
    for client in clients:
        client.close()


@pytest.fixture
def client(connect):
    return connect()


def children_of(process):
    return pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


def test_a_python_is_found_dumped_recorded_and_explained(client, busy, tmp_path):
    tools = {tool["name"]: tool for tool in client.ask("tools/list")["result"]["tools"]}
    assert list(tools) == ["list", "dump", "record", "report", "query", "diff"]
    assert {name for name, tool in tools.items() if not tool["annotations"]["readOnlyHint"]} == {"record"}

    found = client.call("list", max_bytes=200000)["structuredContent"]
    check_schema(found["result"], json.loads((ROOT / "docs/json/list.schema.json").read_text()))
    assert busy.pid in [row["pid"] for row in found["result"]["processes"]]

    seen = client.call("dump", pid=busy.pid)
    check_schema(seen["structuredContent"]["result"], json.loads((ROOT / "docs/json/dump.schema.json").read_text()))
    assert "work (<string>:" in seen["content"][0]["text"]
    assert seen["structuredContent"]["command"] == f"phlox dump --json --pid={busy.pid}"

    recorded = client.call("record", pid=busy.pid, seconds=1)["structuredContent"]
    path = pathlib.Path(recorded["result"]["recording"])
    assert path.parent.parent == tmp_path and path.parent.stat().st_mode & 0o777 == 0o700
    assert is_recording(path) and recorded["result"]["bytes"] == path.stat().st_size and not recorded["result"]["ended_early"]
    assert recorded["command"] == f"phlox record --pid={busy.pid} --duration=1 --output={path}"

    told = client.call("report", file=str(path))
    assert told["content"][0]["text"] == phlox("report", path).stdout
    names = [row["name"] for row in told["structuredContent"]["result"]["functions"]]
    assert "hot" in names and told["structuredContent"]["result"]["total"] > 5e8
    lines = client.call("report", file=str(path), by="line", state="running", time="..500ms", top=2)
    assert lines["structuredContent"]["command"] == f"phlox report --json --top=2 --by=line --state=running --time=..500ms {path}"

    asked = client.call("query", file=str(path), sql="SELECT count(*) AS n FROM sample")["structuredContent"]
    assert asked["result"]["rows"] == [{"n": count(path)}]
    compared = client.call("diff", before=[str(path)], after=[str(path)])
    assert compared["structuredContent"]["result"]["functions_differ"] == 0
    assert compared["content"][0]["text"].startswith("Recordings of ")
    assert client.end() == 0
    assert any(line == f"phlox: {recorded['command']}\n" for line in client.said)
    assert is_recording(path)  # it stays


def test_answers_fit_and_say_what_was_cut(client, busy, tmp_path):
    path = tmp_path / "app.phlox"
    client.call("record", pid=busy.pid, seconds=0.5, output=str(path))
    sql = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x, printf('%100d', x) AS wide FROM c"
    small = client.call("query", file=str(path), sql=sql, rows=5000)
    assert len(json.dumps(small["structuredContent"]["result"])) <= 22_000
    assert len(small["content"][0]["text"]) <= 22_000
    assert any(re.match(r"rows: \d+ of 5000", line) for line in small["structuredContent"]["cut"])
    assert "cut: rows: " in small["content"][0]["text"]
    assert any("there are more rows than these 5000" in line for line in small["structuredContent"]["warnings"])
    large = client.call("query", file=str(path), sql=sql, rows=300, max_bytes=200_000)
    assert len(large["structuredContent"]["result"]["rows"]) == 300 and "cut" not in large["structuredContent"]


def test_refusals_have_the_words_of_the_command_line(client, busy, tmp_path):
    for tool, arguments, command in (("dump", {"pid": 4194303}, ["dump", "-p", 4194303]), ("record", {"pid": 4194303}, ["record", "-p", 4194303]),
                                     ("report", {"file": "/nope/a.phlox"}, ["report", "/nope/a.phlox"]), ("report", {"file": "/etc/passwd"}, ["report", "/etc/passwd"]),
                                     ("query", {"file": "/etc/passwd", "sql": "SELECT 1"}, ["query", "/etc/passwd", "SELECT 1"]),
                                     ("record", {}, ["record"]), ("diff", {"before": ["/nope"], "after": ["/nope"]}, ["diff", "/nope", "/nope"])):
        refused = client.refusal(tool, **arguments)
        said = phlox(*command).stderr
        assert f"phlox: {refused['error']}\n" in said, (refused, said)
        assert f"hint: {refused['hint']}\n" in said or not refused["hint"], (refused, said)
    assert client.refusal("dump", pid=4194303)["kind"] == "no_such_process"
    assert client.refusal("record", pid=busy.pid, output=str(tmp_path / "app.svg"))["kind"] == "usage"
    assert client.refusal("record", pid=busy.pid, output=str(tmp_path / "no" / "app.phlox"))["kind"] == "output"
    assert client.refusal("dump", pid=busy.pid, locals=True)["error"] == "dump has no parameter 'locals'"
    assert client.refusal("dump", pid="1; rm -rf /")["error"] == "pid: must be an integer"


def test_a_file_is_written_over_by_nothing(client, busy, tmp_path):
    """Neither a file of another user, nor a recording, nor the target of a link."""
    text, recording, link, target = tmp_path / "text.phlox", tmp_path / "app.phlox", tmp_path / "link.phlox", tmp_path / "target"
    text.write_text("mine")
    client.call("record", pid=busy.pid, seconds=0.3, output=str(recording))
    link.symlink_to(target)
    before = recording.read_bytes()
    for path in (text, recording, link):
        refused = client.refusal("record", pid=busy.pid, seconds=0.3, output=str(path))
        assert refused["error"] == f"{path} is there already" and refused["kind"] == "output"
    assert text.read_text() == "mine" and recording.read_bytes() == before and not target.exists()


def test_words_are_never_options_or_a_shell_s(workdir, client):
    for name in ("--help", "-", "--", "$(touch out)", "; touch out", "[a,b]", "-o=out", "`touch out`"):
        refused = client.refusal("report", file=name)
        assert refused["error"].startswith(f"cannot open ./{name}"), refused
        assert client.refusal("diff", before=[name], after=[name])["error"].startswith(f"cannot open ./{name}")
        assert client.refusal("query", file=name, sql=name)["kind"] in ("input", "usage")
    assert "--json" in client.refusal("report", file="/nope", thread="--help")["command"]
    assert os.listdir(workdir) == []


ATTACKS = ["DELETE FROM sample", "ATTACH 'out' AS o", "PRAGMA query_only = OFF", "SELECT load_extension('x')", "SELECT writefile('out', 'x')", "SELECT 1; DELETE FROM sample",
           "CREATE TABLE t (a)", "SELECT * FROM pragma_database_list", "VACUUM INTO 'out'"]


def test_a_query_only_reads(workdir, client, busy):
    client.call("record", pid=busy.pid, seconds=0.3, output="app.phlox")
    before = pathlib.Path("app.phlox").read_bytes()
    for sql in ATTACKS:
        assert client.refusal("query", file="app.phlox", sql=sql)["error"].startswith("the query ")
    assert client.refusal("query", file="app.phlox", sql="--help")["error"] == "there is no query"
    assert pathlib.Path("app.phlox").read_bytes() == before and os.listdir(workdir) == ["app.phlox"]


def test_messages_that_are_none_are_answered_and_the_next_one_too(client):
    deep = '{"jsonrpc":"2.0","id":1,"method":"ping","params":' + '{"a":' * 5000 + "1" + "}" * 5001
    for message, code in (("{", -32700), ("[" * 100_000, -32700), (deep, -32700), ("x" * 3_000_000, -32700), ('"\\ud800"', -32700), ("[]", -32600), ("7", -32600),
                          ('{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600), ('{"jsonrpc":"2.0","id":1,"method":"rm"}', -32601)):
        client.put(message)
        assert client.next()["error"]["code"] == code, message[:60]
    client.process.stdin.buffer.write(b'{"jsonrpc":"2.0","id":"\xff","method":"ping"}\n{"a":1}\0\n')
    client.process.stdin.buffer.flush()
    assert [client.next()["error"]["code"] for _ in range(2)] == [-32700, -32700]
    assert client.ask("ping")["result"] == {}
    assert client.end() == 0


def test_every_version_is_spoken(connect, busy):
    for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"):
        client = connect(version=version)
        answer = client.call("dump", pid=busy.pid)
        assert ("structuredContent" in answer) == (version >= "2025-06-18")
        if version < "2025-06-18":
            assert json.loads(answer["content"][1]["text"])["command"].startswith("phlox dump")
        assert client.end() == 0
    client = connect(version=None)
    found = client.ask("server/discover", _meta=MODERN)["result"]
    assert found["supportedVersions"] == ["2026-07-28"] and found["resultType"] == "complete"
    answer = client.ask("tools/call", name="dump", arguments={"pid": busy.pid}, _meta=MODERN)["result"]
    assert answer["structuredContent"]["result"]["kind"] == "dump" and answer["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "phlox"


def test_while_it_records_it_answers_and_reports_progress(client, busy, tmp_path):
    path = tmp_path / "app.phlox"
    number = client.begin_call("record", progress="mine", pid=busy.pid, seconds=600, output=str(path))
    wait_until(lambda: is_recording(path), "samples")
    assert client.ask("ping")["result"] == {}
    assert client.call("dump", pid=busy.pid)["content"]
    while True:
        message = client.next()
        assert message["method"] == "notifications/progress"
        if message["params"]["progress"] > 1:
            break
    assert message["params"]["progressToken"] == "mine" and message["params"]["total"] == 600
    client.notify("notifications/cancelled", requestId=number, reason="enough")
    wait_until(lambda: children_of(client.process) == [], "the recorder's end")
    assert client.ask("ping")["result"] == {}  # and no answer before: answer_to() would say so
    assert count(path) > 0 and sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert not os.path.exists(f"{path}-wal") and still_runs(busy)
    assert phlox("report", path).returncode == 0


@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "SIGINT"])
def test_its_end_ends_recordings_properly(connect, busy, tmp_path, how):
    client = connect()
    path = tmp_path / "app.phlox"
    number = client.begin_call("record", pid=busy.pid, seconds=600, output=str(path))
    wait_until(lambda: is_recording(path), "samples")
    if how == "end of input":
        client.process.stdin.close()
    else:
        client.process.send_signal(getattr(signal, how))
    answer = client.answer_to(number)["result"]
    assert answer["structuredContent"]["result"]["ended_early"] and not answer["isError"]
    assert client.next() is None and client.process.wait(LIMIT) == 0
    assert not os.path.exists(f"{path}-wal") and still_runs(busy)
    assert phlox("report", path).returncode == 0


def test_a_client_that_goes_away_leaves_nothing_running(busy, tmp_path):
    ours, theirs = socket.socketpair()
    server = subprocess.Popen([PHLOX, "mcp"], stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL)
    theirs.close()
    path = tmp_path / "app.phlox"
    ours.sendall(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}\n'
                 + json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                               "params": {"name": "record", "arguments": {"pid": busy.pid, "seconds": 600, "output": str(path)}}}).encode() + b"\n")
    wait_until(lambda: is_recording(path), "samples")
    ours.close()
    assert server.wait(LIMIT) == 0
    assert phlox("report", path).returncode == 0


def test_a_killed_server_ends_its_recording(client, busy, tmp_path):
    path = tmp_path / "app.phlox"
    client.begin_call("record", pid=busy.pid, seconds=600, output=str(path))
    wait_until(lambda: is_recording(path), "samples")
    recorder = children_of(client.process)[0]
    client.process.kill()
    wait_until(lambda: not os.path.exists(f"/proc/{recorder}") or "State:\tZ" in pathlib.Path(f"/proc/{recorder}/status").read_text(), "the recorder's end")
    assert not os.path.exists(f"{path}-wal") and phlox("report", path).returncode == 0


def test_questions_that_were_asked_before_the_end_of_input_are_answered(busy):
    questions = [{"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
                 {"id": 1, "method": "tools/call", "params": {"name": "dump", "arguments": {"pid": busy.pid}}},
                 {"id": 2, "method": "tools/call", "params": {"name": "list"}}]
    text = "\n".join(json.dumps({"jsonrpc": "2.0", **one}) for one in questions)  # no end of the last line
    done = subprocess.run([PHLOX, "mcp"], input=text, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0 and {json.loads(line)["id"] for line in done.stdout.splitlines()} == {0, 1, 2}


def test_too_many_at_once_are_refused(client, busy, tmp_path):
    for i in range(8):
        client.begin_call("record", pid=busy.pid, seconds=600, rate=1, output=str(tmp_path / f"{i}.phlox"))
    refused = client.refusal("list")
    assert refused["error"] == "8 commands are running" and "cancel" in refused["hint"]
    client.process.kill()


def test_names_stay_data(client, start, tmp_path):
    """Whatever a program calls its functions, files and threads: one line of JSON, and no control character in the text."""
    evil = tmp_path / 'ev"il\n{"jsonrpc":"2.0"}\u202e.py'
    evil.write_text("import time\nexec(compile('def f():\\n time.sleep(1000)\\nprint(\"ready\", flush=True)\\nf()', 'fi\\x1b[31m\"\\nle', 'exec'))")
    program = start(["/usr/bin/python3", evil])
    program.stdout.readline()
    seen = client.call("dump", pid=program.pid)
    assert "\x1b" not in seen["content"][0]["text"] and "\u202e" not in seen["content"][0]["text"]
    files = {frame["file"] for thread in seen["structuredContent"]["result"]["threads"] for frame in thread["frames"]}
    assert any(file.startswith('fi\x1b[31m"\n') for file in files), files
    assert str(evil) in seen["structuredContent"]["result"]["processes"][0]["command_line"]


def test_locals_only_if_they_are_allowed(connect, start):
    program = start(["/usr/bin/python3", "-c", "import time\ndef f():\n    secret = 'hunter2'\n    print('ready', flush=True)\n    time.sleep(1000)\nf()"])
    program.stdout.readline()
    assert "hunter2" not in json.dumps(connect().call("dump", pid=program.pid)["structuredContent"]["result"]["threads"])
    assert "hunter2" in connect("--locals").call("dump", pid=program.pid, locals=True)["content"][0]["text"]


@only_root
def test_the_rights_are_those_of_the_user_who_started_it(connect, busy, tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("public")
    for parent in [folder, *folder.parents]:
        if parent.stat().st_uid == os.getuid() and str(parent) not in ("/", "/tmp"):
            parent.chmod(0o755)
    shutil.copy(PHLOX, folder / "phlox")
    monkeypatch.setenv("TMPDIR", "/tmp")
    client = connect(phlox=str(folder / "phlox"), command=["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"], cwd="/")
    for tool in ("dump", "record"):
        refused = client.refusal(tool, pid=busy.pid)
        assert refused["kind"] == "permission" and refused["error"].startswith("cannot read memory of process")
        assert f"sudo phlox {tool} -p {busy.pid}" in refused["hint"]
    left = client.refusal("record", pid=busy.pid)["command"]
    private = pathlib.Path(re.search(r"--output=(\S+)", left).group(1)).parent
    assert private.stat().st_uid == NOBODY and private.stat().st_mode & 0o777 == 0o700
    assert client.end() == 0
    assert not private.exists()  # nothing is in it


def test_standard_output_has_only_messages(busy, tmp_path):
    """Also of commands that print, warn and fail; every line of it is one."""
    client = Client()
    try:
        client.call("list")
        client.call("record", pid=busy.pid, seconds=0.3, output=str(tmp_path / "a.phlox"))
        client.refusal("report", file="/nope")
        client.put("nonsense")
        client.next()
        assert client.end() == 0
        assert client.next() is None
    finally:
        client.close()


@pytest.mark.skipif(not (OFFICIAL / "mcp").is_dir(), reason="no official client for this Python (tools/install-test-deps.sh)")
def test_the_official_client(busy, tmp_path):
    """In both kinds of versions: the newest, and the newest that begins with initialize."""
    script = tmp_path / "client.py"
    script.write_text("""
import asyncio, sys
from mcp import Client, StdioServerParameters, stdio_client
async def main():
    for mode in ("auto", "legacy"):
        async with Client(stdio_client(StdioServerParameters(command=sys.argv[1], args=["mcp"], env={"TMPDIR": sys.argv[3]})), mode=mode) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            told = []
            async def progress(*what): told.append(what)
            done = await client.call_tool("record", {"pid": int(sys.argv[2]), "seconds": 3}, progress_callback=progress)
            report = await client.call_tool("report", {"file": done.structured_content["result"]["recording"]})
            refused = await client.call_tool("dump", {"pid": 4194303})
            print(client.protocol_version, len(names), len(told) > 0, report.is_error, refused.is_error, refused.structured_content["error"], sep="|")
asyncio.run(main())
""")
    done = subprocess.run([sys.executable, script, PHLOX, str(busy.pid), str(tmp_path)], capture_output=True, text=True, timeout=LIMIT,
                          env={**os.environ, "PYTHONPATH": str(OFFICIAL)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["2026-07-28|6|True|False|True|no process 4194303", "2025-11-25|6|True|False|True|no process 4194303"]
