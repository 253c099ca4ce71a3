"""Checks what phlox says in the section `conclusions`: each claim is right, silent or wrong. Pure: evidence in, verdicts out.

Evidence is a dictionary:
  truth             what the program printed about itself (bench/conclusions/truth.py)
  record, report    the first screens, as text
  json, all, cpu    phlox report --json: as it begins, with --show everything, with --weight cpu
  page              the page's data as read by the page's model (page_words.ts)
  spans             {state: wall seconds} of rows without a sample (see `spans_of`)
and for a pair: diff (text), diff_json, truth and after (the second program's truth)."""
import math
import re

RIGHT, SILENT, WRONG = "right", "silent", "wrong"
FIRST_SCREEN = 24  # lines of a terminal


def last(name):
    return name.split(".")[-1]


def first_screen(text):
    return "\n".join(text.splitlines()[:FIRST_SCREEN])


def said(evidence):
    """All text of the first screens: recorder, report, the page's head."""
    page = evidence.get("page") or {}
    return "\n".join([first_screen(evidence.get("record", "")), first_screen(evidence.get("report", "")),
                      page.get("leftOut", ""), page.get("subtitle", ""), page.get("warning", "")])


def find(rows, function):
    return [row for row in rows if last(row["name"]) == function]


def seconds_of(report, function, side="total"):
    """Of the function in a report's tables; None: it has no row."""
    rows = find(report["functions_by_total"] + report["functions_on_all_stacks"], function) or find(report["functions"], function)
    return sum(row[side]["weight"] for row in rows) / 1e9 if rows else None


def rate(evidence):
    return max(1.0, evidence["json"]["quality"]["numbers"]["rate_reached_hz"])


def sampling(evidence, seconds):
    """The error that sampling alone may cause: four standard deviations of a Poisson count, and a few samples."""
    return 4 * math.sqrt(max(seconds, 0) / rate(evidence)) + 4 / rate(evidence)


def says(pattern):
    def judge(evidence):
        return (RIGHT if re.search(pattern, said(evidence)) else SILENT), pattern
    return judge


def never(pattern):
    def judge(evidence):
        found = re.search(pattern, said(evidence))
        return (WRONG, "said: " + found.group(0)) if found else (RIGHT, "not said: " + pattern)
    return judge


def never_a_place(pattern):
    """Code beneath the Python line may have a column of its own, but is never reported as the place where
    time is spent."""
    def judge(evidence):
        report = evidence["json"]
        texts = [finding["text"] for finding in report["findings"]]
        # A thread that begins or ends has no Python frame: a sample of that is a place of its own.
        shares = ((row, row.get("share", row.get("self", {}).get("share", 1))) for table in ("functions", "lines", "waits") for row in report.get(table, ()))
        texts += [f"{row['name']} {row.get('file', '')}" for row, share in shares if share >= 0.01]
        found = next((match for match in (re.search(pattern, text) for text in texts) if match), None)
        return (WRONG, "a place: " + found.group(0)) if found else (RIGHT, "no place: " + pattern)
    return judge


def cpu(function):
    """The function's CPU time in the report and on the page matches its own measurement."""
    def judge(evidence):
        truth = evidence["truth"]["parts"][function]["cpu"]
        allowed = 0.03 * truth + 0.02 + sampling(evidence, truth)
        page = find((evidence.get("page") or {}).get("cpu", []), function)
        found = {"report": seconds_of(evidence["cpu"], function), "page": sum(row["total"] for row in page) / 1e9 if page else None}
        words = "%s: truth %.3f s, %s" % (function, truth, ", ".join("%s %s" % (k, "-" if v is None else "%.3f" % v) for k, v in found.items()))
        if any(v is not None and abs(v - truth) > allowed for v in found.values()):
            return WRONG, words
        return (SILENT if None in found.values() and truth > allowed else RIGHT), words
    return judge


