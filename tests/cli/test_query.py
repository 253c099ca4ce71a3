"""phlox query: SQL over a recording, which reads and does nothing else."""
import contextlib
import json
import os
import re
import sqlite3
import subprocess

import pytest
from cli_support import PHLOX, PYTHON, ROOT, phlox
from test_dump import check_schema

pytestmark = pytest.mark.live

USAGE, INPUT = 2, 118


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Of half a second of a Python."""
    path = tmp_path_factory.mktemp("query") / "app.phlox"
    program = "import time\nend = time.monotonic() + 0.5\nwhile time.monotonic() < end: sum(range(100))"
    done = phlox("record", "-o", path, "--", PYTHON, "-c", program)
    assert done.returncode == 0, done.stderr
    return path


def ask(recording, sql, *options):
    done = phlox("query", "--json", *options, recording, sql)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_rows_are_those_of_sqlite(recording):
    sql = "SELECT id, function, first_line / 7.0 AS seventh, module FROM frame ORDER BY id"
    found = ask(recording, sql)
    with contextlib.closing(sqlite3.connect(recording)) as db:
        wanted = db.execute(sql).fetchall()
    assert found["columns"] == ["id", "function", "seventh", "module"]
    assert [[row["id"], row["function"], pytest.approx(row["seventh"]), row["module"]] for row in found["rows"]] == [list(row) for row in wanted]
    check_schema({**found, "rows": []}, json.loads((ROOT / "docs/json/query.schema.json").read_text()))
    text = phlox("query", recording, "SELECT function FROM frame WHERE function = '<module>' LIMIT 1").stdout
    assert re.fullmatch(r"\s*function\s+<module>\s*", text)


def test_every_query_of_the_docs_is_answered(recording):
    page = (ROOT / "docs/recording.md").read_text()
    queries = [one for block in re.findall(r"```sql\n(.*?)```", page, re.S) for one in block.split(";") if one.strip()]
    queries = [one for one in queries if re.match(r"\s*(--[^\n]*\s*)*(SELECT|WITH)\b", one) and "'NAME" not in one and "recording." not in one]
    assert len(queries) >= 10
    for sql in queries:
        done = phlox("query", recording, sql)
        # Tables of what this recording has not (labels, tasks) are not there.
        assert done.returncode == 0 or "no such table: " in done.stderr, f"{sql}\n{done.stderr}"


REFUSED = {
    "write": ["DELETE FROM sample", "UPDATE meta SET value = 'x'", "INSERT INTO meta VALUES ('a', 'b')", "DROP TABLE sample", "REPLACE INTO meta VALUES ('a', 'b')",
              "CREATE TABLE t (a)", "CREATE TEMP TABLE t (a)", "CREATE TEMP TRIGGER t AFTER INSERT ON meta BEGIN SELECT 1; END", "VACUUM", "VACUUM INTO 'FOLDER/out'",
              "REINDEX", "ANALYZE", "ALTER TABLE meta RENAME TO m", "WITH x AS (SELECT 1) DELETE FROM sample", "DELETE FROM sample RETURNING *"],
    "reach": ["ATTACH 'FOLDER/out' AS other", "DETACH main", "ATTACH ':memory:' AS m", "SELECT load_extension('FOLDER/lib')", "SELECT writefile('FOLDER/out', 'x')",
              "SELECT readfile('/etc/passwd')", "SELECT * FROM fsdir('/')", "SELECT edit('x')"],
    "pragma": ["PRAGMA query_only = OFF", "PRAGMA writable_schema = ON", "PRAGMA journal_mode = DELETE", "PRAGMA table_info(sample)", "SELECT * FROM pragma_table_info('sample')",
               "SELECT count(*) FROM pragma_database_list", "SELECT file FROM pragma_database_list", "PRAGMA database_list", "PRAGMA temp_store_directory = '/tmp'"],
    "computed": ["SELECT count(*) FROM json_each('[1]')", "SELECT value FROM json_each('[1]')", "SELECT count(*) FROM dbstat", "SELECT randomblob(1000000000)",
                 "SELECT zeroblob(1000000000)", "SELECT count(*) FROM sqlite_temp_master, bytecode('SELECT 1')"],
    "several": ["SELECT 1; DELETE FROM sample", "SELECT 1; SELECT 2", "", ";", "-- nothing", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT a", "RELEASE a", "nonsense", "SELECT", "EXPLAIN DELETE FROM sample"],
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_plain_select_is_refused_and_changes_nothing(recording, tmp_path, kind):
    before = recording.read_bytes()
    for sql in REFUSED[kind]:
        done = phlox("query", recording, sql.replace("FOLDER", str(tmp_path)))
        assert done.returncode == USAGE and done.stdout == "", f"{sql}: {done.stdout}"
        assert done.stderr.startswith("phlox: ") and "hint: " in done.stderr, done.stderr
    assert recording.read_bytes() == before
    assert os.listdir(tmp_path) == []
    assert sorted(os.listdir(recording.parent)) == ["app.phlox"]


def test_with_defines_names_of_its_own(recording):
    assert ask(recording, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 5) SELECT count(*) AS n FROM c")["rows"] == [{"n": 5}]
    assert ask(recording, "WITH many AS (SELECT * FROM sample) SELECT count(*) > 0 AS yes FROM many")["rows"] == [{"yes": 1}]


def test_a_query_that_does_not_end_is_ended(recording):
    done = phlox("query", recording, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c")
    assert done.returncode == USAGE and "took longer than 10 s" in done.stderr


def test_memory_is_limited(recording):
    done = phlox("query", recording, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT group_concat(x) FROM c")
    assert done.returncode == USAGE and ("too big" in done.stderr or "took longer" in done.stderr)
    done = phlox("query", recording, "SELECT length(replace(hex(printf('%4000000d', 1)), '2', printf('%4000000d', 1)))")
    assert done.returncode == USAGE and "too big" in done.stderr


def test_cuts_are_reported(recording):
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"
    done = phlox("query", "--json", "--rows", 7, recording, endless)
    found = json.loads(done.stdout)
    assert [row["x"] for row in found["rows"]] == [1, 2, 3, 4, 5, 6, 7] and found["has_more"]
    assert "there are more rows" in done.stderr
    long = ask(recording, "SELECT printf('%50000d', 1) AS long")
    assert len(long["rows"][0]["long"]) < 10_100 and long["shortened_values"] == 1
    wide = ask(recording, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT printf('%9000d', x) AS wide FROM c", "--rows", 1000000)
    assert wide["has_more"] and len(wide["rows"]) < 500


def test_names_of_columns_and_odd_values(recording):
    found = ask(recording, "SELECT 1 AS a, 2 AS a, NULL AS b, x'00ff' AS c, 9e999 AS d, 'it\x1b[31m' AS e")
    assert found["rows"] == [{"a": 1, "a:2": 2, "b": None, "c": "X'00ff'", "d": None, "e": "it\x1b[31m"}]
    assert "\x1b" not in phlox("query", recording, "SELECT 'it\x1b[31m' AS e").stdout


def test_a_recording_s_own_views_are_not_believed(recording, tmp_path):
    """Ours have their names: what a file says that they are does not count."""
    path = tmp_path / "false.phlox"
    path.write_bytes(recording.read_bytes())
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript("DROP VIEW function_self; CREATE VIEW function_self AS SELECT 'false' AS qualified_name")
    names = {row["qualified_name"] for row in ask(path, "SELECT qualified_name FROM function_self")["rows"]}
    assert "<module>" in names and "false" not in names
    assert phlox("query", path, "SELECT * FROM main.function_self").returncode == USAGE


@pytest.mark.parametrize("sql", ["CREATE TRIGGER t AFTER INSERT ON meta BEGIN SELECT 1; END", "CREATE VIEW own AS SELECT 1",
                                 "CREATE TABLE own (a INTEGER, b INTEGER AS (a + 1))", "CREATE VIRTUAL TABLE own USING fts5(a)"])
def test_what_other_readers_refuse_is_refused(recording, tmp_path, sql):
    path = tmp_path / "own.phlox"
    path.write_bytes(recording.read_bytes())
    with contextlib.closing(sqlite3.connect(path)) as db:
        try:
            db.execute(sql)
        except sqlite3.OperationalError as error:
            pytest.skip(str(error))
        db.commit()
    done = phlox("query", path, "SELECT 1 FROM sample")
    assert done.returncode == INPUT and "is damaged" in done.stderr
    assert done.stderr == phlox("report", path).stderr


def test_wrong_calls(recording, tmp_path):
    assert phlox("query").returncode == USAGE
    assert phlox("query", recording).returncode == USAGE
    assert phlox("query", "--rows", 0, recording, "SELECT 1").returncode == USAGE
    assert phlox("query", tmp_path / "none.phlox", "SELECT 1").returncode == INPUT
    assert phlox("query", "/etc/passwd", "SELECT 1").returncode == INPUT


def test_list_as_json(busy):
    done = phlox("list", "--json")
    found = json.loads(done.stdout)
    check_schema(found, json.loads((ROOT / "docs/json/list.schema.json").read_text()))
    mine = next(row for row in found["processes"] if row["pid"] == busy.pid)
    assert mine["parent"] == os.getpid() and "def hot" in mine["command_line"]
    assert subprocess.run([PHLOX, "list"], capture_output=True, text=True).stdout.startswith("    PID")
