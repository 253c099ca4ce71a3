"""The three pictures of docs/benchmarks.md, as SVG made from the stored results: truth, cost, scale. Each has
its own background and follows the reader's light or dark mode. Results that are not stored are not drawn."""
import html
import math

from .claims import RATE, many, shown, truth_runs
from .stored import KERNEL, OUTSIDE, PEERS, Missing, Stored, impossible, is_number

WIDTH = 860
LEFT, RIGHT = 210, 250  # columns of names and of numbers
LINE = 26
CHARACTER = 7.4  # px, maximum average, for text of 13 px
STYLE = """text{font:13px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;fill:#1f2328}.head{font-weight:600}.note{fill:#57606a}
.paper{fill:#ffffff}.axis{stroke:#d0d7de}.base{stroke:#57606a}.ours{stroke:#0969da;fill:#0969da}.peer{stroke:#bc4c00;fill:#bc4c00}.line{fill:none}rect{stroke:none}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.note{fill:#9198a1}.paper{fill:#0d1117}.axis{stroke:#3d444d}.base{stroke:#9198a1}.ours{stroke:#58a6ff;fill:#58a6ff}
.peer{stroke:#f0883e;fill:#f0883e}.line{fill:none}}"""
LABELS = {KERNEL: "Phlox in the kernel", OUTSIDE: "Phlox from outside"}


class Picture:
    def __init__(self, title):
        self.title, self.parts, self.height = title, [], 20

    def text(self, x, y, words, kind="", anchor="start"):
        self.parts.append('<text x="%.1f" y="%.1f"%s text-anchor="%s">%s</text>' % (x, y, ' class="%s"' % kind if kind else "", anchor, html.escape(words)))

    def line(self, x1, y1, x2, y2, kind, width=1):
        self.parts.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s" stroke-width="%g"/>' % (x1, y1, x2, y2, kind, width))

    def dot(self, x, y, kind):
        self.parts.append('<circle cx="%.1f" cy="%.1f" r="4.5" class="%s"/>' % (x, y, kind))

    def bar(self, x, y, width, height, kind):
        self.parts.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="%s"/>' % (x, y, max(1, width), height, kind))

    def path(self, points, kind):
        self.parts.append('<polyline points="%s" class="line %s" stroke-width="2"/>' % (" ".join("%.1f,%.1f" % point for point in points), kind))

    def heading(self, words, note=""):
        self.height += 14
        self.text(16, self.height, words, "head")
        self.height += 20
        if note:
            self.text(16, self.height, note, "note")
            self.height += 20

    def svg(self):
        return ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">\n<title>%s</title>\n<style>%s</style>\n<rect width="100%%" height="100%%" class="paper"/>\n%s\n</svg>\n'
                % (WIDTH, self.height, WIDTH, self.height, html.escape(self.title), STYLE, "\n".join(self.parts)))


class Scale:
    """The position of a number between two columns."""

    def __init__(self, low, high, logarithmic=False):
        self.of = math.log10 if logarithmic else float
        self.low, self.high = self.of(low), self.of(high)

    def x(self, value):
        share = (self.of(value) - self.low) / (self.high - self.low)
        return LEFT + max(0, min(1, share)) * (WIDTH - RIGHT - LEFT)


def axis(picture, scale, ticks, rows, base=None):
    """Lines through the rows that follow, with their labels beneath."""
    top, bottom = picture.height - 6, picture.height + rows * LINE
    for value, words in ticks:
        picture.line(scale.x(value), top, scale.x(value), bottom, "base" if value == base else "axis")
        picture.text(scale.x(value), bottom + 18, words, "note", "middle")


def interval_row(picture, scale, label, kind, middle, low, high, words):
    y = picture.height + LINE / 2
    picture.text(LEFT - 14, y + 4, label, "", "end")
    picture.line(scale.x(low), y, scale.x(high), y, kind, 3)
    if middle is None:
        picture.line(scale.x(high), y - 5, scale.x(high), y + 5, kind, 3)
    else:
        picture.dot(scale.x(middle), y, kind)
    picture.text(WIDTH - RIGHT + 14, y + 4, words)
    picture.height += LINE


