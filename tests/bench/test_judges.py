"""The judges of the benchmarks: what they call impossible, and how they count."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "bench"))

from harness import native, possible, statistics, tables, target  # noqa: E402


def test_whole_stacks_of_one_family_are_possible():
    assert possible.families(["<module>", "measure", "work", "a0", "a1", "a2"])
    assert possible.families(["<module>", "measure"])
    assert possible.families(["<module>", "work", "b0", "b1", "b2g", "b3gl"])
    assert possible.families(["_bootstrap", "_bootstrap_inner", "run", "run", "rounds", "a0", "a1"])


def test_mixed_families_gaps_and_missing_roots_are_impossible():
    assert not possible.families(["<module>", "work", "a0", "b1"])
    assert not possible.families(["<module>", "work", "a0", "a2"])
    assert not possible.families(["<module>", "work", "a1"])
    assert not possible.families(["work", "a0", "a1"])
    assert not possible.families(["<module>", "work", "a0", "measure"])
    assert not possible.families([])


def test_letters_have_to_nest():
    assert not possible.families(["<module>", "work", "b0", "b1", "b2e", "b3gl"])


def test_a_serial_is_one_for_the_whole_stack():
    assert possible.serial(["<module>", "f_17_0", "f_17_1"]) == 17
    assert possible.serial(["<module>", "by_exec"]) is None
    assert possible.serial(["<module>", "f_17_0", "f_18_1"]) == -1
    assert possible.serial(["<module>", "f_17_1"]) == -1


def test_variation_of_equal_counts_is_none_and_of_different_leaves_all():
    assert statistics.variation({"x": 30, "y": 70}, {"x": 300, "y": 700})[0] < 1e-9
    assert statistics.variation({"x": 1}, {"y": 1})[0] == 1


def test_bootstrap_holds_the_mean():
    value, low, high = statistics.bootstrap([1.0, 1.1, 0.9, 1.0, 1.05, 0.95])
    assert low <= value <= high
    assert abs(value - 1) < 1e-9


def test_nothing_seen_is_bounded_not_zero():
    assert 0 < statistics.upper_bound_of_none(300000) < 1.1e-5


def test_runs_on_a_slower_host_are_a_row_of_their_own():
    def run(alone, ratios, rate=1000, name="forest.py", error=""):
        row = {"tool": "phlox", "python": "3.12", "user": "root", "target": name, "rate": rate, "error": error}
        return (row, []) if error else ({**row, "alone": alone, "samples_a_second": 10.0, "cpu_us_a_sample": 1.0}, ratios)
    runs = [run(20, [1.02] * 5), run(15, [1.1] * 5), run(19, [1.04] * 5), run(100, [1.03] * 5, name="dataflow.py"), run(0, [], 100, error="gone")]
    rows = {(row["target"], row["rate"], row.get("host")): row for row in native.by_speed(runs)}
    assert set(rows) == {("forest.py", 1000, "full speed"), ("forest.py", 1000, "slower"), ("dataflow.py", 1000, "full speed"), ("forest.py", 100, None)}
    fast, slow = rows["forest.py", 1000, "full speed"], rows["forest.py", 1000, "slower"]
    assert (fast["runs"], fast["pairs"], fast["alone"]) == (2, 10, 19.5) and 1.02 < fast["slow_down"] < 1.04
    assert (slow["runs"], slow["pairs"]) == (1, 5) and abs(slow["slow_down"] - 1.1) < 1e-9
    gone = rows["forest.py", 100, None]
    assert (gone["error"], gone["runs"]) == ("gone", 1)


def test_the_interpreters_of_a_list_are_known_by_version_and_build(tmp_path, monkeypatch):
    lines = [("sid-3.14", "/sid", "sid", "3.14.10", "-"), ("standalone-3.14.6", "/standalone", "standalone", "3.14.6", "-"),
             ("3.13t", "/free", "3.13t", "3.13.5", "t"), ("debian-3.9-dbg", "/debug", "debian", "3.9.2", "d")]
    (tmp_path / "pythons.list").write_text("".join("\t".join(line) + "\n" for line in lines))
    monkeypatch.setenv("PHLOX_PYTHONS", str(tmp_path / "pythons.list"))
    monkeypatch.setenv("HOME", str(tmp_path))  # no pyenv here
    assert target.find_pythons(None) == {"3.14": "/standalone", "3.13t": "/free"}
    assert target.find_pythons(["3.12=/mine"]) == {"3.12": "/mine"}


def test_results_stored_under_a_name_are_kept_next_to_the_rest():
    stored = {"command": "c", "machine": "m", "date": "d", "load": "0", "data": {"slow_down": []}}
    page = tables.document({"cost@other-Pythons": stored, "cost": stored})
    assert page.index("## Cost to the target\n") < page.index("## Cost to the target: other Pythons\n")
