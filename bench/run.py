#!/usr/bin/env python3
"""The benchmarks: Phlox and its peers on the same targets, in the same run.

    bench/run.py [SECTION...] [--quick] [--versions 3.12] [--users root,NAME] [--no-peers] [--part SHARE] [--only TARGET]
                 [--rate HZ] [--way kernel] [--store-as NAME]

Sections: truth, cost, recorder, ten-minutes, speed, at-once, dump, report, native, services, crowds, kernel, requests, import,
export, page, conclusions, start and hosts (all by default). Each stores its numbers in bench/results/SECTION.json. Then docs/benchmarks.md, its
three pictures and bench/results/tables.md are written from all stored results. So you can measure one section at a time, on a
quiet machine. --document-only writes them without measuring. --quick takes about a minute for each section and stores nothing.

--store-as NAME stores the results as a further run of the section, under that name. For truth and cost of the other versions, and
of a free-threaded build:
    bench/run.py truth cost --versions 3.8,3.9,3.10,3.14,3.15,3.13t --no-peers --store-as 'other Pythons'
For the truth of sampling in the kernel:
    bench/run.py truth --way kernel --users root --versions 3.8,3.11,3.12,3.13,3.14,3.15,3.13t --no-peers --store-as 'in the kernel'
Create ordinary users first (useradd). You must be root to run programs as them.
"""
import argparse
import datetime
import json
import os
import platform
import shlex
import signal
import subprocess
import sys

from harness import conclusions, crowds, everyday, hosts, imports, kernel, native, page, pictures, requests, services, start, stored, summary, tables
from harness.sections import SECTIONS, Settings
from harness.target import find_pythons

SECTIONS.update(everyday.SECTIONS, native=native.native, services=services.services, crowds=crowds.crowds, kernel=kernel.kernel, requests=requests.requests, **imports.SECTIONS, page=page.page, conclusions=conclusions.conclusions, start=start.start, hosts=hosts.hosts)
tables.TABLES.update(everyday.TABLES, native=native.document, services=services.document, crowds=crowds.document, kernel=kernel.document, requests=requests.document, **imports.TABLES, page=page.document, conclusions=conclusions.document, start=start.document, hosts=hosts.document)

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RESULTS = os.path.join(ROOT, "bench", "results")


def machine():
    model = "unknown CPU"
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return "%s, %d CPUs, Linux %s" % (model, os.cpu_count(), platform.release())


def commit():
    """The commit of this tree, from which the measured phlox is built unless --phlox says otherwise; "" without git."""
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def brief(section, row):
    words = []
    for key, value in row.items():
        if key == "error" and not value:
            continue
        words.append("%s=%s" % (key, "%.4g" % value if isinstance(value, float) else value))
    print("%-8s %s" % (section, " ".join(words)), flush=True)


def parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--phlox", default=os.path.join(ROOT, "build", "release", "phlox"))
    parser.add_argument("--reading", default=os.path.join(ROOT, "build", "release", "bench", "reading"),
                        help="bench/reading, for the stopped reference (make bench-reading builds it)")
    parser.add_argument("--pythons", nargs="*", help="3.12=/path/python3.12 ..., default: pyenv's, then what tools/get-pythons.sh has listed")
    parser.add_argument("--versions", default="3.11,3.12,3.13", help="such as 3.8,3.13t (default: %(default)s)")
    parser.add_argument("--users", default=None, help="default: root and phloxbench if it exists, or just you")
    parser.add_argument("--cache", default=os.environ.get("PHLOX_BENCH_CACHE", "/var/tmp/phlox-bench"))
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--part", type=float, default=1.0, metavar="SHARE", help="section truth: take this share of the samples")
    parser.add_argument("--only", metavar="TARGET", help="section truth: hard 50, hard 200 or leaf; import: dwarf, fp, 'dwarf -z' or 'dwarf -a'; kernel: targets whose names begin with this; requests: only this profiler, with more pairs; conclusions: a program, a script or a topic")
    parser.add_argument("--rate", type=int, metavar="HZ", help="section truth: only 5000 or only 1000")
    parser.add_argument("--way", choices=["kernel"], help="section truth: phlox record --way kernel")
    parser.add_argument("--store-as", default="", metavar="NAME", help="store these results as a further run, and keep the earlier ones")
    parser.add_argument("--document-only", action="store_true", help="measure nothing; write the documents from the stored results")
    return parser


def settings_of(options, fail):
    """The options of the command line; `fail` reports what is wrong with them, and does not return."""
    unknown = set(options.sections) - set(SECTIONS)
    if unknown:
        fail("no such section: %s (there are %s)" % (", ".join(sorted(unknown)), ", ".join(SECTIONS)))
    pythons = find_pythons(options.pythons)
    versions = [v for v in options.versions.split(",") if v in pythons]
    missing = [v for v in options.versions.split(",") if v not in pythons]
    if missing:
        fail("no interpreter for %s (give --pythons or --versions)" % ", ".join(missing))
    if not os.access(options.phlox, os.X_OK):
        fail("no phlox at %s: make build first" % options.phlox)
    users = options.users.split(",") if options.users else default_users()
    return Settings(os.path.abspath(options.phlox), os.path.abspath(options.reading), pythons, versions, users, options.cache, options.quick,
                    not options.no_peers, brief, options.part, options.only, options.way == "kernel", options.rate)


def measure(options, settings):
    os.makedirs(options.cache, exist_ok=True)
    os.makedirs(RESULTS, exist_ok=True)
    for name in options.sections or SECTIONS:
        load = os.getloadavg()[0]
        if load > summary.QUIET:
            print("%s: the load is %.1f; slow-downs measured now are worth little" % (name, load), file=sys.stderr)
        kept = {"command": "bench/run.py " + shlex.join(sys.argv[1:]), "machine": machine(), "load": "%.2f" % load,
                "date": datetime.date.today().isoformat(), "commit": commit(), "data": SECTIONS[name](settings)}
        if options.quick:
            continue
        label = "@" + options.store_as.replace(" ", "-") if options.store_as else ""
        with open(os.path.join(RESULTS, name + label + ".json"), "w") as file:
            json.dump(kept, file, indent=1)


def documents():
    """{path in the tree: text} of all documents generated from the stored results."""
    results = stored.load(RESULTS, SECTIONS)
    drawn = {os.path.join("docs", "images", name): text for name, text in pictures.draw(results).items()}
    return {os.path.join("docs", "benchmarks.md"): summary.document(results), os.path.join("bench", "results", "tables.md"): tables.document(results), **drawn}


def main():
    # A shell without job control starts background commands with SIGINT ignored, and recordings are ended by it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    arguments = parser()
    options = arguments.parse_args()
    if not options.document_only:
        measure(options, settings_of(options, arguments.error))
    if options.quick:
        return
    for path, text in documents().items():
        with open(os.path.join(ROOT, path), "w") as file:
            file.write(text)


def default_users():
    if os.geteuid() != 0:
        return ["you"]
    with open("/etc/passwd") as file:
        return ["root"] + (["phloxbench"] if any(line.startswith("phloxbench:") for line in file) else [])


if __name__ == "__main__":
    main()
