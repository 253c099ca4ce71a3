"""The section `conclusions`: programs that know their own truth (bench/conclusions), and whether phlox's
first screens about them are right, silent or wrong. The claims are in conclusion_cases.py, their checks in
conclusion_judges.py."""
import html.parser
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile

from . import conclusion_judges as judges
from .conclusion_cases import CASES
from .services import python_of
from .tables import table

PROGRAMS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "conclusions")
HERE = os.path.dirname(os.path.abspath(__file__))


class Scripts(html.parser.HTMLParser):
    """A page's scripts by id."""

    def __init__(self):
        super().__init__()
        self.texts, self.current = {}, None

    def handle_starttag(self, tag, attributes):
        self.current = dict(attributes).get("id") if tag == "script" else None

    def handle_data(self, data):
        if self.current:
            self.texts[self.current] = self.texts.get(self.current, "") + data

    def handle_endtag(self, tag):
        self.current = None


class Bench:
    def __init__(self, phlox, python, folder, scale=1.0):
        self.phlox, self.python, self.folder, self.scale = phlox, python, folder, scale
        self.page_words = os.path.join(folder, "page_words.js")
        subprocess.run(["esbuild", os.path.join(HERE, "page_words.ts"), "--bundle", "--platform=node", "--target=node12", "--log-level=warning",
                        "--outfile=" + self.page_words], check=True)

    def run(self, *words):
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise RuntimeError("%s: %s" % (" ".join(map(str, words[:3])), done.stderr.strip()[-300:]))
        return done

    def path(self, name):
        return os.path.join(self.folder, name)

    def recorded(self, case, file, *edition):
        """(the truth that the program printed, the recorder's output)"""
        environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
        meanwhile = subprocess.Popen(["sh", "-c", case.meanwhile], stdout=subprocess.DEVNULL, start_new_session=True) if case.meanwhile else None
        try:
            done = subprocess.run([self.phlox, "record", "--force", *case.options, "-o", file, "--", self.python, os.path.join(PROGRAMS, case.script + ".py"),
                                   case.program, str(case.seconds * self.scale), *edition], capture_output=True, text=True, timeout=300, env=environment)
        finally:
            if meanwhile:
                os.killpg(meanwhile.pid, signal.SIGKILL)
                meanwhile.wait()
        lines = [line for line in done.stdout.splitlines() if line.startswith("TRUTH ")]
        if done.returncode != 0 or not lines:
            raise RuntimeError("%s: %s" % (case.name, done.stderr.strip()[-500:]))
        return json.loads(lines[-1][len("TRUTH "):]), done.stderr

    def page(self, file):
        """The content of the recording's page, as read by the page's own model."""
        page, given = self.path("page.html"), self.path("page.json")
        self.run(self.phlox, "export", file, "-o", page)
        parser = Scripts()
        with open(page) as text:
            parser.feed(text.read())
        with open(given, "w") as out:
            json.dump({"head": json.loads(parser.texts["phlox-head"]), "packed": parser.texts["phlox-columns"]}, out)
        return json.loads(self.run("node", self.page_words, given).stdout)

    def report(self, file, *choices):
        return json.loads(self.run(self.phlox, "report", "--json", "--top", 1000, *choices, file).stdout)

    def evidence(self, case):
        file = self.path("a.phlox")
        if case.before_after:
            after = self.path("b.phlox")
            truth, said = self.recorded(case, file, "before")
            after_truth, _ = self.recorded(case, after, "after")
            return {"truth": truth, "after": after_truth, "record": said, "diff": self.run(self.phlox, "diff", file, after).stdout,
                    "diff_json": json.loads(self.run(self.phlox, "diff", "--json", "--top", 1000, file, after).stdout)}
        truth, said = self.recorded(case, file)
        return {"truth": truth, "record": said, "cpus": os.cpu_count(), "report": self.run(self.phlox, "report", file).stdout, "json": self.report(file),
                "all": self.report(file, "--show", "everything"), "cpu": self.report(file, "--weight", "cpu"), "page": self.page(file), "spans": spans_of(file)}

    def judge(self, case):
        """A row of the results."""
        try:
            evidence = self.evidence(case)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            return {"program": case.name, "topic": case.topic, "verdict": judges.WRONG, "claims": [["runs", judges.WRONG, str(error)[-300:]]]}
        verdicts = judges.judged(evidence, case.claims + (() if case.before_after else judges.EVERYWHERE))
        return {"program": case.name, "topic": case.topic, "verdict": judges.of_all(verdicts), "claims": verdicts}