def wall(function, share=0.05):
    """Its wall time over all threads, with everything shown."""
    def judge(evidence):
        part = evidence["truth"]["parts"][function]
        found = seconds_of(evidence["all"], function)
        words = "%s: truth %.3f s of wall time, report %s" % (function, part["wall"], "-" if found is None else "%.3f" % found)
        if found is None:
            return SILENT, words
        # Wait times are exact; their bounds among the surrounding functions are known to within a sample.
        allowed = share * part["wall"] + 0.03 + sampling(evidence, part["wall"])
        return (WRONG if abs(found - part["wall"]) > allowed else RIGHT), words
    return judge


def idle(function):
    """Threads in it are idle: it neither leads the table of work nor appears in a finding."""
    def judge(evidence):
        # Waiting for the GIL or for a CPU is not idle: it counts, wherever it happens.
        queued = sum(row["wall_ns"] for row in evidence["json"]["waits"] if last(row["name"]) == function and row["kind"] in ("gil", "cpu"))
        of_all = evidence["json"]["total"]
        lead = [row for row in evidence["json"]["functions"][:5] if row["self"]["share"] >= 0.1 and row["self"]["weight"] - queued >= 0.1 * of_all]
        if find(lead, function):
            return WRONG, "%s leads what is shown as work" % function
        named = [f["text"] for f in evidence["json"]["findings"] if re.search(r"(?<!\()\b%s\b(?!\))" % re.escape(function), f["text"])]  # threads are named after theirs: "Thread-1 (worker)"
        if named:
            return WRONG, named[0]
        page = (evidence.get("page") or {}).get("wall", [])
        whole = sum(row["self"] for row in page)
        if any(last(row["name"]) == function and row["self"] - queued > 0.1 * whole for row in page[:5]):
            return WRONG, "%s leads what the page shows as work" % function
        return RIGHT, "%s is not shown as work" % function
    return judge


def at_work(function):
    """Threads in it are at work: it is not among the places omitted as idle."""
    def judge(evidence):
        truth = evidence["truth"]["parts"][function]["wall"]
        left = sum(place["wall_ns"] for place in evidence["json"]["left_out"]["places"] if last(place["name"]) == function) / 1e9
        if left > 0.05 * truth + 0.02:
            return WRONG, "%s: %.2f s of %.2f s are called waiting for something to do" % (function, left, truth)
        shown = seconds_of(evidence["json"], function)
        if shown is None:
            return SILENT, "%s has no row" % function
        words = "%s: %.2f s of %.2f s shown as work" % (function, shown, truth)
        return (WRONG if shown < 0.85 * truth - 0.05 else RIGHT), words
    return judge


def hottest(*functions):
    """The function that uses the CPU: the first row by CPU time, in report and page, the finding that names
    one, and the busiest thread's own."""
    def judge(evidence):
        named = []
        rows = [row for row in evidence["cpu"]["functions"] if row["self"]["weight"] > 0]
        if rows:
            named.append(("first by CPU time", rows[0]["name"]))
        page = (evidence.get("page") or {}).get("cpu", [])
        if page:
            named.append(("first by CPU time on the page", page[0]["name"]))
        headline = (evidence.get("page") or {}).get("headline")
        if headline:
            named.append(("the page's first line", headline["name"]))
        named += [("finding", f["names"]["function"]) for f in evidence["json"]["findings"] if f["kind"] == "hot_function"][:1]
        for where, name in named:
            if last(name) not in functions:
                return WRONG, "%s: %s, not %s" % (where, name, " or ".join(functions))
        return (RIGHT if named else SILENT), "%s" % named
    return judge


def busiest_thread(*functions):
    """The busiest function, in the table of threads, of the thread that used most CPU time."""
    def judge(evidence):
        threads = sorted(evidence["json"]["threads"], key=lambda thread: -thread["cpu_ns"])
        name = last(threads[0]["busiest_function"]) if threads else ""
        if name in ("", "-"):
            return SILENT, "no busiest function"
        return (RIGHT if name in functions else WRONG), "busiest function: " + name
    return judge


