"""The section `page`: the size of a large recording's page, how soon it is painted compared with speedscope
on the same data, and how soon it responds. Timed in the browser (page_timings.py, page_timings.js)."""
import contextlib
import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading

from . import install
from .statistics import bootstrap, median
from .tables import number, table
from .target import Target

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SPEEDSCOPE = "1.25.0"
# A real program for ten minutes; no section native needs another version.
DATAFLOW = ("dataflow.py", [2])
VERSIONS = ("3.12", "3.11", "3.13")

# (view, its name, its question, rest of its address): shown while filters change.
VIEWS = [("flame", "flame graph and timeline", "column", ""), ("functions", "functions", "table", ""), ("chart", "flame chart", "segments", ""),
         ("bottom-up", "bottom-up", "bottomUp", ""), ("sandwich", "sandwich", "sandwich", "&sandwich.of=20")]
QUESTIONS = ["totals", "threads", "densities"]  # asked by every view
# (what, address, element, gesture)
REDRAWS = [("timeline: zoom", "view=flame", ".timeline .lanes canvas", "zoom"), ("timeline: pan", "view=flame&timeline.zoom=%s", ".timeline .lanes canvas", "pan"),
           ("flame chart and timeline: zoom", "view=chart", ".chart .lanes canvas", "zoom"),
           ("flame chart and timeline: pan", "view=chart&timeline.zoom=%s", ".chart .lanes canvas", "pan"),
           ("flame graph: zoom", "view=flame", ".flames", "into"), ("flame graph: scroll", "view=flame", ".flames", "scroll")]


def browser_python():
    """The Python of the tests' environment, which has playwright."""
    venv = os.environ.get("PHLOX_VENV") or os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "phlox", "venv")
    python = os.path.join(venv, "bin", "python")
    if not os.path.exists(python):
        raise RuntimeError("no %s: tools/install-test-deps.sh makes it" % python)
    return python


def timings(*words):
    done = subprocess.run([browser_python(), os.path.join(BENCH, "harness", "page_timings.py"), *words], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def speedscope(cache):
    """The folder of speedscope's own page."""
    folder = os.path.join(cache, "speedscope-" + SPEEDSCOPE)
    if not os.path.exists(folder):
        with tempfile.TemporaryDirectory(dir=cache) as made:
            subprocess.run(["npm", "pack", "--silent", "speedscope@" + SPEEDSCOPE], cwd=made, check=True, stdout=sys.stderr)
            subprocess.run(["tar", "xf", "speedscope-%s.tgz" % SPEEDSCOPE], cwd=made, check=True)
            os.rename(os.path.join(made, "package"), folder)
    return os.path.join(folder, "dist", "release")


@contextlib.contextmanager
def served(folder):
    """Serves the folder on a local port: speedscope loads a profile by address only from a server."""
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield "http://127.0.0.1:%d" % server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def made(samples, threads, stacks, depth):
    def make(settings, folder):
        path = os.path.join(folder, "made-%d.phlox" % samples)
        part = 50 if settings.quick else 1
        words = ["--samples", samples // part, "--threads", max(8, threads // part), "--stacks", stacks // part, "--depth", depth // part]
        subprocess.run([sys.executable, os.path.join(BENCH, "recording", "synthetic.py"), path, *map(str, words)], check=True)
        return path
    return make


def ten_minutes(settings, folder):
    """Kept in the cache, since it takes ten minutes."""
    seconds = settings.scaled(600, 5)
    path = os.path.join(folder if settings.quick else settings.cache, "dataflow-%d.phlox" % seconds)
    part = path[:-len(".phlox")] + ".part.phlox"
    if not os.path.exists(path):
        version = next((v for v in VERSIONS if v in settings.pythons), None)
        if version is None:
            raise RuntimeError("the section page needs CPython " + " or ".join(VERSIONS))
        python = install.packages(settings.cache, settings.pythons[version], version)
        with Target(python, *DATAFLOW) as target:
            subprocess.run([settings.phlox, "record", "-q", "--native", "-r", "1000", "-d", str(seconds), "-p", str(target.pid), "-o", part], check=True)
        os.rename(part, path)
    return path


def counts(settings, recording):
    import sqlite3
    with contextlib.closing(sqlite3.connect(recording)) as db:
        one = lambda what: db.execute("SELECT " + what).fetchone()[0]
        (end,) = db.execute("SELECT max(start_us * 1000 + wall_ns) FROM sample").fetchone()
        return {"samples": one("sum(samples) FROM sample"), "stretches": one("count(*) FROM sample"), "threads": one("count(*) FROM thread"),
                "stacks": one("count(*) FROM stack"), "seconds": end / 1e9}


def export(settings, recording, output, *words):
    subprocess.run([settings.phlox, "export", "-q", recording, *words, "-o", output], check=True)
    return os.path.getsize(output)


def summary(times):
    middle, low, high = bootstrap(times, median)
    ordered = sorted(times)
    return {"runs": len(times), "median_ms": middle, "low": low, "high": high, "p95_ms": ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))], "worst_ms": ordered[-1]}


