"""Recordings made for a test, exported as pages, and what can be seen of a page in a browser."""
import html.parser
import importlib.util
import json
import random
import sqlite3
import subprocess

from pictures import BUILD, ROOT

# Of Chromium.
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]

_spec = importlib.util.spec_from_file_location("synthetic", ROOT / "bench" / "recording" / "synthetic.py")
synthetic = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(synthetic)


def phlox(*arguments):
    done = subprocess.run([BUILD / "phlox", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def report(recording, *choices):
    """Shows work, as the page does, unless the choices say otherwise."""
    if "--show" not in choices:
        choices = (*choices, "--show", "work")
    return json.loads(phlox("report", "--json", "--top", 1000000, *choices, recording).stdout)


def export(recording, page, *choices):
    phlox("export", recording, "-o", page, *choices)
    return page


def add_waits(recording, seed=1):
    """Half of the waits of a synthetic recording know what they were for and who ended them."""
    source = random.Random(seed)
    db = sqlite3.connect(recording)
    threads, stacks = (db.execute(f"SELECT max(id) FROM {table}").fetchone()[0] for table in ["thread", "stack"])
    wait_targets = [("socket", "10.0.0.5:5432", None), ("socket", "10.0.0.6:80", None), ("client", "127.0.0.1:8000", "127.0.0.1:40001"),
               ("client", "127.0.0.1:8000", "127.0.0.1:40002"), ("file", "/var/log/app.log", None), ("pipe", None, "worker.py (12)"), ("pipe", None, "worker.py (13)")]
    db.executemany("INSERT INTO wait_target VALUES (?, ?, ?, ?)", [(i, *row) for i, row in enumerate(wait_targets, 1)])
    wakers = [(source.randint(1, threads), source.choice([None, source.randrange(1, stacks)]), None) for _ in range(30)]
    wakers += [(None, None, f"sender ({number})") for number in (7, 8)]
    db.executemany("INSERT INTO waker VALUES (?, ?, ?, ?, ?)", [(i, *row, "thread" if row[0] else "process") for i, row in enumerate(wakers, 1)])
    for state, call, quality, cpu_number in db.execute("SELECT id, system_call, quality, cpu_number FROM state WHERE cpu = 3 AND gil = 1").fetchall():
        told = []
        for _ in range(12):
            row = (3, 1, 0, call, quality, cpu_number, source.choice([None, source.randint(1, len(wakers))]), source.choice([None, source.randint(1, len(wait_targets))]))
            told.append(db.execute("INSERT INTO state (cpu, gil, collecting, system_call, quality, cpu_number, waker, wait_target) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row).lastrowid)
        for (sample,) in db.execute("SELECT rowid FROM sample WHERE state = ?", (state,)).fetchall():
            if source.random() < 0.5:
                db.execute("UPDATE sample SET state = ? WHERE rowid = ?", (source.choice(told), sample))
    db.commit()


def add_fork(recording):
    """The second process of a synthetic recording becomes a child that inherited frames of its parent."""
    db = sqlite3.connect(recording)
    # The first thread of the second process; what it is often seen in becomes what multiprocessing calls in a child.
    db.execute("UPDATE thread SET process = 2, tid = (SELECT pid FROM process WHERE id = 2) WHERE id = 2")
    caller, child = db.execute("""
        WITH RECURSIVE up (stack, wall) AS (
          SELECT stack, sum(wall_ns) FROM sample WHERE thread = 2 GROUP BY stack
          UNION ALL SELECT parent, wall FROM up JOIN stack ON stack.id = up.stack WHERE parent IS NOT NULL)
        SELECT above.frame, stack.frame FROM up JOIN stack ON stack.id = up.stack JOIN stack AS above ON above.id = stack.parent
        JOIN frame ON frame.id = stack.frame JOIN frame AS outer ON outer.id = above.frame
        WHERE frame.kind = 0 AND outer.kind = 0 AND above.parent IS NOT NULL AND frame.id <> outer.id
        GROUP BY stack.id ORDER BY sum(wall) DESC LIMIT 1""").fetchone()
    db.execute("UPDATE frame SET function = '_launch', qualified_name = 'Popen._launch', file = '/usr/lib/python3.12/multiprocessing/popen_fork.py' WHERE id = ?", (caller,))
    db.execute("UPDATE frame SET function = '_bootstrap', qualified_name = 'BaseProcess._bootstrap', file = '/usr/lib/python3.12/multiprocessing/process.py' WHERE id = ?", (child,))
    db.commit()


class _Scripts(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.texts, self.metas, self.current = {}, {}, None

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "script":
            self.current = given.get("id")
        if tag == "meta" and "http-equiv" in given:
            self.metas[given["http-equiv"]] = given["content"]

    def handle_data(self, data):
        if self.current:
            self.texts[self.current] = self.texts.get(self.current, "") + data

    def handle_endtag(self, tag):
        self.current = None


def parts(page):
    """The page's scripts by id, and its policy."""
    parser = _Scripts()
    parser.feed(page.read_text())
    return parser.texts, parser.metas


def settled(page):
    """Waits until every question is answered and drawn. (Not by wait_for_function: the page's policy forbids what it does.)"""
    page.wait_for_selector("body[aria-busy=false]", state="attached")
    return page


def whole(page):
    """Of what everything shown is the whole, in words."""
    return settled(page).locator(".whole").inner_text()


def chips(page):
    return settled(page).locator(".chips .chip span").all_inner_texts()


def table_rows(page):
    """All rows of the table in sight, as "Copy table" gives them, by column."""
    settled(page)
    page.locator("button", has_text="Copy table").click()
    head, *lines = page.evaluate("window.copied").split("\n")
    names = head.split("\t")
    return [dict(zip(names, line.split("\t"))) for line in lines]


def check_leads_to_the_timeline(page, row):
    """A click on the first such row zooms the timeline, and "back" undoes that."""
    assert "timeline.zoom" not in page.url
    page.locator(row).first.click()
    settled(page)
    page.wait_for_function("location.hash.includes('timeline.zoom')")
    page.go_back()
    settled(page)
    assert "timeline.zoom" not in page.url


def hot_function(recording):
    """A Python function of which there is one of that name, with a share that is neither nothing nor all."""
    rows = report(recording)["functions_by_total"]
    names = [row["name"] for row in rows]
    return next(row for row in rows if row["kind"] == "python" and names.count(row["name"]) == 1 and 0.05 < row["total"]["share"] < 0.8)


# What "copy" copies, for a browser without a clipboard.
CATCH_COPIES = "navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); };"


def weight_words(ns):
    """As web/src/words.ts has it."""
    if ns == 0:
        return "0 s"
    if abs(ns) >= 119_500_000_000:
        seconds = round(abs(ns) / 1e9)
        words = f"{seconds // 60} min {seconds % 60} s" if seconds < 7200 else f"{seconds // 3600} h {seconds % 3600 // 60} min"
        return ("-" if ns < 0 else "") + words
    size, name = next(((size, name) for size, name in [(1e9, "s"), (1e6, "ms"), (1e3, "µs")] if abs(ns) >= size * 0.9995), (1, "ns"))
    return f"{round(ns)} ns" if size == 1 else f"{three_digits(ns / size)} {name}"


def share_words(part, all_of_it):
    if all_of_it <= 0 or part == 0:
        return "0 %"
    percent = part / all_of_it * 100
    return "< 0.01 %" if percent < 0.01 else f"{percent_digits(percent)} %"


def three_digits(value):
    size = abs(value)
    return f"{value:.{0 if size >= 99.95 else 1 if size >= 9.995 else 2}f}"


def percent_digits(percent):
    return f"{percent:.{2 if abs(percent) < 0.995 else 1}f}"


def range_words(low, high):
    return f"{percent_digits(low * 100)} to {percent_digits(high * 100)} %"