def kind_of(tool):
    return "ours" if tool.startswith(OUTSIDE) else "peer"


LEAST = 1e-7


def truth(stored):
    picture = Picture("Stacks that never existed, of all stacks of a profiler, with 95 % intervals")
    rows = []
    for tool in (KERNEL, OUTSIDE) + PEERS:
        try:
            found = [row for row in truth_runs(stored, tool)[0] if not row["error"]]
            rows.append((tool, impossible(found)))
        except Missing:
            continue
    picture.heading("Stacks that never existed", "Share of all stacks in section truth, with its 95 % interval. Phlox: all runs; peers: one run.")
    picture.text(16, picture.height, "A line from the left edge: none was found, and the share is below the end of the line.", "note")
    picture.height += 20
    picture.height += 4
    scale = Scale(LEAST, 1, True)
    axis(picture, scale, [(10.0 ** -power, "all" if power == 0 else "1 in " + many(10 ** power)) for power in (6, 4, 2, 0)], len(rows))
    for tool, (hits, samples, low, high) in rows:
        interval_row(picture, scale, LABELS.get(tool, tool), kind_of(tool), hits / samples if hits else None, low if hits else LEAST, high,
                     "%s of %s" % (many(hits), many(samples)))
    picture.height += 32
    return picture.svg()


def cost_rows(stored):
    """(heading, [(label, tool, row)])."""
    groups = []
    try:
        rows = [row for row in stored.rows(["cost"], "slow_down", user="root", rate=RATE) if row["tool"] in (OUTSIDE,) + PEERS]
        groups.append(("Section cost: a program that changes its stack all the time", [("%s, %s" % (LABELS.get(row["tool"], row["tool"]), row["python"]), row["tool"], row) for row in rows]))
    except Missing:
        pass
    try:
        rows = [(LABELS[KERNEL], KERNEL, row["slow_down"]) for row in stored.rows(["kernel"], "in_turn", tool=KERNEL, target="depth 50") if not row["error"]]
        rows += [(LABELS.get(row["tool"], row["tool"]), row["tool"], row) for row in stored.rows(["kernel"], "beside", target="depth 50")]
        groups.append(("Section kernel: a program that computes, its stack 50 frames deep", rows))
        rows = [(row["target"], KERNEL, row["slow_down"]) for row in stored.rows(["kernel"], "in_turn", tool=KERNEL) if not row["error"] and row["target"].startswith("switches")]
        groups.append(("Section kernel: in the kernel, programs that leave their CPU all the time", rows))
    except Missing:
        pass
    return [(words, [row for row in rows if is_number(row[2].get("slow_down"))]) for words, rows in groups]


def cost(stored):
    picture = Picture("How many times as long a program takes while it is sampled, with 95 % intervals")
    picture.heading("Slow-down at %s Hz" % many(RATE), "How many times as long the program takes while it is sampled, with its 95 % interval. 1: as long as without.")
    groups = cost_rows(stored)
    ends = [row[end] for _, rows in groups for _, _, row in rows for end in ("low", "high")] or [1]
    step = 0.25
    scale = Scale(math.floor(min(ends + [0.99]) / step) * step, math.ceil(max(ends + [1.01]) / step) * step)
    steps = range(int(scale.low / step), int(scale.high / step) + 1)
    while len(steps) > 9:
        steps = steps[::2]
    for words, rows in groups:
        if not rows:
            continue
        picture.heading(words)
        axis(picture, scale, [(step * count, "%g" % (step * count)) for count in steps], len(rows), 1)
        for label, tool, row in rows:
            interval_row(picture, scale, label, kind_of(tool), row["slow_down"], row["low"], row["high"], "%s (%s to %s)" % tuple(shown(row[key], 3) for key in ("slow_down", "low", "high")))
        picture.height += 32
    return picture.svg()


