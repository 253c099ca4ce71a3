"""bench/results/tables.md: every table of the stored results, section by section."""
import re

from .stored import anchor


def number(value, form="%.3g"):
    if value is None or value != value:
        return "-"
    if isinstance(value, str):
        return value
    return form % value


def percent(value, digits=2):
    return "-" if value is None or value != value else "%.*f %%" % (digits, 100 * value)


def table(head, rows):
    if not rows:
        return ""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]) + "\n"


def titled(title, head, rows):
    return [title + "\n", table(head, rows)] if rows else []


def slow_down(row):
    if row.get("error"):
        return "failed"
    return "%s (%s to %s)" % (number(row["slow_down"], "%.3f"), number(row["low"], "%.3f"), number(row["high"], "%.3f"))


def truth(data):
    text = ["## Truth", "", "Stacks of programs whose functions' names show which stacks can exist (`bench/targets`). *Accepted*: the share of samples that the profiler did not reject. "
            "*Detached*: the share of samples whose stack Phlox itself marks as not reaching its first frame; they are not counted as impossible. *TV* compares Phlox with the same process, "
            "stopped by ptrace for every sample; the two take turns. *Stopped against itself* is the TV between the even and the odd turns of the stopped process, with chance in brackets: "
            "so much the machine and the program change by themselves.", ""]
    text.append(table(["tool", "Python", "user", "target", "Hz", "samples", "impossible", "bound", "accepted", "detached", "TV", "chance",
                       "stopped against itself"], [
        [r["tool"], r["python"], r["user"], r["target"], r["rate"], r["samples"], r["impossible"] if not r["error"] else "failed: " + " ".join(r["error"].split())[:60],
         number(r.get("bound"), "%.1e"), percent(r.get("accepted")), percent(r["detached"] / r["samples"] if r["samples"] else None),
         number(r.get("tv"), "%.4f"), number(r.get("tv_chance"), "%.4f"),
         "%s (%s)" % (number(r.get("tv_itself"), "%.4f"), number(r.get("tv_itself_chance"), "%.4f"))] for r in data["families"]]))
    text += titled("Functions that are made all the time, and whose names tell when they existed:", ["Python", "user", "made by", "samples", "with a fresh name", "wrong name", "rejected"], [
        [r["python"], r["user"], r["target"][6:], r["samples"], r["named"], r["wrong"] if not r["error"] else "failed", r["rejected"]] for r in data["fresh"]])
    text += titled("Three functions with known shares (10, 30 and 60 %; the program measures them itself by `thread_time`), and in how many runs all three lie inside the 99 % interval:",
                   ["Python", "user", "runs", "inside", "largest difference"], [
        [r["python"], r["user"], r["runs"], r["inside"] if not r["error"] else "failed", percent(r["worst"])] for r in data["shares"]])
    text += titled("An ordinary program (tokenize, difflib, json, pprint); *without a root*: its first frame is missing:", ["Python", "user", "samples", "without a root", "accepted", "TV", "chance"], [
        [r["python"], r["user"], r.get("samples", "failed"), r.get("impossible", "-"), percent(r.get("accepted")), number(r.get("tv"), "%.4f"),
         number(r.get("tv_chance"), "%.4f")] for r in data["ordinary"]])
    return "\n".join(text)


def cost(data):
    text = ("## Cost to the target\n\nThe slow-down is the work that the program does per second without a profiler, divided by the work with one. Both are measured on the same process, in "
            "pairs of neighbouring intervals. For Phlox, one recording runs, and its recorder is stopped and continued every tenth of a second, because the speed of a virtual machine "
            "changes by half within seconds. The number is the geometric mean of the pairs without the lowest and the highest tenth. Pairs in which the host took away more "
            "than 2 % of the CPUs do not count. A stopped peer might hold its target, so each pair of a peer has a recording of its own; the number is their mean.\n\n")
    return text + table(
        ["tool", "Python", "user", "target", "Hz", "pairs", "slow-down"],
        [[r["tool"], r["python"], r.get("user", "root"), r.get("target", ""), r.get("rate", ""), r.get("pairs", "-"), slow_down(r)] for r in data["slow_down"]])


