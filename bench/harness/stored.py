"""The contents of bench/results, for summary.py and pictures.py. Measures nothing."""
import glob
import json
import math
import os
import re

from .statistics import median, upper_bound_of_none, wilson

OUTSIDE, KERNEL = "phlox", "phlox --way kernel"  # names in rows of Phlox reading from outside, and inside the kernel
PEERS = ("py-spy", "austin", "Tachyon --blocking", "Tachyon")


class Missing(Exception):
    """No stored result answers this."""


def load(folder, sections):
    """{"truth": ..., "truth@other-Pythons": ...}: every stored run of these sections, by file name."""
    results = {}
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "*.json"))):
        name = os.path.basename(path)[:-len(".json")]
        if name.partition("@")[0] in sections:
            with open(path) as file:
                results[name] = json.load(file)
    return results


def anchor(name):
    """A run's anchor in tables.md."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", name)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value)


class Stored:
    def __init__(self, results):
        self.results = results

    def data(self, name):
        if name not in self.results:
            raise Missing(name)
        return self.results[name]["data"]

    def names(self, section):
        return [name for name in self.results if name.partition("@")[0] == section]

    def rows(self, names, part, **match):
        """All rows of these runs that match, including failed ones."""
        found = [row for name in names for row in self.data(name).get(part, []) if all(row.get(key) == value for key, value in match.items())]
        if not found:
            raise Missing("%s in %s" % (part, ", ".join(names)))
        return found

    def one(self, name, part, **match):
        """The first row that matches and did not fail."""
        for row in self.rows([name], part, **match):
            if not row.get("error"):
                return row
        raise Missing("%s in %s" % (part, name))

    def usual(self):
        """The Python that peers were measured on, for comparisons; without peers, Phlox's first."""
        for tool in ("py-spy", OUTSIDE):
            for name, part in (("truth", "families"), ("cost", "slow_down"), ("recorder", "cpu"), ("kernel", "beside")):
                try:
                    return self.one(name, part, tool=tool)["python"]
                except Missing:
                    continue
        raise Missing("a Python to compare on")


def impossible(rows, wrong="impossible", of="samples"):
    """(impossible stacks, samples, low, high) over all rows, with the 95 % interval of the rate."""
    hits, samples = sum(row[wrong] for row in rows), sum(row[of] for row in rows)
    if not samples:
        raise Missing("samples")
    if not hits:
        return 0, samples, 0.0, upper_bound_of_none(samples)
    low, high = wilson(hits, samples, 1.96)
    return hits, samples, low, high


def beyond_chance(rows):
    """By row, smallest first: the difference from the stopped process as a multiple of chance alone."""
    found = sorted(row["tv"] / row["tv_chance"] for row in rows if is_number(row.get("tv")) and row.get("tv_chance"))
    if not found:
        raise Missing("differences from a stopped process")
    return found, median(found)


def version_key(version):
    return tuple(int(part) for part in re.findall(r"\d+", version)), version


def failures(results):
    """(run, row) of every row without a result."""
    for name, stored in results.items():
        for row in walk(stored["data"]):
            without = "tool" in row and "slow_down" in row and not isinstance(row["slow_down"], dict) and not is_number(row["slow_down"])
            if row.get("error") or without or "crashed_s" in row:
                yield name, row


def walk(value):
    """Every dictionary in the value."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from walk(one)