def opening(settings, page, profile, folder):
    """The page, and both ways to open speedscope, interleaved."""
    home = speedscope(settings.cache)
    base = os.path.join(folder, "speedscope")
    if not os.path.exists(base):
        shutil.copytree(home, base)
    shutil.copy(profile, os.path.join(base, "profile.json"))
    # Same as `speedscope FILE` of its package.
    import base64
    script = os.path.join(folder, "profile.js")
    with open(profile, "rb") as file, open(script, "w") as out:
        out.write("speedscope.loadFileFromBase64(%s, %s)" % (json.dumps("profile.json"), json.dumps(base64.b64encode(file.read()).decode())))
    with served(base) as server:
        done = timings("open", str(settings.scaled(7, 1)), "phlox=file://" + page, "speedscope, from disk=file://%s/index.html#localProfilePath=%s" % (base, script),
                       "speedscope, from a server=%s/index.html#profileURL=%s/profile.json" % (server, server))
    return [{"tool": name, "browser": done["browser"], **(times if isinstance(times, dict) else summary(times))} for name, times in done["result"].items()]


def trails(seconds, threads, count):
    """Filters not used before: a thread in and out, a time range, a function out, a state."""
    end = seconds * 1e9
    out = []
    for i in range(count):
        part = (i % 7 + 1) / 10
        out += ["f=in.time.%d-%d" % (end * 0.03 * (i % 8), end * (0.03 * (i % 8) + part) + i), "f=out.thread.%d" % (i % threads), "f=out.function.%d" % (3 + i),
                "f=in.thread.%d" % (i % min(threads, 8)), "f=in.state.running&f=out.function.%d" % (40 + i)]
    return out


def filtering(settings, page, facts, folder):
    rows = []
    for view, name, question, more in VIEWS:
        fragments = ["view=%s%s&%s" % (view, more, trail) for trail in trails(facts["seconds"], facts["threads"], settings.scaled(6, 1))]
        job = os.path.join(folder, "job.json")
        with open(job, "w") as file:
            json.dump(["view=%s%s" % (view, more)] + fragments, file)
        answers = timings("filters", page, job)["result"][1:]
        row = {"view": name, "question": question, **summary([answer["drawn"] for answer in answers])}
        for one in [question] + QUESTIONS:
            told = [answer["model"][one] for answer in answers if one in answer["model"]]
            row["own_ms" if one == question else one + "_ms"] = median(told) if told else None
        rows.append(row)
    return rows


def redrawing(settings, page, facts, folder):
    end = facts["seconds"] * 1e9
    job = os.path.join(folder, "job.json")
    with open(job, "w") as file:
        json.dump([[address % ("%d-%d" % (end * 0.4, end * 0.45)) if "%s" in address else address, selector, kind, settings.scaled(60, 8)]
                   for _, address, selector, kind in REDRAWS], file)
    return [{"what": what, **summary(times)} for (what, *_), times in zip(REDRAWS, timings("redraws", page, job)["result"])]