def waker(function, pattern):
    """The function's waits were ended by a thread or program whose name matches. Another name is wrong, and
    most waits must have one."""
    def judge(evidence):
        rows = find(evidence["json"]["ended_waits"], function)
        count = sum(row["waits"] for row in rows)
        wrong = [row for row in rows if not re.search(pattern + "|^$|timeout|not known", row["ended_by"])]
        if wrong:
            return WRONG, "%s: %d of %d waits ended by %s" % (function, sum(row["waits"] for row in wrong), count, wrong[0]["ended_by"])
        named = sum(row["waits"] for row in rows if re.search(pattern, row["ended_by"]))
        expected = evidence["truth"]["parts"][function]["wall"] / 0.1
        return (RIGHT if named >= max(1, min(expected, 0.5 * count)) else SILENT), "%s: %d of %d waits have their waker" % (function, named, count)
    return judge


def nobody(function):
    """Its waits ended by timeout: no waker is reported."""
    def judge(evidence):
        rows = find(evidence["json"]["ended_waits"], function)
        named = [row for row in rows if row["ended_by"] and not re.search("timeout|not known", row["ended_by"])]
        if named:
            return WRONG, "%s: %d waits ended by %s" % (function, sum(row["waits"] for row in named), named[0]["ended_by"])
        return RIGHT, "nobody ended waits of " + function
    return judge


def own_children(evidence):
    """CPU time of non-Python children is not reported as that of other programs."""
    elapsed = evidence["json"]["elapsed_ns"] / 1e9
    own = (evidence["truth"]["children"] + evidence["truth"]["cpu"]) / elapsed / evidence["cpus"]
    found = re.search(r"other programs used ([0-9.]+) %", said(evidence))
    if found and float(found.group(1)) / 100 > 1.1 - own:
        return WRONG, "%s, but the program and its children used %.0f %%" % (found.group(0), 100 * own)
    if re.search(r"\bsh\b", said(evidence)):
        return RIGHT, "children are named"
    return SILENT, "nothing is said of the children"


def collecting(evidence):
    """The collector's time matches the measurement by gc.callbacks."""
    truth = evidence["truth"]["collector"]
    found = sum(thread["states_ns"]["collecting"] for thread in evidence["all"]["threads"]) / 1e9
    words = "collector: truth %.2f s of CPU, report %.2f s of wall time" % (truth, found)
    if found < truth * 0.9 - sampling(evidence, truth):
        return WRONG, words
    return (RIGHT if re.search("garbage collector", said(evidence)) else SILENT), words


# --- claims about every program ---------------------------------------------------------------------------------------

def intervals(evidence):
    """Every interval is within 0 and 1 and contains its share."""
    for row in evidence["json"]["functions"] + evidence["json"]["functions_by_total"] + evidence["json"]["lines"]:
        for side in ("self", "total"):
            at = row[side]
            if not -1e-9 <= at["low"] <= at["share"] + 1e-9 or not at["share"] - 1e-9 <= at["high"] <= 1 + 1e-9:
                return WRONG, "%s: %.4f from %.4f to %.4f" % (row["name"], at["share"], at["low"], at["high"])
    for share, half in re.findall(r"([0-9.]+) % +± ?([0-9.]+)", evidence["report"] + evidence["record"]):
        if float(share) - float(half) < -0.1 or float(share) + float(half) > 100.1:
            return WRONG, "%s %% ± %s" % (share, half)
    return RIGHT, "intervals lie within 0 and 100 %"


def account(evidence):
    """The CPU time of all threads together matches the process's measurement."""
    truth = evidence["truth"]["cpu"]
    pid = evidence["truth"]["pid"]
    found = sum(thread["cpu_ns"] for thread in evidence["all"]["threads"] if thread["pid"] == pid) / 1e9
    words = "CPU of the process: truth %.3f s, report %.3f s" % (truth, found)
    # The interpreter exits after the program has printed its truth.
    return (RIGHT if -0.03 * truth - 0.02 <= found - truth <= 0.03 * truth + 0.12 else WRONG), words


def running(evidence):
    """A thread's reported running time matches its CPU time."""
    for thread in evidence["all"]["threads"]:
        difference = (thread["states_ns"]["running"] - thread["cpu_ns"]) / 1e9
        if abs(difference) > 0.05 * thread["cpu_ns"] / 1e9 + 0.03:
            return WRONG, "%s runs %.3f s, CPU account %.3f s" % (thread["name"], thread["states_ns"]["running"] / 1e9, thread["cpu_ns"] / 1e9)
    return RIGHT, "running is the CPU account"


