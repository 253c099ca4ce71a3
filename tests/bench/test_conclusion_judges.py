"""The judges of the section `conclusions`: each is right on what is true, and each can say wrong and silent."""
import copy
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "bench"))

from harness import conclusion_cases, conclusion_judges as judges  # noqa: E402
from harness.conclusion_judges import RIGHT, SILENT, WRONG  # noqa: E402


def amount(seconds, share):
    return {"weight": seconds * 1e9, "share": share, "low": max(0, share - 0.02), "high": min(1, share + 0.02)}


def function(name, own, share, total=None):
    return {"name": name, "self": amount(own, share), "total": amount(total or own, share)}


def report(*functions):
    return {"functions": list(functions), "functions_by_total": list(functions), "functions_on_all_stacks": [], "lines": [], "findings": [], "waits_exact": True, "waits": [], "total": sum(row["self"]["weight"] for row in functions),
            "left_out": {"places": []}, "elapsed_ns": 4e9, "quality": {"numbers": {"rate_reached_hz": 200}}, "processes": [{"pid": 1}],
            "threads": [{"name": "main", "pid": 1, "cpu_ns": 2e9, "busiest_function": "burn", "states_ns": {"running": 2e9, "collecting": 1e9}}], "ended_waits": []}


@pytest.fixture
def evidence():
    burn, nap = function("burn", 2, 0.5), function("f.<locals>.nap", 2, 0.5)
    shown = report(burn, nap)
    shown["findings"] = [{"kind": "hot_function", "text": "100 % of the CPU time is spent in burn itself", "names": {"function": "burn"}}]
    shown["ended_waits"] = [{"name": "nap", "waits": 100, "ended_by": "Thread giver (7)"}]
    rows = [{"name": "burn", "self": 2e9, "total": 2e9}, {"name": "f.<locals>.nap", "self": 2e9, "total": 2e9}]
    return {"truth": {"parts": {"burn": {"wall": 2.0, "cpu": 2.0, "count": 1}, "nap": {"wall": 2.0, "cpu": 0.0, "count": 1}}, "cpu": 2.0, "pid": 1, "children": 7.0, "collector": 1.0},
            "record": "", "report": "the program waits: nap\n  50.0 % ± 2.0  burn\nsh (9), the garbage collector", "json": shown, "all": copy.deepcopy(shown), "cpu": report(burn), "cpus": 2,
            "page": {"wall": rows, "cpu": rows[:1], "headline": {"name": "burn", "cpu": 2e9}}, "spans": {"blocked": 0.0}, "diff": "4.0 s became 2.0 s", "diff_json": {"functions": [{"name": "burn", "self": {"verdict": "shrank"}}]}}


# The claim, and what makes it false; what makes it silent, where it can be.
def says_pattern(e):
    e["report"] = ""


def says_never(e):
    e["record"] = "native code"


def native_line(e):
    e["json"]["lines"] = [{"name": "__futex_wait", "file": "futex-internal.c"}]


def cpu_to_sleeper(e):
    e["cpu"]["functions_by_total"].append(function("nap", 0.5, 0.2))


def cpu_on_page(e):
    e["page"]["cpu"][0] = dict(e["page"]["cpu"][0], total=1.0e9)


def longer(e):
    e["all"]["functions_by_total"][1]["total"]["weight"] = 3e9


def no_row(e):
    e["all"]["functions_by_total"].pop()
    e["all"]["functions"].pop()


def leads(e):
    e["json"]["functions"][0]["name"] = "get"


def in_a_finding(e):
    e["json"]["findings"][0]["text"] = "8 threads stand in get (queue.py)"


def on_page(e):
    e["page"]["wall"][0] = dict(e["page"]["wall"][0], name="Queue.get")


def left_out(e):
    e["json"]["left_out"]["places"] = [{"name": "nap", "wall_ns": 1e9}]


def not_shown(e):
    e["json"]["functions_by_total"][1]["total"]["weight"] = 1e9


def other_hottest(e):
    e["cpu"]["functions"][0]["name"] = "nap"


def other_finding(e):
    e["json"]["findings"][0]["names"]["function"] = "nap"


def other_on_page(e):
    e["page"]["cpu"][0] = dict(e["page"]["cpu"][0], name="nap")


def other_headline(e):
    e["page"]["headline"]["name"] = "EpollSelector.select"


def sleeper_busiest(e):
    e["json"]["threads"][0]["busiest_function"] = "nap"


def none_busiest(e):
    e["json"]["threads"][0]["busiest_function"] = ""


def by_a_stranger(e):
    e["json"]["ended_waits"].append({"name": "nap", "waits": 1, "ended_by": "true (4711)"})


