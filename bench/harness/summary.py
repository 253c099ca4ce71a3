"""docs/benchmarks.md: the project's claims, one table against peers, three pictures, and what is not better
or not known. Every number comes from the stored results (stored.py). What was not measured is omitted, and
named at the end. Full tables: tables.py."""
import re
import shlex
import textwrap

from . import imports
from .claims import CLAIMS, RATE, interval, many, shown
from .stored import KERNEL, OUTSIDE, PEERS, Missing, Stored, anchor, failures, impossible, is_number

TABLES = "../bench/results/tables.md"
PICTURES = {"Truth": ("bench-truth.svg", "How many stacks of each profiler never existed, with 95 % intervals"),
            "Cost": ("bench-cost.svg", "How much each profiler slows its target down, with 95 % intervals"),
            "Scale": ("bench-scale.svg", "CPU for each sample by depth of the stack, and how soon the page of a recording is painted")}
TACHYON_PYTHON = "3.15"
QUIET = 0.5  # run.py warns of a load above it


class Cell:
    """A number of the table against peers, with its interval if it has one; lower is better."""

    def __init__(self, text, value=None, low=None, high=None):
        self.text, self.value = text, value
        self.low, self.high = (value if low is None else low), (value if high is None else high)


NOTHING = Cell("–")


def measured(row, value, digits):
    if not is_number(row.get(value)):
        return Cell("failed")
    if value in ("slow_down", "median_ms"):
        return Cell(interval(row, digits, value), row[value], row["low"], row["high"])
    return Cell(shown(row[value], digits), row[value])


def cell(stored, name, part, value, digits, **match):
    try:
        return measured(stored.rows([name], part, **match)[0], value, digits)
    except Missing:
        return NOTHING


class Row:
    """What was measured, in which run, and its cells by tool; `others`: tools without a column."""

    def __init__(self, what, name, cells, others=()):
        self.what, self.name, self.cells, self.others = what, name, cells, list(others)

    def line(self):
        columns = [self.cells.get(tool, NOTHING).text for tool in (KERNEL, OUTSIDE) + PEERS]
        rest = "; ".join("%s: %s" % (tool, one.text) for tool, one in self.others) or NOTHING.text
        return "| [%s](%s#%s) | %s | %s |" % (self.what, TABLES, anchor(self.name), " | ".join(columns), rest)


def of_tools(stored, name, part, value, digits, tools, **match):
    """One cell for each of these tools. Tachyon reads only its own Python; the others use the one that the
    peers were measured on."""
    usual = stored.usual()
    return {tool: cell(stored, name, part, value, digits, tool=tool, **match, **({} if tool.startswith("Tachyon") else {"python": usual})) for tool in tools}


def impossible_row(stored):
    cells = {}
    for tool in (OUTSIDE,) + PEERS:
        match = {} if tool.startswith("Tachyon") else {"python": stored.usual()}
        try:
            rows = stored.rows(["truth"], "families", tool=tool, target="hard 50", rate=RATE, user="root", **match)
        except Missing:
            continue
        if rows[0]["error"]:
            cells[tool] = Cell("failed")
            continue
        hits, samples, low, high = impossible(rows)
        cells[tool] = Cell("%s of %s" % (many(hits), many(samples)), hits / samples, low, high)
    return Row("Impossible stacks, %s Hz" % many(RATE), "truth", cells)


def cost_rows(stored):
    tools = (OUTSIDE,) + PEERS
    for rate in (100, RATE):
        yield Row("Slow-down, %s Hz" % many(rate), "cost", of_tools(stored, "cost", "slow_down", "slow_down", 3, tools, rate=rate, user="root"))
    for depth in (50, 200):
        target = "depth %d" % depth
        cells = of_tools(stored, "kernel", "beside", "slow_down", 3, tools, target=target)
        try:
            cells[KERNEL] = measured(stored.one("kernel", "in_turn", tool=KERNEL, target=target)["slow_down"], "slow_down", 3)
        except Missing:
            pass
        yield Row("Slow-down, %s Hz, depth %s" % (many(RATE), many(depth)), "kernel", cells)


