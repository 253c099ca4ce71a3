"""docs/benchmarks.md and its pictures: they say what is stored, and nothing else."""
import copy
import math
import os
import re
import sys
import xml.etree.ElementTree as xml

import pytest

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "bench"))

import run  # noqa: E402
from harness import crowds, imports, pictures, requests, stored, summary, tables  # noqa: E402

PAGE = os.path.join("docs", "benchmarks.md")
NUMBER = re.compile(r"(?<![A-Za-z])\d[\d,]*(?:\.\d+)*")
# What says which row it is, and not what was measured.
NAMES = {"python", "target", "tool", "user", "rate", "depth", "processes", "threads", "nap", "recorded", "browser", "command", "machine", "date", "load"}
# Of the words themselves: what a slow-down of 1.05 means, the two levels of confidence, "1 in ...", and how the bench is set up.
WORDS = {"1", "1.05", "95", "99", str(summary.QUIET), str(crowds.RATE), str(requests.RATE), str(imports.MOST_SECONDS), summary.TACHYON_PYTHON}


@pytest.fixture(scope="module")
def results():
    return stored.load(run.RESULTS, run.SECTIONS)


def numbers(text):
    return [found.rstrip(",") for found in NUMBER.findall(text)]


def named(value, key=""):
    """The numbers of all that names a row."""
    if isinstance(value, dict):
        return set().union(*(named(one, name) for name, one in value.items()))
    if isinstance(value, list):
        return set().union(*(named(one, key) for one in value))
    return set(numbers("{:,}".format(value) if isinstance(value, int) else str(value))) if key in NAMES else set()


def counts(results):
    """How many rows, runs and versions there are: what changes with the results, but not with a measured number."""
    families = [row for name, one in results.items() if name.startswith("truth") for row in one["data"]["families"]]
    claims = [verdict for row in results["conclusions"]["data"]["conclusions"] for _, verdict, _ in row["claims"]]
    found = {len({row["python"] for row in families if row["tool"] == tool}) for tool in (stored.KERNEL, stored.OUTSIDE)}
    found |= {sum("tv" in row for row in families), len(claims), len(results), sum(float(one["load"].split()[0]) > summary.QUIET for one in results.values())}
    found |= {claims.count(kind) for kind in ("right", "silent", "wrong")}
    found.add(sum(not one.get("commit") for one in results.values()))
    found |= {len(results["conclusions"]["data"]["conclusions"]), len(results["services"]["data"]["services"]), len(results["kernel"]["data"]["in_turn"])}
    found.add(sum(row["profiler"] == stored.OUTSIDE for name, one in results.items() if name.startswith("requests") for row in one["data"]["rows"]))
    return {str(count) for count in found}