def recorder(data):
    text = "## Cost of the recorder\n\nThe CPU that the whole recorder uses at 1 kHz, its start and its end included.\n\n" + table(
        ["tool", "Python", "user", "depth", "samples/s", "us of CPU a sample", "RSS MiB"],
        [[r["tool"], r["python"], r["user"], r["depth"], number(r.get("samples_a_second"), "%.0f"), number(r.get("cpu_us_a_sample"), "%.1f"),
          number(r.get("rss_mib"), "%.1f")] for r in data["cpu"]])
    text += ("\nWhat a sample cannot cost less than, on the same machine in the same run (`bench/reading/wake.cpp`): a thread that wakes 1,000 times per second next to a busy process "
             "and does nothing, and one copy of a page and of 50 code objects:\n\n") + table(
        ["user", "class", "woken by the clock, us of CPU", "woken by a perf event, us", "copy, us"],
        [[r["user"], "failed" if r["error"] else "real time" if r["real_time"] else "ordinary", number(r.get("clock_us"), "%.1f"),
          "not permitted" if r.get("event_us", -1) < 0 else number(r["event_us"], "%.1f"), number(r.get("copy_us"), "%.1f")] for r in data.get("floor", [])])
    return text


def ten_minutes(data):
    return "## Ten minutes\n\nA recording of `hard.py 50` at 1 kHz. The stack differs at every sample.\n\n" + table(
        ["Python", "seconds", "rows", "bytes", "bytes a row", "RSS MiB"],
        [[r["python"], r["seconds"], r.get("rows", "failed"), r.get("bytes", "-"), number(r.get("bytes_a_row"), "%.1f"), number(r.get("rss_mib"), "%.1f")]
         for r in data["size"]])


def speed(data):
    return "## How fast it can go\n\nThe target is `hard.py 50`. Only samples that Phlox proved to be of one moment are counted.\n\n" + table(
        ["tool", "Python", "user", "asked Hz", "samples/s", "slow-down"],
        [[r["tool"], r["python"], r["user"], r["rate"] or "no limit", number(r.get("samples_a_second"), "%.0f"), slow_down(r)] for r in data["speed"]])


def at_once(data):
    return "## First sample\n\nThe time from the start of `phlox record -p PID` to its first sample, without the time that it takes to become another user.\n\n" + table(
        ["Python", "user", "starts", "median ms", "95 % interval", "worst ms"],
        [[r["python"], r["user"], r.get("starts", "failed"), number(r.get("median_ms"), "%.1f"),
          "%s to %s" % (number(r.get("low"), "%.1f"), number(r.get("high"), "%.1f")), number(r.get("worst_ms"), "%.1f")] for r in data["at_once"]])


TABLES = {"truth": truth, "cost": cost, "recorder": recorder, "ten-minutes": ten_minutes, "speed": speed, "at-once": at_once}


HEAD = """# Results

Every table of the stored results. `make bench` (`bench/run.py`) writes this file; [docs/benchmarks.md](../../docs/benchmarks.md) has what follows from it, on one page. Measure one section
alone with `make bench BENCH=truth`. The targets are in `bench/targets`. `--max-overhead off` throughout, unless a section says otherwise. The user `root` may use real-time scheduling;
any other user has no capability, and `RLIMIT_RTPRIO` is 0.

Words that the tables share:

- *impossible*: the number of stacks that never existed.
- *bound*: with 95 % confidence, the rate of impossible stacks is below this.
- *TV*: total variation, which says how different two sets of shares are: half the sum of the differences of all shares. 0: the same shares; 1: nothing in common.
- *chance*: the TV of two independent sets of samples of these sizes, if nothing differs. So TV close to *chance* means no difference.
- *slow-down*: how many times as long the program takes while it is sampled, with the 95 % interval (bootstrap over pairs).
- *RSS*: the most memory that the tool had at one time.
- *phlox* without more words reads from outside (`--way no-kernel`).
"""


def without_words(page):
    """A section's tables without the introduction, which its first run has."""
    head, rest = page.split("\n", 1)
    _, bar, tables = rest.partition("\n| ")
    return head + "\n" + bar + tables


def document(results):
    text, last = [HEAD], None
    # "truth", then "truth@other-Pythons", ...
    for name in sorted(results, key=lambda name: (list(TABLES).index(name.partition("@")[0]), name)):
        section, _, label = name.partition("@")
        stored = results[name]
        page = TABLES[section](stored["data"])
        if label:
            page = re.sub("\n", ": %s\n" % label.replace("-", " ").strip(), without_words(page) if last == section else page, count=1)
        last = section
        measured = ", commit " + stored["commit"] if stored.get("commit") else ""
        text += ['<a id="%s"></a>\n' % anchor(name), page, "`%s`, %s, %s, load before it %s%s" % (stored["command"], stored["machine"], stored["date"], stored["load"], measured), ""]
    return "\n".join(text).rstrip() + "\n"