def one_answer(evidence):
    """Page and report name the same function first, with the same time."""
    page, rows = evidence.get("page"), evidence["json"]["functions"]
    if not page or not page["wall"] or not rows:
        return SILENT, "nothing to compare"
    first = rows[0]
    same = [row for row in page["wall"] if row["name"] == first["name"]]
    if not same or abs(max(row["self"] for row in same) - first["self"]["weight"]) > 0.001 * first["self"]["weight"] + 1000:
        return WRONG, "%s: %.3f s in the report, %.3f s on the page" % (first["name"], first["self"]["weight"] / 1e9, max((row["self"] for row in same), default=0) / 1e9)
    return RIGHT, "page and report agree on " + first["name"]


def not_too_few(evidence):
    """Exact waits are not reported as too few samples."""
    exact = evidence["all"]["waits_exact"] and any(part["wall"] - part["cpu"] > 0.2 for part in evidence["truth"]["parts"].values())
    found = re.search(r"[^\n]*say nothing[^\n]*", said(evidence))
    if exact and found and not re.search("CPU", found.group(0)):
        return WRONG, found.group(0)
    return RIGHT, "exact waits are not called too few"


def no_empty_blocks(evidence):
    """Rows without samples do not insert "blocked" into the middle of a run."""
    found = evidence.get("spans", {})
    return (WRONG if found.get("blocked", 0) > 0.001 else RIGHT), "blocked without a sample and without a wait: %.4f s" % found.get("blocked", 0)


EVERYWHERE = (intervals, account, running, one_answer, not_too_few)


# --- claims about pairs ------------------------------------------------------------------------------------------------

UNCHANGED = ("noise", "unchanged", "same")
UNKNOWN = ("inconclusive", "unknown", "not known")


def verdict_of(row):
    verdicts = [row[side].get("verdict", "") for side in ("total", "self") if side in row]
    for verdict in verdicts:
        if verdict not in UNCHANGED + UNKNOWN:
            return "changed"
    return "unchanged" if all(verdict in UNCHANGED for verdict in verdicts) else "inconclusive"


def changed(function):
    def judge(evidence):
        denied = re.search(r"No difference[^\n]*", first_screen(evidence["diff"]))
        if denied:
            return WRONG, denied.group(0)
        rows = [row for row in evidence["diff_json"]["functions"] if last(row["name"]) == function]
        if not rows:
            return SILENT, function + " has no row"
        verdict = verdict_of(rows[0])
        return ({"changed": RIGHT, "inconclusive": SILENT, "unchanged": WRONG}[verdict]), "%s: %s" % (function, verdict)
    return judge


def nothing_changed(evidence):
    """Equal programs: none of their functions is reported to differ in what it computes."""
    rows = [row for row in evidence["diff_json"]["functions"] if verdict_of(row) == "changed" and last(row["name"]) in evidence["truth"]["parts"]]
    return (WRONG, "said to have changed: " + rows[0]["name"]) if rows else (RIGHT, "nothing is said to have changed")


def whole_first(evidence):
    """The seconds of both recordings precede any share."""
    return (RIGHT if re.search(r"[0-9.]+ m?s\b", "\n".join(evidence["diff"].splitlines()[:3])) else SILENT), "seconds of the whole"


def judged(evidence, claims):
    """[(name of the claim, verdict, text)]; a claim that cannot be checked on this output is wrong, never skipped."""
    out = []
    for claim in claims:
        name = claim.__qualname__.split(".")[0]
        try:
            verdict, words = claim(evidence)
        except (KeyError, IndexError, TypeError) as error:
            verdict, words = WRONG, "cannot be judged: %s %s" % (type(error).__name__, error)
        out.append((name, verdict, words))
    return out


def of_all(verdicts):
    """A program's verdict: that of its worst claim."""
    kinds = [verdict for _, verdict, _ in verdicts]
    return WRONG if WRONG in kinds else SILENT if SILENT in kinds else RIGHT
