"""What `make fuzz` has executed altogether is added up from what libFuzzer says of each run."""
import json
import pathlib
import subprocess
import sys

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "tools" / "fuzz_ledger.py"
# As libFuzzer writes it: 40 edges by what was gathered before, the last of two new ones at execution 700.
LOG = """INFO: Running with entropic power schedule (0xFF, 100).
#16\tpulse  cov: 30 ft: 60 corp: 8/1Kb exec/s: 0 rss: 50Mb
#20\tINITED cov: 40 ft: 80 corp: 9/1Kb exec/s: 0 rss: 50Mb
#512\tNEW    cov: 41 ft: 85 corp: 10/1Kb lim: 4096 exec/s: 0 rss: 50Mb L: 3/5 MS: 1 CopyPart-
#700\tNEW    cov: 42 ft: 88 corp: 11/1Kb lim: 4096 exec/s: 0 rss: 50Mb L: 3/5 MS: 1 CopyPart-
#900\tREDUCE cov: 42 ft: 88 corp: 11/1Kb lim: 4096 exec/s: 0 rss: 50Mb L: 3/5 MS: 1 CopyPart-
#1024\tpulse  cov: 42 ft: 88 corp: 11/1Kb lim: 4096 exec/s: 0 rss: 50Mb
"""
STATS = "stat::number_of_executed_units: 1500\nstat::peak_rss_mb: 50\n"


def run(tmp_path, text, status=0, flavour=()):
    script = f"import sys; sys.stdout.write({text!r}); sys.exit({status})"
    return subprocess.run([PROGRAM, "run", *flavour, tmp_path / "ledger", tmp_path / "log", "toy_fuzz", sys.executable, "-c", script]).returncode


def rows(tmp_path):
    return [json.loads(line) for line in (tmp_path / "ledger").read_text().splitlines()]


def row_of_table(tmp_path, *names):
    done = subprocess.run([PROGRAM, "table", tmp_path / "ledger", *names], capture_output=True, text=True, check=True)
    return [cell.strip() for cell in done.stdout.splitlines()[2].split("|")[1:-1]]


def test_a_run_is_a_line_of_what_it_executed_and_when_coverage_grew(tmp_path):
    assert run(tmp_path, LOG + STATS) == 0
    [row] = rows(tmp_path)
    assert (row["target"], row["executions"], row["edges_before"], row["edges"], row["last_growth"]) == ("toy_fuzz", 1500, 40, 42, 700)
    assert row["status"] == 0 and row["cpu"] > 0


def test_a_target_that_is_named_and_has_not_run_is_shown(tmp_path):
    run(tmp_path, LOG + STATS)
    assert row_of_table(tmp_path, "other_fuzz") == ["`other_fuzz`", "0", "0", "0.00", "0", "0", "0", "no"]


def test_what_broke_counts_as_far_as_it_came_and_fails(tmp_path):
    assert run(tmp_path, LOG, status=77) == 1
    assert rows(tmp_path)[0]["executions"] == 1024 and rows(tmp_path)[0]["status"] == 77


def test_runs_are_added_up_and_growth_counts_over_all_of_them(tmp_path):
    for text in (LOG + STATS, LOG + STATS, LOG.replace("cov: 41", "cov: 40").replace("cov: 42", "cov: 40") + STATS):
        run(tmp_path, text)
    row = row_of_table(tmp_path)
    assert [row[0], row[1], row[5], row[6], row[7]] == ["`toy_fuzz`", "4,500", "40", "2,200", "no"]


def test_runs_without_the_address_sanitizer_count_apart_and_have_other_edges(tmp_path):
    run(tmp_path, LOG + STATS)
    run(tmp_path, LOG.replace("cov: 4", "cov: 3") + STATS, flavour=["--flavour", "bulk"])
    row = row_of_table(tmp_path)
    assert [row[1], row[2], row[5], row[6]] == ["3,000", "1,500", "42", "2,200"]


def test_enough_is_many_executions_or_hours_with_nothing_new_in_the_last_quarter(tmp_path):
    def judged(**changes):
        run_ = dict(target="toy_fuzz", flavour="asan", executions=1000, edges=40, edges_before=40, last_growth=700, cpu=7200.0, seconds=1.0, status=0)
        (tmp_path / "ledger").write_text(json.dumps(run_ | changes) + "\n")
        return row_of_table(tmp_path)[7]

    assert judged() == "yes, by quiet"
    assert judged(last_growth=800) == "no"
    assert judged(cpu=7100.0) == "no"
    assert judged(cpu=10.0, executions=10**8, last_growth=10**8 - 1) == "yes, by executions"