def recorder_rows(stored):
    tools = (OUTSIDE,) + PEERS
    yield Row("CPU of the recorder, µs per sample, depth %s" % many(50), "kernel", of_tools(stored, "kernel", "recorder", "cpu_us_a_sample", 1, (KERNEL,) + tools, depth=50))
    for depth in (50, 1000):
        yield Row("CPU of the recorder, µs per sample, depth %s (run `recorder`)" % many(depth), "recorder", of_tools(stored, "recorder", "cpu", "cpu_us_a_sample", 1, tools, depth=depth, user="root"))
    yield Row("Memory of the recorder, MiB", "kernel", of_tools(stored, "kernel", "recorder", "rss_mib", 1, (KERNEL,) + tools, depth=50))
    yield Row("Memory of the recorder, MiB (run `recorder`)", "recorder", of_tools(stored, "recorder", "cpu", "rss_mib", 1, tools, depth=50, user="root"))


def dump_rows(stored):
    names = {OUTSIDE: "phlox dump", "py-spy": "py-spy dump", "austin": "austin --where"}
    usual = stored.usual()
    cells = {tool: cell(stored, "dump", "dump", "median_ms", 1, tool=name, python=usual) for tool, name in names.items()}
    yield Row("`dump`, ms", "dump", {**cells, "Tachyon": cell(stored, "dump", "dump", "median_ms", 1, tool="Tachyon dump")})
    yield Row("`dump --native`, ms", "native", {tool: cell(stored, "native", "dump", "median_ms", 0, tool=name, target="random forest")
                                                for tool, name in ((OUTSIDE, "phlox dump --native"), ("py-spy", "py-spy dump --native"))})


def import_rows(stored):
    for row in stored.rows(["import"], "rows", way="dwarf"):
        seconds = {who: cost[0] for who, cost in row["costs"].items()}
        texts = {who: ("more than %s" % many(imports.MOST_SECONDS) if value >= imports.MOST_SECONDS else "%.2f" % value) for who, value in seconds.items()}
        others = [(name, Cell(texts[who], seconds[who])) for who, name in (("perf", "perf script"), ("no inline", "perf script --no-inline"), ("hotspot", "Hotspot")) if who in texts]
        ours = Cell("%s (first time %s)" % (texts["phlox"], texts["first"]), seconds["phlox"], seconds["phlox"], seconds["first"])
        yield Row("Import of `perf.data`, %s MB, s" % many(row["mb"]), "import", {OUTSIDE: ours}, others)


def page_rows(stored):
    for one in sorted(stored.rows(["page"], "recordings"), key=lambda recording: recording["stretches"]):
        cells = {row["tool"]: Cell("tab crashed") if "crashed_s" in row else measured(row, "median_ms", 0) for row in one["open"]}
        others = [(tool, found) for tool, found in cells.items() if tool != OUTSIDE]
        yield Row("Page opening, %s rows, ms" % many(one["stretches"]), "page", {OUTSIDE: cells.get(OUTSIDE, NOTHING)}, others)


def comparison(stored, left_out):
    """The rows against peers in which Phlox was measured."""
    rows = []
    for group in (lambda s: [impossible_row(s)], cost_rows, recorder_rows, dump_rows, import_rows, page_rows):
        try:
            for row in group(stored):
                if any(tool in row.cells and row.cells[tool].value is not None for tool in (KERNEL, OUTSIDE)):
                    rows.append(row)
                else:
                    left_out.append(row.what)
        except Missing as missing:
            left_out.append(str(missing))
    return rows


def better_peers(rows):
    """(decided, undecided): where a peer's number is lower than the better one of Phlox's, by whether the
    intervals are disjoint."""
    decided, undecided = [], []
    for row in rows:
        ours = min((row.cells[tool] for tool in (KERNEL, OUTSIDE) if tool in row.cells and row.cells[tool].value is not None), key=lambda one: one.value)
        peers = [(tool, row.cells[tool]) for tool in PEERS if tool in row.cells] + row.others
        lower = [(tool, one) for tool, one in peers if one.value is not None and one.high < ours.low]
        unclear = [tool for tool, one in peers if one.value is not None and one.low <= ours.high and one.high >= ours.low]
        if lower:
            decided.append("%s: %s; Phlox %s" % (row.what, ", ".join("%s %s" % (tool, one.text) for tool, one in lower), ours.text))
        if unclear:
            undecided.append("%s: %s" % (row.what, ", ".join(unclear)))
    return decided, undecided


