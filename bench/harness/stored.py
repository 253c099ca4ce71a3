"""What bench/results holds, for those who write about it: summary.py and pictures.py. It measures nothing."""
import glob
import json
import math
import os
import re

from .statistics import median, upper_bound_of_none, wilson

OUTSIDE, KERNEL = "phlox", "phlox --way kernel"  # how rows name Phlox that reads from outside, and inside the kernel
PEERS = ("py-spy", "austin", "Tachyon --blocking", "Tachyon")


class Missing(Exception):
    """Nothing is stored that answers this."""


def load(folder, sections):
    """{"truth": ..., "truth@other-Pythons": ...}: every stored run of these sections, by the name of its file."""
    results = {}
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "*.json"))):
        name = os.path.basename(path)[:-len(".json")]
        if name.partition("@")[0] in sections:
            with open(path) as file:
                results[name] = json.load(file)
    return results


def anchor(name):
    """Of a run in tables.md."""
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
        """All rows of these runs that agree with `match`, those that failed too."""
        found = [row for name in names for row in self.data(name).get(part, []) if all(row.get(key) == value for key, value in match.items())]
        if not found:
            raise Missing("%s in %s" % (part, ", ".join(names)))
        return found

    def one(self, name, part, **match):
        """The first row that agrees with `match` and did not fail."""
        for row in self.rows([name], part, **match):
            if not row.get("error"):
                return row
        raise Missing("%s in %s" % (part, name))

    def usual(self):
        """The Python that peers were measured on, which is the one to compare with; without peers, the first of Phlox's own."""
        for tool in ("py-spy", OUTSIDE):
            for name, part in (("truth", "families"), ("cost", "slow_down"), ("recorder", "cpu"), ("kernel", "beside")):
                try:
                    return self.one(name, part, tool=tool)["python"]
                except Missing:
                    continue
        raise Missing("a Python to compare on")


def impossible(rows, wrong="impossible", of="samples"):
    """(impossible stacks, samples, low, high) of all rows together, with the 95 % interval of the rate."""
    hits, samples = sum(row[wrong] for row in rows), sum(row[of] for row in rows)
    if not samples:
        raise Missing("samples")
    if not hits:
        return 0, samples, 0.0, upper_bound_of_none(samples)
    low, high = wilson(hits, samples, 1.96)
    return hits, samples, low, high


def beyond_chance(rows):
    """How many times as large as by chance alone each row's difference from the stopped process is, the smallest first."""
    found = sorted(row["tv"] / row["tv_chance"] for row in rows if is_number(row.get("tv")) and row.get("tv_chance"))
    if not found:
        raise Missing("differences from a stopped process")
    return found, median(found)


def version_key(version):
    return tuple(int(part) for part in re.findall(r"\d+", version)), version


def failures(results):
    """(run, row) of every row that has no result."""
    for name, stored in results.items():
        for row in walk(stored["data"]):
            without = "tool" in row and "slow_down" in row and not isinstance(row["slow_down"], dict) and not is_number(row["slow_down"])
            if row.get("error") or without or "crashed_s" in row:
                yield name, row


def walk(value):
    """Every dictionary in it."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from walk(one)