# speedscope's tab crashes on the first; the second is one that it can hold.
RECORDINGS = (("made: a million samples", made(1_000_000, 500, 100_000, 1000)), ("made: a tenth of that", made(100_000, 50, 10_000, 1000)),
              ("dataflow.py, ten minutes at 1 kHz, --native", ten_minutes))


def page(settings):
    result = {"recordings": []}
    folder = tempfile.mkdtemp(prefix="phlox-bench-", dir="/var/tmp")
    try:
        for label, make in RECORDINGS:
            recording = make(settings, folder)
            facts = {"recording": label, **counts(settings, recording)}
            html, profile = os.path.join(folder, "page.html"), os.path.join(folder, "profile.speedscope.json")
            facts["page_bytes"] = export(settings, recording, html)
            facts["speedscope_bytes"] = export(settings, recording, profile, "-f", "speedscope")
            facts["open"] = opening(settings, html, profile, folder)
            for row in facts["open"]:
                settings.log("page", row)
            facts["filters"] = filtering(settings, html, facts, folder)
            facts["redraws"] = redrawing(settings, html, facts, folder)
            for row in facts["filters"] + facts["redraws"]:
                settings.log("page", row)
            result["recordings"].append(facts)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def many(value):
    return "{:,}".format(value)


def document(data):
    text = ["## The page", "", "`phlox export -o page.html`, opened from disk in Chromium and timed by the browser's own clock. speedscope %s gets the same recording by `-f speedscope`, once as "
            "its own command does it (a script on disk) and once from a server on the same machine; the three take turns." % SPEEDSCOPE, "",
            "- *Painted*: ms from the start of the navigation until the picture is on the screen, with every view of the page in sight.",
            "- *Filters*: one is set that was not set before (a thread in or out, a time, a function out, a state). *All drawn*: ms until the timeline, the numbers and the view are drawn. "
            "The last four columns are medians of what the model needs of that: for the view's own question, the sums, the threads and the bins of the timeline.",
            "- *Redraws*: ms from the event to the end of painting, in which the page's thread did nothing else.", ""]
    for one in data["recordings"]:
        text += ["**%s**: %s samples in %s rows of %s threads, %s stacks, %.0f s. The page has %.1f MB, speedscope's file %.1f MB." % (
            one["recording"], many(one["samples"]), many(one["stretches"]), many(one["threads"]), many(one["stacks"]), one["seconds"],
            one["page_bytes"] / 1e6, one["speedscope_bytes"] / 1e6), ""]
        text.append(table(["opened in", "Chromium", "runs", "painted, median ms", "95 % interval", "worst ms"], [
            [r["tool"], r["browser"], "-", "its tab crashed after %.0f s" % r["crashed_s"], "-", "-"] if "crashed_s" in r else
            [r["tool"], r["browser"], r["runs"], number(r["median_ms"], "%.0f"), "%s to %s" % (number(r["low"], "%.0f"), number(r["high"], "%.0f")),
             number(r["worst_ms"], "%.0f")] for r in one["open"]]))
        text.append("Filters:\n")
        text.append(table(["view", "filters", "all drawn, median ms", "p95 ms", "own question", "sums", "threads", "bins"], [
            [r["view"], r["runs"], number(r["median_ms"], "%.0f"), number(r["p95_ms"], "%.0f"), number(r["own_ms"], "%.0f"), number(r["totals_ms"], "%.0f"),
             number(r["threads_ms"], "%.0f"), number(r["densities_ms"], "%.0f")] for r in one["filters"]]))
        text.append("Redraws:\n")
        text.append(table(["gesture", "redraws", "median ms", "p95 ms", "worst ms"], [
            [r["what"], r["runs"], number(r["median_ms"], "%.1f"), number(r["p95_ms"], "%.1f"), number(r["worst_ms"], "%.1f")] for r in one["redraws"]]))
    return "\n".join(text)