def truth_limits(stored):
    names = stored.names("truth")
    ours = [row for row in stored.rows(names, "families") if row["tool"] in (KERNEL, OUTSIDE)]
    yield "**Not counted as impossible** are %s samples that Phlox rejected itself, and %s stacks that it marked as cut." % (
        many(sum(row["failed"] for row in ours)), many(sum(row["detached"] for row in ours)))
    rows = [row for row in stored.rows(names, "ordinary") if not row["error"]]
    yield "**In an ordinary program,** %s of %s samples lack the first frame without such a mark." % (
        many(sum(row["impossible"] for row in rows)), many(sum(row["samples"] for row in rows)))
    rows = [row for row in stored.rows(names, "shares") if not row["error"]]
    yield "**Known shares:** in %s of %s runs, all three shares lie in the 99 %% interval; the largest error is %.1f points." % (
        many(sum(row["inside"] for row in rows)), many(sum(row["runs"] for row in rows)), 100 * max(row["worst"] for row in rows))
    rows = [row for row in stored.rows(names, "families") if is_number(row.get("tv"))]
    if rows:
        worst = max(rows, key=lambda row: row["tv"] / row["tv_chance"])
        itself = "the stopped process itself changes by %.2f times chance" % (worst["tv_itself"] / worst["tv_itself_chance"]) if is_number(worst.get("tv_itself")) else "the cause is not known"
        yield "**Shares of functions:** in the worst case (%.2f times chance; `%s`, CPython %s), %s." % (worst["tv"] / worst["tv_chance"], worst["target"], worst["python"], itself)


def cost_limits(stored):
    rows = stored.rows(["speed"], "speed", tool=OUTSIDE, rate=0, error="")
    yield "**Without a limit of the rate**, the slow-down is %s." % " and ".join(
        "%s for the user `%s`" % (interval(row, 2), row["user"]) for row in rows)


def peer_limits(stored):
    pairs = [row["pairs"] for row in stored.rows(["cost"], "slow_down") if row["tool"] in PEERS and "pairs" in row]
    samples = [row["samples"] for row in stored.rows(["truth"], "families") if row["tool"] in PEERS and not row["error"]]
    without = ["`%s`" % section for section, part, key in (("requests", "rows", "profiler"), ("crowds", "threads", "tool")) if section in stored.results
               and all(row[key].startswith(OUTSIDE) for row in stored.rows([section], part))]
    if pairs and samples:
        yield "**Peers are measured less:** `cost` has at most %s pairs of each, `truth` at most %s samples%s." % (
            many(max(pairs)), many(max(samples)), ", and %s no peer at all" % " and ".join(without) if without else "")


def failed(stored):
    tools = {}
    for name, row in failures(stored.results):
        tools.setdefault(name, []).append(row.get("tool", row.get("service", "a row")))
    return ["**Failed**, wholly or in part: %s." % "; ".join("%s (`%s`)" % (", ".join(dict.fromkeys(found)), name) for name, found in tools.items())] if tools else []


def always(stored):
    """What is true of every run, and what no run shows."""
    cpus = sorted({found.group(1) for found in (re.search(r"(\d+) CPUs", run["machine"]) for run in stored.results.values()) if found}, key=int)
    noisy = sum(float(run["load"].split()[0]) > QUIET for run in stored.results.values())
    if cpus:
        yield ("**One kind of machine:** all runs were on virtual machines with %s CPUs, and before %s of %s runs the load was above %s. Real hardware, many CPUs and aarch64 are not "
               "measured." % (" or ".join(cpus), many(noisy), many(len(stored.results)), QUIET))
    yield "**Not independent:** the programs of `conclusions` and their judges are ours, and Phlox was corrected until they agreed. Impossible stacks are counted as if samples were independent."
    unknown = sum(not run.get("commit") for run in stored.results.values())
    yield "**Not one version:** Phlox changed between the runs, and %s of %s do not say which commit they measured. Compare numbers of one row only." % (
        many(unknown), many(len(stored.results)))


def limits(stored, rows, left_out):
    decided, undecided = better_peers(rows)
    text = ["**A peer is better** in these rows:\n" + "\n".join(wrapped("  - " + one, "    ") for one in decided)] if decided else []
    if undecided:
        text.append("**No decision**, since the intervals overlap: %s." % "; ".join(undecided))
    for part in (truth_limits, cost_limits, peer_limits):
        try:
            for one in part(stored):
                text.append(one)
        except Missing as missing:
            left_out.append(str(missing))
    text += failed(stored) + list(always(stored))
    if left_out:
        text.append("**Left out, because no result is stored:** %s." % "; ".join(dict.fromkeys(left_out)))
    return text


def machine(run):
    """"Intel(R) Xeon(R) Processor, 2 CPUs, Linux 6.18" as "Intel Xeon"."""
    return re.sub(r"\(R\)|\(TM\)| Processor| CPU", "", run["machine"].partition(",")[0])


