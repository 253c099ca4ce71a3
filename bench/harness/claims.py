"""The project's claims about Phlox, each a sentence computed from the stored results (summary.py prints
them). A claim is a function of the stored results: it returns its text and the runs that it comes from, or
raises Missing if nothing was measured."""
from . import crowds, requests
from .stored import KERNEL, OUTSIDE, Missing, beyond_chance, impossible, version_key

RATE = 1000  # Hz: the rate at which costs are claimed


def many(value):
    return "{:,.0f}".format(value)


def shown(value, digits):
    return "{:,.{}f}".format(value, digits)


def interval(row, digits=3, value="slow_down", unit=""):
    """The value with its 95 % interval."""
    middle, low, high = (shown(row[key], digits) for key in (value, "low", "high"))
    return "%s%s (%s to %s)" % (middle, unit, low, high)


def one_in(rate):
    """A rate as "1 in 1,500,000": two digits, rounded towards the weaker claim."""
    whole = int(1 / rate)
    unit = 10 ** max(0, len(str(whole)) - 2)
    return "1 in " + many(whole // unit * unit)


def pythons(rows):
    found = sorted({row["python"] for row in rows}, key=version_key)
    return "CPython " + found[0] if len(found) == 1 else "%d versions of CPython, %s to %s" % (len(found), found[0], found[-1])


def truth_runs(stored, tool):
    """This tool's rows in every run of section truth, and those runs."""
    names = [name for name in stored.names("truth") if any(row["tool"] == tool for row in stored.data(name)["families"])]
    return stored.rows(names, "families", tool=tool), names


def stacks(stored, tool, how):
    rows, names = truth_runs(stored, tool)
    hits, samples, _, high = impossible(rows)
    return "**Stacks, %s:** %s of %s stacks are impossible. With 95 %% confidence, fewer than %s are (%s)." % (
        how, many(hits), many(samples), one_in(high), pythons(rows)), names


def stacks_kernel(stored):
    return stacks(stored, KERNEL, "sampled in the kernel")


def stacks_outside(stored):
    return stacks(stored, OUTSIDE, "read from outside")


def names_of_the_moment(stored):
    names = stored.names("truth")
    rows = stored.rows(names, "fresh")
    wrong, named, _, high = impossible(rows, "wrong", "named")
    return "**Names:** of %s samples of functions that are made all the time, %s name one of another moment; with 95 %% confidence, fewer than %s do." % (
        many(named), many(wrong), one_in(high)), [name for name in names if stored.data(name)["fresh"]]


def shares(stored):
    names = stored.names("truth")
    factors, middle = beyond_chance(stored.rows(names, "families"))
    return ("**Shares of functions** were compared with the same process stopped for each sample, %s times. The difference (half the sum over all functions) is %.2f times what chance alone "
            "gives in the median, %.2f times at most." % (many(len(factors)), middle, factors[-1])), names


def conclusions(stored):
    rows = stored.rows(["conclusions"], "conclusions")
    verdicts = [verdict for row in rows for _, verdict, _ in row["claims"]]
    return "**Conclusions:** of %s statements that Phlox makes about %s programs with a known truth, %s are right, %s are left out and %s are wrong." % tuple(
        many(value) for value in (len(verdicts), len(rows), *(verdicts.count(kind) for kind in ("right", "silent", "wrong")))), ["conclusions"]


def services(stored):
    rows = stored.rows(["services"], "services")
    whole = max(abs(row["phlox_s"] / row["kernel_s"] - 1) for row in rows)
    worst = max(row["worst"] for row in rows if row["worst"] is not None)
    return "**CPU time** of %s services (%s) differs from the kernel's account by at most %.1f %%, and of any single process by at most %.1f %%." % (
        many(len(rows)), ", ".join(row["service"] for row in rows), 100 * whole, 100 * worst), ["services"]


def slow_down_kernel(stored):
    row = stored.one("kernel", "in_turn", tool=KERNEL, target="depth 50")
    rest = [r for r in stored.rows(["kernel"], "in_turn") if not r["error"]]
    worst = max(rest, key=lambda one: one["slow_down"]["slow_down"])
    return ("**Slow-down, sampled in the kernel:** %s at %s Hz for a program that computes, %s Python frames deep (CPython %s). The worst of %s programs is `%s`%s: %s." % (
        interval(row["slow_down"]), many(row["rate"]), row["target"].split()[1], row["python"], many(len(rest)), worst["target"],
        ", which leaves its CPU as often as it can" if worst["target"] == "switches" else "", interval(worst["slow_down"]))), ["kernel"]


def slow_down_outside(stored):
    row = stored.one("cost", "slow_down", tool=OUTSIDE, python=stored.usual(), user="root", rate=RATE)
    names = stored.names("cost")
    rest = [r["slow_down"] for r in stored.rows(names, "slow_down", tool=OUTSIDE, user="root", rate=RATE) if not r["error"]]
    return "**Slow-down, read from outside:** %s at %s Hz (CPython %s), and %.3f to %.3f over all versions measured." % (
        interval(row), many(RATE), row["python"], min(rest), max(rest)), names


def tracers(stored):
    row = stored.one("cost", "slow_down", tool="python -m cProfile")
    return "**For comparison,** `python -m cProfile` makes a program of the same kind take %s times as long." % interval(row, 1), ["cost"]


def server(stored):
    """The run with most pairs, and how far the others differ from it."""
    found = [(name, row) for name in stored.names("requests") for row in stored.rows([name], "rows") if row["profiler"] == OUTSIDE]
    if not found:
        raise Missing("requests")
    row = max((one for _, one in found), key=lambda one: one["rounds"])
    lost = [one["lost"] for _, one in found]
    return ("**A web server** (gunicorn) answers %.2f %% (%.2f to %.2f) fewer requests per second while it is recorded at %s Hz with default options (CPython %s, %s pairs). "
            "Over all %s measurements it is %.2f to %.2f %%." % (100 * row["lost"], 100 * row["low"], 100 * row["high"], many(requests.RATE), row["python"], many(row["rounds"]),
                                                           many(len(lost)), 100 * min(lost), 100 * max(lost))), [name for name, _ in found]


def recorder(stored):
    kernel, outside = (stored.one("kernel", "recorder", tool=tool, depth=50) for tool in (KERNEL, OUTSIDE))
    return "**The recorder's own CPU:** %.1f µs for each sample taken in the kernel and %.1f µs for each read from outside, at %s Hz and a depth of %s." % (
        kernel["cpu_us_a_sample"], outside["cpu_us_a_sample"], many(kernel["rate"]), many(kernel["depth"])), ["kernel"]


def first_sample(stored):
    row = stored.one("at-once", "at_once", python=stored.usual(), user="root")
    return "**The first sample**, read from outside, is taken %s after `phlox record` starts, %.1f ms at worst (median of %s starts, CPython %s)." % (
        interval(row, 1, "median_ms", " ms"), row["worst_ms"], many(row["starts"]), row["python"]), ["at-once"]


def starting(stored):
    kernel, outside = (stored.one("start", "one", mode=mode) for mode in ("kernel", "outside"))
    return ("**A very short recording** of one process costs %.3f s of CPU and %.1f MiB in the kernel, with its first sample after %.0f ms; from outside %.3f s, %.1f MiB and %.0f ms "
            "(median of %s starts, CPython %s)." % (kernel["cpu_s"], kernel["rss_mib"], kernel["first_ms"], outside["cpu_s"], outside["rss_mib"], outside["first_ms"],
                                                   many(kernel["runs"]), kernel["python"])), ["start"]


def threads(stored):
    row = stored.one("crowds", "threads", rate=RATE)
    count = sum(int(word) for word in row["target"].split()[1:3]) + 1
    return "**%s threads in one process** are all sampled %s times per second at %s Hz, with a slow-down of %s." % (
        many(count), many(row["rounds_a_second"]), many(row["rate"]), interval(row)), ["crowds"]


def idle(stored):
    rows = [row for row in stored.rows(["crowds"], "idle") if not row["error"]]
    parts = ["%.1f %% of one CPU for %s with %s each" % (100 * row["cpu"], counted(row["recorded"], "process"), counted(row["threads"], "thread")) for row in rows]
    if not parts:
        raise Missing("idle programs")
    return "**Programs that hardly run** cost the recorder %s, at %s Hz." % (" and ".join(parts), many(crowds.RATE)), ["crowds"]


def counted(count, what):
    return "%s %s%s" % (many(count), what, "" if count == 1 else "es" if what.endswith("s") else "s")


def host(stored):
    row = stored.one("kernel", "host", tool="phlox record --all --way kernel")
    return "**A whole host** of %s Python processes, sampled in the kernel at %s Hz, costs the recorder %.1f %% of one CPU, and the busy process a slow-down of %s." % (
        many(row["recorded"]), many(row["rate"]), 100 * row["recorder_cpu"], interval(row)), ["kernel"]


def ten_minutes(stored):
    row = stored.one("ten-minutes", "size")
    return "**%s seconds at %s Hz**, with another stack at every sample, make a file of %.1f MB. The recorder needs %.1f MiB of memory." % (
        many(row["seconds"]), many(RATE), row["bytes"] / 1e6, row["rss_mib"]), ["ten-minutes"]


def opening(stored):
    largest = max(stored.rows(["page"], "recordings"), key=lambda row: row["stretches"])
    row = next((r for r in largest["open"] if r["tool"] == OUTSIDE and "median_ms" in r), None)
    if row is None:
        raise Missing("the page of the largest recording")
    return "**The page** of a recording with %s rows and %s threads (%.1f MB) is painted after %s in Chromium." % (
        many(largest["stretches"]), many(largest["threads"]), largest["page_bytes"] / 1e6, interval(row, 0, "median_ms", " ms")), ["page"]


def importing(stored):
    large = stored.data("import")["large"]
    if not large:
        raise Missing("the import of a large file")
    return "**A `perf.data` of %s MB** is imported in %.1f s with %.0f MiB." % (many(large["mb"]), large["seconds"], large["mib"]), ["import"]


CLAIMS = {"Truth": [stacks_kernel, stacks_outside, names_of_the_moment, shares, services, conclusions],
          "Cost": [slow_down_kernel, slow_down_outside, tracers, server, recorder, first_sample, starting],
          "Scale": [threads, idle, host, ten_minutes, opening, importing]}
