"""Numbers with their uncertainty: bootstrap intervals, and total variation with its value by chance alone."""
import math
import random


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    if not ordered:
        return float("nan")
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def mean(values):
    return sum(values) / len(values) if values else float("nan")


def typical_ratio(values, cut=0.1):
    """Geometric mean of ratios without the lowest and the highest tenth: a virtual machine loses whole spans
    to its host."""
    ordered = sorted(math.log(value) for value in values)
    away = int(len(ordered) * cut)
    return math.exp(mean(ordered[away:len(ordered) - away]))


def bootstrap(values, statistic=mean, rounds=4000, level=0.95, seed=1):
    """(estimate, low, high) by resampling whole values (each a pair or a run, not a sample)."""
    chance = random.Random(seed)
    if len(values) < 2:
        estimate = statistic(values) if values else float("nan")
        return estimate, float("nan"), float("nan")
    seen = sorted(statistic([chance.choice(values) for _ in values]) for _ in range(rounds))
    tail = (1 - level) / 2
    return statistic(values), seen[int(tail * rounds)], seen[min(rounds - 1, int((1 - tail) * rounds))]


def shares(counts):
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()} if total else {}


def variation(a, b):
    """Total variation between two sets of counts, and its value by chance alone for independent samples of these sizes."""
    p, q = shares(a), shares(b)
    n, m = sum(a.values()), sum(b.values())
    if not n or not m:
        return float("nan"), float("nan")
    names = set(p) | set(q)
    seen = sum(abs(p.get(x, 0) - q.get(x, 0)) for x in names) / 2
    pooled = [(a.get(x, 0) + b.get(x, 0)) / (n + m) for x in names]
    chance = sum(math.sqrt(2 / math.pi * r * (1 - r) * (1 / n + 1 / m)) for r in pooled) / 2
    return seen, chance


def wilson(hits, trials, z=2.5758):
    """Interval of a share (99 % by default) from `hits` of `trials`."""
    if not trials:
        return 0.0, 1.0
    share = hits / trials
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials)) / (1 + z * z / trials)
    return middle - half, middle + half


def upper_bound_of_none(trials, level=0.95):
    """The upper bound of the rate when none of `trials` is a hit."""
    return 1 - (1 - level) ** (1 / trials) if trials else 1.0