def changed(value, key=""):
    """Every measured number is another; their order is the same, and that of their ratios."""
    if isinstance(value, dict):
        return {name: changed(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [changed(one, key) for one in value]
    if key in NAMES or isinstance(value, (bool, str)) or not stored.is_number(value):
        return value
    other = 3.7 * math.copysign(abs(value) ** 1.1, value)
    return int(other) + 3 if isinstance(value, int) else other


def test_the_documents_say_what_is_stored():
    for path, text in run.documents().items():
        with open(os.path.join(ROOT, path)) as file:
            assert file.read() == text, path + ": bench/run.py --document-only writes it anew"


def test_no_number_of_the_page_is_typed_by_hand(results):
    before, after = (" ".join(summary.document(one).split()) for one in (results, changed(results)))
    assert NUMBER.sub("#", before) == NUMBER.sub("#", after)
    kept = {a for a, b in zip(numbers(before), numbers(after)) if a == b}
    assert kept - named(results) - counts(results) - WORDS == set()


def test_no_number_of_the_pictures_is_typed_by_hand(results):
    for before, after in zip(pictures.draw(results).values(), pictures.draw(changed(results)).values()):
        both = [{words for words in texts(one) if re.search(r"\d \(|ms|µs: | of \d|s$", words)} for one in (before, after)]
        assert both[0] and {words for words in both[0] & both[1] if numbers(words) and not words.endswith("frames")} <= headings(before)


def headings(svg):
    return {element.text for element in xml.fromstring(svg).iter() if element.get("class") in ("head", "note")}


def texts(svg):
    return [element.text for element in xml.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_the_page_is_short_and_has_its_pictures(results):
    page = summary.document(results)
    assert len(page.splitlines()) <= 150
    assert set(re.findall(r"!\[[^\]]+\]\(images/([^)]+)\)", page)) == set(pictures.PICTURES)
    assert all(len(line) <= 100 or line.startswith(("|", "!")) for line in page.splitlines())


def test_every_command_to_repeat_is_one_that_the_bench_takes(results):
    import shlex
    commands = re.findall(r"`make bench BENCH='([^`]*)'`", summary.document(results))
    assert len(commands) == len({name for name in results if "@" not in name} - set(summary.NOT_HERE))
    for words in commands + [summary.repeat(one["command"])[len("make bench BENCH='"):-1] for one in results.values()]:
        options = run.parser().parse_args(shlex.split(words))
        assert options.sections and set(options.sections) <= set(run.SECTIONS)


def test_names_of_several_words_are_kept_together():
    assert summary.repeat("bench/run.py truth --only hard 50 --phlox a/b --store-as in the kernel, others") == (
        "make bench BENCH='truth --only \"hard 50\" --store-as \"in the kernel, others\"'")
    assert summary.repeat("bench/run.py truth --only 'hard 50' --no-peers") == "make bench BENCH='truth --only \"hard 50\" --no-peers'"


def test_no_text_of_a_picture_leaves_it(results):
    for svg in pictures.draw(results).values():
        width, height = (float(size) for size in xml.fromstring(svg).get("viewBox").split()[2:])
        for element in xml.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):
            x, wide = float(element.get("x")), len(element.text) * pictures.CHARACTER
            left = {"start": x, "middle": x - wide / 2, "end": x - wide}[element.get("text-anchor")]
            assert left >= 0 and left + wide <= width and 10 <= float(element.get("y")) <= height - 4, element.text


@pytest.mark.parametrize("section", sorted({name.partition("@")[0] for name in os.listdir(run.RESULTS) if name.endswith(".json")} | {""}))
def test_what_is_not_stored_is_left_out(results, section):
    section = section.removesuffix(".json")
    rest = {name: one for name, one in results.items() if section and name.partition("@")[0] != section}
    page = summary.document(rest)
    assert "*(`%s`" % section not in page and "nan" not in page
    assert ("**Left out, because no result is stored:**" in page) == (section not in summary.NOT_HERE)
    for svg in pictures.draw(rest).values():
        xml.fromstring(svg)
    tables.document(rest)


def test_an_impossible_stack_is_reported(results):
    worse = copy.deepcopy(results)
    worse["truth"]["data"]["families"][0]["impossible"] = 7
    assert re.search(r"\*\*Stacks, read from outside:\*\* 7 of", summary.document(worse))
    assert "7 of" in pictures.draw(worse)["bench-truth.svg"]


def test_a_peer_that_is_better_is_named():
    row = summary.Row("x", "cost", {stored.OUTSIDE: summary.Cell("1.5", 1.5, 1.4, 1.6), "austin": summary.Cell("1.1", 1.1, 1.0, 1.2),
                                    "py-spy": summary.Cell("1.4", 1.4, 1.3, 1.5), "Tachyon": summary.Cell("2", 2, 1.9, 2.1)})
    assert summary.better_peers([row]) == (["x: austin 1.1; Phlox 1.5"], ["x: py-spy"])


def test_one_in_claims_less_than_the_rate():
    from harness.claims import one_in
    assert [one_in(rate) for rate in (1 / 1999, 1 / 990123, 0.3)] == ["1 in 1,900", "1 in 990,000", "1 in 3"]