def by_nobody(e):
    e["json"]["ended_waits"] = []


def strangers(e):
    e["record"] = "other programs used 90.7 % of the CPUs"


def collected_less(e):
    e["all"]["threads"][0]["states_ns"]["collecting"] = 1e8


def below_nothing(e):
    e["json"]["functions"][1]["self"]["low"] = -0.1


def next_to_share(e):
    e["json"]["lines"] = [dict(function("x", 1, 0.5), self=dict(amount(1, 0.5), low=0.6))]


def in_words(e):
    e["report"] = "  26.4 %  ± 49.3  stall"


def less_cpu(e):
    e["all"]["threads"][0]["cpu_ns"] = 1.5e9


def runs_more(e):
    e["all"]["threads"][0]["states_ns"]["running"] = 2.5e9


def page_differs(e):
    e["page"]["wall"][0] = dict(e["page"]["wall"][0], self=1.9e9)


def too_few(e):
    e["record"] = "9 samples say nothing about where time goes"


def empty_rows(e):
    e["spans"]["blocked"] = 0.05


def denied(e):
    e["diff"] = "No difference beyond noise in 392 functions."


def called_noise(e):
    e["diff_json"]["functions"][0]["self"]["verdict"] = "noise"


def undecided(e):
    e["diff_json"]["functions"][0]["self"]["verdict"] = "inconclusive"


def no_seconds(e):
    e["diff"] = "burn -20 points"


CLAIMS = [
    (judges.says("waits: nap"), [], [says_pattern]),
    (judges.never("native code"), [says_never], []),
    (judges.never_a_place("futex-internal"), [native_line], []),
    (judges.cpu("nap"), [cpu_to_sleeper], []),
    (judges.cpu("burn"), [cpu_on_page], []),
    (judges.wall("nap"), [longer], [no_row]),
    (judges.idle("get"), [leads, in_a_finding, on_page], []),
    (judges.at_work("nap"), [left_out, not_shown], []),
    (judges.hottest("burn"), [other_hottest, other_finding, other_on_page, other_headline], []),
    (judges.busiest_thread("burn"), [sleeper_busiest], [none_busiest]),
    (judges.waker("nap", "giver"), [by_a_stranger], [by_nobody]),
    (judges.own_children, [strangers], [says_pattern]),
    (judges.collecting, [collected_less], [says_pattern]),
    (judges.intervals, [below_nothing, next_to_share, in_words], []),
    (judges.account, [less_cpu], []),
    (judges.running, [runs_more], []),
    (judges.one_answer, [page_differs], []),
    (judges.not_too_few, [too_few], []),
    (judges.no_empty_blocks, [empty_rows], []),
    (judges.changed("burn"), [denied, called_noise], [undecided]),
    (judges.whole_first, [], [no_seconds]),
]


@pytest.mark.parametrize("claim", [claim for claim, _, _ in CLAIMS], ids=lambda claim: claim.__qualname__.split(".")[0])
def test_what_is_true_is_right(evidence, claim):
    assert claim(evidence)[0] == RIGHT, claim(evidence)


@pytest.mark.parametrize("claim, change, verdict", [(claim, change, verdict) for claim, wrong, silent in CLAIMS for verdict, changes in ((WRONG, wrong), (SILENT, silent))
                                                    for change in changes], ids=lambda value: getattr(value, "__name__", ""))
def test_what_is_false_or_missing_is_seen(evidence, claim, change, verdict):
    change(evidence)
    assert claim(evidence)[0] == verdict, claim(evidence)


def test_a_waker_is_wrong_if_the_wait_had_none(evidence):
    assert judges.nobody("nap")(evidence)[0] == WRONG
    by_nobody(evidence)
    assert judges.nobody("nap")(evidence)[0] == RIGHT


def test_equal_programs_reported_as_different_are_wrong(evidence):
    assert judges.nothing_changed(evidence)[0] == WRONG
    called_noise(evidence)
    assert judges.nothing_changed(evidence)[0] == RIGHT


def test_a_claim_that_cannot_be_asked_is_wrong_and_the_worst_claim_is_the_program(evidence):
    del evidence["cpu"]
    assert judges.judged(evidence, [judges.cpu("burn"), judges.account])[0][1] == WRONG
    assert judges.of_all([("a", RIGHT, ""), ("b", SILENT, "")]) == SILENT
    assert judges.of_all([("a", SILENT, ""), ("b", WRONG, "")]) == WRONG


def test_there_are_forty_programs_and_each_has_a_claim_of_its_own():
    names = [case.name for case in conclusion_cases.CASES]
    assert len(set(names)) == len(names) >= 40
    assert all(case.claims for case in conclusion_cases.CASES)