def spread(wanted, least=16):
    """Positions near the wanted ones, at least `least` apart."""
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    placed, last = [0.0] * len(wanted), -math.inf
    for index in order:
        last = placed[index] = max(wanted[index], last + least)
    return placed


def depths(stored):
    """[(tool, [(depth, µs)])] of one run."""
    found = []
    for tool in (OUTSIDE,) + PEERS:
        try:
            match = {} if tool.startswith("Tachyon") else {"python": stored.usual()}
            rows = stored.rows(["recorder"], "cpu", tool=tool, user="root", **match)
        except Missing:
            continue
        found.append((tool, [(row["depth"], row["cpu_us_a_sample"]) for row in rows if is_number(row.get("cpu_us_a_sample"))]))
    return [(tool, points) for tool, points in found if points]


def depth_panel(picture, stored):
    lines = depths(stored)
    if not lines:
        return
    picture.heading("CPU of the recorder for each sample, by the depth of the stack", "µs, section recorder. Both axes are logarithmic.")
    top, tall = picture.height + 6, 220
    values = [us for _, points in lines for _, us in points]
    across = Scale(min(depth for _, points in lines for depth, _ in points) * 0.8, max(depth for _, points in lines for depth, _ in points) * 1.1, True)
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def down(us):
        return top + tall * (high - math.log10(us)) / max(1, high - low)

    for power in range(low, high + 1):
        picture.line(LEFT, down(10 ** power), WIDTH - RIGHT, down(10 ** power), "axis")
        picture.text(LEFT - 14, down(10 ** power) + 4, "%s µs" % many(10 ** power), "note", "end")
    for depth in sorted({depth for _, points in lines for depth, _ in points}):
        picture.text(across.x(depth), top + tall + 20, "%s frames" % many(depth), "note", "middle")
    places = spread([down(points[-1][1]) for _, points in lines])
    for (tool, points), y in zip(lines, places):
        drawn = [(across.x(depth), down(us)) for depth, us in points]
        picture.path(drawn, kind_of(tool))
        for x, at in drawn:
            picture.dot(x, at, kind_of(tool))
        picture.text(WIDTH - RIGHT + 14, y + 4, "%s: %s µs" % (LABELS.get(tool, tool), shown(points[-1][1], 0)))
    picture.height = top + tall + 40


def page_panel(picture, stored):
    try:
        recordings = stored.rows(["page"], "recordings")
    except Missing:
        return
    picture.heading("Until a recording is painted in Chromium", "ms, section page. Phlox: its own page. speedscope: the same recording in its own format.")
    longest = max([row["median_ms"] for one in recordings for row in one["open"] if "median_ms" in row] or [1])
    for one in sorted(recordings, key=lambda recording: recording["stretches"]):
        picture.height += 16
        picture.text(16, picture.height, "%s rows, %s threads, %s stacks" % tuple(many(one[key]) for key in ("stretches", "threads", "stacks")), "note")
        picture.height += 6
        for row in one["open"]:
            y = picture.height
            picture.text(LEFT - 14, y + 16, "Phlox" if row["tool"] == OUTSIDE else row["tool"], "", "end")
            if "median_ms" in row:
                picture.bar(LEFT, y + 4, (WIDTH - RIGHT - LEFT) * row["median_ms"] / longest, 16, kind_of(row["tool"]))
            words = "%s ms (%s to %s)" % tuple(many(row[key]) for key in ("median_ms", "low", "high")) if "median_ms" in row else "its tab crashed after %s s" % many(row["crashed_s"])
            picture.text(WIDTH - RIGHT + 14 if "median_ms" in row else LEFT + 4, y + 16, words)
            picture.height += LINE
    picture.height += 10


def scale(stored):
    picture = Picture("CPU for each sample by depth of the stack, and how soon the page of a recording is painted")
    depth_panel(picture, stored)
    page_panel(picture, stored)
    return picture.svg()


PICTURES = {"bench-truth.svg": truth, "bench-cost.svg": cost, "bench-scale.svg": scale}


def draw(results):
    """{file name: SVG}."""
    return {file: make(Stored(results)) for file, make in PICTURES.items()}