def spans_of(file):
    """Wall seconds, by state, of short rows without samples between two rows in which the thread ran in the same stack."""
    database = sqlite3.connect(file)
    try:
        rows = database.execute("SELECT s.thread, s.start_us, s.wall_ns, s.samples, s.stack, t.cpu, t.system_call FROM sample s JOIN state t ON t.id = s.state "
                                "ORDER BY s.thread, s.start_us").fetchall()
    finally:
        database.close()
    blocked = 0
    for before, at, after in zip(rows, rows[1:], rows[2:]):
        ran = before[0] == at[0] == after[0] and before[5] == after[5] == 1 and before[4] == at[4] == after[4]
        if ran and at[3] == 0 and at[5] == 3 and at[6] is None:
            blocked += at[2]
    return {"blocked": blocked / 1e9}


def conclusions(settings):
    result = {"conclusions": []}
    folder = tempfile.mkdtemp(prefix="phlox-bench-", dir="/var/tmp")
    os.chmod(folder, 0o755)
    try:
        bench = Bench(settings.phlox, python_of(), folder, settings.scaled(1.0, 0.5))
        for case in CASES:
            if settings.quick and not case.small or settings.only and settings.only not in (case.name, case.script, case.topic):
                continue
            row = bench.judge(case)
            settings.log("conclusions", {"program": row["program"], "topic": row["topic"], "verdict": row["verdict"],
                                         "why": "; ".join("%s: %s" % (verdict, words) for _, verdict, words in row["claims"] if verdict != judges.RIGHT)})
            # Stored results contain no paths of this machine.
            row["claims"] = [[name, verdict, words.replace(folder, "").replace(PROGRAMS + "/", "")] for name, verdict, words in row["claims"]]
            result["conclusions"].append(row)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    counts = {kind: sum(row["verdict"] == kind for row in result["conclusions"]) for kind in (judges.RIGHT, judges.SILENT, judges.WRONG)}
    settings.log("conclusions", dict(counts, programs=len(result["conclusions"])))
    return result


def document(data):
    rows = data["conclusions"]
    claims = [verdict for row in rows for _, verdict, _ in row["claims"]]

    def counted(verdicts):
        return [len(verdicts)] + [sum(verdict == kind for verdict in verdicts) for kind in (judges.RIGHT, judges.SILENT, judges.WRONG)]

    text = ("## Conclusions\n\nPrograms that know the truth about themselves (`bench/conclusions`), and what Phlox says about them: on the first screens of `record` and `report`, "
            "in JSON, in the page (as the page's own model reads it), and in `diff` of pairs. A claim is right, wrong, or silent if Phlox does not make it. A program counts as its worst claim.\n\n")
    text += table(["", "all", "right", "silent", "wrong"], [["programs"] + counted([row["verdict"] for row in rows]), ["claims"] + counted(claims)])
    bad = [[row["program"], row["verdict"], "; ".join("%s: %s" % (verdict, words.replace("|", "/").replace("<", "&lt;")) for _, verdict, words in row["claims"] if verdict != judges.RIGHT)]
           for row in rows if row["verdict"] != judges.RIGHT]
    return text + ("\n" + table(["program", "verdict", "why"], bad) if bad else "")