def origin(stored, names):
    """Where and when: "`truth`, Intel Xeon, 2026-11-22"."""
    found = [stored.results[name] for name in names]
    dates = sorted({run["date"] for run in found})
    return "`%s`, %s, %s" % (names[0].partition("@")[0], " and ".join(dict.fromkeys(map(machine, found))), dates[0] if len(dates) == 1 else "%s to %s" % (dates[0], dates[-1]))


def claims(stored, topic, left_out):
    text = []
    for claim in CLAIMS[topic]:
        try:
            words, names = claim(stored)
        except Missing as missing:
            left_out.append("%s (%s)" % (claim.__name__.replace("_", " "), missing))
            continue
        text.append(wrapped("- %s *(%s)*" % (words, origin(stored, names)), "  "))
    return text or ["Nothing is stored of this."]


def wrapped(text, further=""):
    """At most 100 columns, without breaks in a command, a link or a marked word."""
    kept = re.sub(r"`[^`]*`|\[[^\]]*\]\([^)]*\)", lambda found: found.group().replace(" ", "\0"), text)
    return textwrap.fill(kept, 100, subsequent_indent=further, break_long_words=False, break_on_hyphens=False).replace("\0", " ")


def repeat(command):
    """The `make bench` command that repeats the measurement: without paths of its machine, names of several words quoted."""
    words, parts = shlex.split(command)[1:], []
    for word in words:
        if word.startswith("--") or not parts or parts[-1][0] not in ("--only", "--store-as"):
            parts.append([word])
        else:
            parts[-1].append(word)
    kept, skip = [], False
    for part in parts:
        if part[0] in ("--phlox", "--reading"):
            skip = True
        elif skip:
            skip = False
        else:
            kept.append(part[0] + (' "%s"' % " ".join(part[1:]) if len(part) > 1 else ""))
    return "make bench BENCH='%s'" % " ".join(kept)


NOT_HERE = ("export", "report")  # not on the page


def runs(stored):
    """The first run of each section; the tables have the others."""
    lines = ["| run | machine | date | load before | repeat it |", "| --- | --- | --- | --- | --- |"]
    for name, one in stored.results.items():
        if "@" not in name and name not in NOT_HERE:
            lines.append("| [%s](%s#%s) | %s | %s | %s | `%s` |" % (name, TABLES, anchor(name), one["machine"], one["date"], one["load"], repeat(one["command"])))
    return lines


HEAD = """# Benchmarks

What we claim of Phlox, and where it is not better or we do not know. `bench/run.py` writes this page from the results in [bench/results](../bench/results); [tables.md](%s)
shows them all. An *impossible stack* is one that never existed; the test programs reveal it by the names of their functions. A *slow-down* of 1.05 means that a program takes
1.05 times as long. The interval in brackets is that of 95 %% confidence, within one run on one machine. Phlox samples *in the kernel* where it may, else *from outside*
(`--way no-kernel`). Its limit on the cost (`--max-overhead`) is off, but for the web server.""" % TABLES

PEERS_HEAD = """Less is better. A row is one run on one machine; do not compare rows. The column *Phlox* reads from outside. Tachyon reads CPython %s alone; the others
were measured on %s. "–" means not measured."""


def document(results):
    stored, left_out = Stored(results), []
    text = ["\n\n".join(wrapped(part) for part in HEAD.split("\n\n")), ""]
    for topic, (file, words) in PICTURES.items():
        text += ["## " + topic, "", *claims(stored, topic, left_out), "", "![%s](images/%s)" % (words, file), ""]
    rows = comparison(stored, left_out)
    text += ["## Against other profilers", ""]
    if rows:
        text += [wrapped(PEERS_HEAD % (TACHYON_PYTHON, stored.usual())), "", "| measured | Phlox in the kernel | Phlox | %s | others |" % " | ".join(PEERS), "|" + " --- |" * 8]
        text += [row.line() for row in rows] + [""]
    text += ["## Not better, or not known", ""] + [one if "\n" in one else wrapped(one, "  ") for one in ("- " + one for one in limits(stored, rows, left_out))]
    text += ["", "## Repeat it", "", wrapped("`make bench` measures everything, and writes this page anew. A section takes minutes or more; with `--quick` it takes about one, and stores nothing. "
             "The tables name the further runs of a section, and their commands."), "", *runs(stored)]
    return "\n".join(text) + "\n"
