"""docs/benchmarks.md out of the stored results of the sections."""


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
    text = ["## Truth", "", "An impossible stack is one that never existed, recognised by names alone (bench/targets). Bound: the rate is below this "
            "with 95 % confidence. TV: total variation of leaf shares against the same process stopped by ptrace, in turn; chance: what "
            "independent samples of these sizes differ by anyway; stopped against itself: the stopped process of the odd turns against that of the even ones "
            "(chance), which is what the machine and the target change by themselves.", ""]
    text.append(table(["tool", "Python", "user", "target", "Hz", "samples", "impossible", "bound", "accepted", "detached", "TV", "chance",
                       "stopped against itself"], [
        [r["tool"], r["python"], r["user"], r["target"], r["rate"], r["samples"], r["impossible"] if not r["error"] else "failed: " + r["error"][:60],
         number(r.get("bound"), "%.1e"), percent(r.get("accepted")), percent(r["detached"] / r["samples"] if r["samples"] else None),
         number(r.get("tv"), "%.4f"), number(r.get("tv_chance"), "%.4f"),
         "%s (%s)" % (number(r.get("tv_itself"), "%.4f"), number(r.get("tv_itself_chance"), "%.4f"))] for r in data["families"]]))
    text += titled("Fresh functions, whose names tell the moment:", ["Python", "user", "made by", "samples", "with a fresh name", "wrong name", "rejected"], [
        [r["python"], r["user"], r["target"][6:], r["samples"], r["named"], r["wrong"] if not r["error"] else "failed", r["rejected"]] for r in data["fresh"]])
    text += titled("Known shares (10/30/60, measured inside by thread_time), all three inside the 99 % interval:",
                   ["Python", "user", "runs", "inside", "largest difference"], [
        [r["python"], r["user"], r["runs"], r["inside"] if not r["error"] else "failed", percent(r["worst"])] for r in data["shares"]])
    text += titled("An ordinary program (tokenize, difflib, json, pprint):", ["Python", "user", "samples", "without a root", "accepted", "TV", "chance"], [
        [r["python"], r["user"], r.get("samples", "failed"), r.get("impossible", "-"), percent(r.get("accepted")), number(r.get("tv"), "%.4f"),
         number(r.get("tv_chance"), "%.4f")] for r in data["ordinary"]])
    return "\n".join(text)


def cost(data):
    text = ("## Cost to the target\n\nBase throughput over throughput while recorded, pairs of neighbouring stretches of one process; 95 % interval "
            "by bootstrap over pairs. phlox: its recorder stopped and let on in turn, a tenth of a second each, because the speed of a virtual machine "
            "changes by half within seconds; geometric mean without the lowest and highest tenth of the pairs, and without those in which "
            "the host took back more than 2 % of the CPUs. Peers, whose stopping could hold their "
            "target: a recording for each pair; mean.\n\n")
    return text + table(
        ["tool", "Python", "user", "target", "Hz", "pairs", "slow-down"],
        [[r["tool"], r["python"], r.get("user", "root"), r.get("target", ""), r.get("rate", ""), r.get("pairs", "-"), slow_down(r)] for r in data["slow_down"]])


def recorder(data):
    text = "## Cost of the recorder\n\nAt 1 kHz; CPU of the whole recorder, start and end included.\n\n" + table(
        ["tool", "Python", "user", "depth", "samples/s", "us of CPU a sample", "RSS MiB"],
        [[r["tool"], r["python"], r["user"], r["depth"], number(r.get("samples_a_second"), "%.0f"), number(r.get("cpu_us_a_sample"), "%.1f"),
          number(r.get("rss_mib"), "%.1f")] for r in data["cpu"]])
    text += ("\nThe floor on this machine, in the same run: a thread that wakes 1,000 times a second beside a busy process and does nothing, and one copy "
             "of a page and of 50 code objects (`bench/reading/wake.cpp`):\n\n") + table(
        ["user", "class", "woken by the clock, us of CPU", "woken by a perf event, us", "copy, us"],
        [[r["user"], "failed" if r["error"] else "real time" if r["real_time"] else "ordinary", number(r.get("clock_us"), "%.1f"),
          "not permitted" if r.get("event_us", -1) < 0 else number(r["event_us"], "%.1f"), number(r.get("copy_us"), "%.1f")] for r in data.get("floor", [])])
    return text


def ten_minutes(data):
    return "## Ten minutes\n\nA recording of hard.py 50 at 1 kHz, whose stack is another at every look.\n\n" + table(
        ["Python", "seconds", "rows", "bytes", "bytes a row", "RSS MiB"],
        [[r["python"], r["seconds"], r.get("rows", "failed"), r.get("bytes", "-"), number(r.get("bytes_a_row"), "%.1f"), number(r.get("rss_mib"), "%.1f")]
         for r in data["size"]])


def speed(data):
    return "## How fast it can go\n\nhard.py 50; phlox's samples are proved ones.\n\n" + table(
        ["tool", "Python", "user", "asked Hz", "samples/s", "slow-down"],
        [[r["tool"], r["python"], r["user"], r["rate"] or "no limit", number(r.get("samples_a_second"), "%.0f"), slow_down(r)] for r in data["speed"]])


def at_once(data):
    return "## At once\n\nFrom the start of `phlox record -p PID` to the moment of its first sample (without the time it takes to become another user).\n\n" + table(
        ["Python", "user", "starts", "median ms", "95 % interval", "worst ms"],
        [[r["python"], r["user"], r.get("starts", "failed"), number(r.get("median_ms"), "%.1f"),
          "%s to %s" % (number(r.get("low"), "%.1f"), number(r.get("high"), "%.1f")), number(r.get("worst_ms"), "%.1f")] for r in data["at_once"]])


TABLES = {"truth": truth, "cost": cost, "recorder": recorder, "ten-minutes": ten_minutes, "speed": speed, "at-once": at_once}


def document(results):
    text = ["# Benchmarks", "", "Written by `make bench` (`bench/run.py`); each section can be measured alone (`make bench BENCH=truth`). Targets: "
            "`bench/targets`. `--max-overhead off` throughout. The user `root` may use real time; any other has no capability and `RLIMIT_RTPRIO` 0.", ""]
    # "truth", then "truth@other-Pythons", ...
    for name in sorted(results, key=lambda name: (list(TABLES).index(name.partition("@")[0]), name)):
        section, _, label = name.partition("@")
        stored = results[name]
        page = TABLES[section](stored["data"])
        if label:
            head, rest = page.split("\n", 1)
            page = "%s: %s\n%s" % (head, label.replace("-", " "), rest)
        text += [page, "`%s`, %s, %s%s" % (stored["command"], stored["machine"], stored["date"],
                                                              ", load %s before" % stored["load"]), ""]
    return "\n".join(text).rstrip() + "\n"
