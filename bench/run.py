#!/usr/bin/env python3
"""The benchmarks of issue "the spine": phlox beside its peers on the same targets, in the same run.

    bench/run.py [SECTION...] [--quick] [--versions 3.12] [--users root,NAME] [--no-peers] [--part SHARE] [--only TARGET]
                 [--rate HZ] [--way kernel] [--store-as NAME]

Sections: truth, cost, recorder, ten-minutes, speed, at-once, dump, report, native, services, crowds, kernel, requests, import, export, page and conclusions (all by default). Each stores its numbers in
bench/results/SECTION.json and docs/benchmarks.md is written from what is stored, so that sections can be measured one by one, on a quiet machine. --quick
takes a minute or so a section and stores nothing. What is measured with --store-as NAME stands beside the rest in the
page, under that name: the other versions, and a free-threaded build, have their truth and cost so:
    bench/run.py truth cost --versions 3.8,3.9,3.10,3.14,3.15,3.13t --no-peers --store-as 'other Pythons'
And what --way kernel shows of itself:
    bench/run.py truth --way kernel --users root --versions 3.8,3.11,3.12,3.13,3.14,3.15,3.13t --no-peers --store-as 'in the kernel'
Ordinary users have to exist (useradd); root is needed to become them.
"""
import argparse
import datetime
import glob
import json
import os
import platform
import signal
import sys

from harness import conclusions, crowds, everyday, imports, kernel, native, page, requests, services, tables
from harness.sections import SECTIONS, Settings
from harness.target import find_pythons

SECTIONS.update(everyday.SECTIONS, native=native.native, services=services.services, crowds=crowds.crowds, kernel=kernel.kernel, requests=requests.requests, **imports.SECTIONS, page=page.page, conclusions=conclusions.conclusions)
tables.TABLES.update(everyday.TABLES, native=native.document, services=services.document, crowds=crowds.document, kernel=kernel.document, requests=requests.document, **imports.TABLES, page=page.document, conclusions=conclusions.document)

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def machine():
    model = "unknown CPU"
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return "%s, %d CPUs, Linux %s" % (model, os.cpu_count(), platform.release())


def brief(section, row):
    words = []
    for key, value in row.items():
        if key == "error" and not value:
            continue
        words.append("%s=%s" % (key, "%.4g" % value if isinstance(value, float) else value))
    print("%-8s %s" % (section, " ".join(words)), flush=True)


def main():
    # A shell without job control starts what it sends to the background with SIGINT ignored, and recordings end by it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
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
    parser.add_argument("--part", type=float, default=1.0, metavar="SHARE", help="this share of the samples of section truth")
    parser.add_argument("--only", metavar="TARGET", help="of section truth: hard 50, hard 200 or leaf; of import: dwarf, fp, 'dwarf -z' or 'dwarf -a'; of kernel: the targets whose names begin so; of requests: the profiler, with more pairs; of conclusions: a program, a script or a topic")
    parser.add_argument("--rate", type=int, metavar="HZ", help="of section truth: 5000 or 1000 alone")
    parser.add_argument("--way", choices=["kernel"], help="of section truth: phlox record --way kernel")
    parser.add_argument("--store-as", default="", metavar="NAME", help="keep these results beside the others, not instead of them")
    parser.add_argument("--document-only", action="store_true", help="write docs/benchmarks.md from what is stored")
    options = parser.parse_args()
    unknown = set(options.sections) - set(SECTIONS)
    if unknown:
        parser.error("no such section: %s (there are %s)" % (", ".join(sorted(unknown)), ", ".join(SECTIONS)))

    pythons = find_pythons(options.pythons)
    versions = [v for v in options.versions.split(",") if v in pythons]
    missing = [v for v in options.versions.split(",") if v not in pythons]
    if missing and not options.document_only:
        parser.error("no interpreter for %s (give --pythons or --versions)" % ", ".join(missing))
    users = options.users.split(",") if options.users else default_users()
    settings = Settings(os.path.abspath(options.phlox), os.path.abspath(options.reading), pythons, versions, users, options.cache, options.quick,
                        not options.no_peers, brief, options.part, options.only, options.way == "kernel", options.rate)
    if not options.document_only and not os.access(options.phlox, os.X_OK):
        parser.error("no phlox at %s: make build first" % options.phlox)
    store = os.path.join(ROOT, "bench", "results")
    os.makedirs(store, exist_ok=True)
    os.makedirs(options.cache, exist_ok=True)
    if not options.document_only:
        for name in options.sections or SECTIONS:
            load = os.getloadavg()[0]
            if load > 0.5:
                print("%s: the load is %.1f; slow-downs measured now are worth little" % (name, load), file=sys.stderr)
            stored = {"command": "bench/run.py " + " ".join(sys.argv[1:]), "machine": machine(), "load": "%.2f" % load,
                      "date": datetime.date.today().isoformat(), "data": SECTIONS[name](settings)}
            if options.quick:
                continue
            label = "@" + options.store_as.replace(" ", "-") if options.store_as else ""
            with open(os.path.join(store, name + label + ".json"), "w") as file:
                json.dump(stored, file, indent=1)
    if options.quick:
        return
    results = {}
    for path in sorted(glob.glob(os.path.join(store, "*.json"))):
        name = os.path.basename(path)[:-len(".json")]
        if name.partition("@")[0] in SECTIONS:
            with open(path) as file:
                results[name] = json.load(file)
    with open(os.path.join(ROOT, "docs", "benchmarks.md"), "w") as file:
        file.write(tables.document(results))


def default_users():
    if os.geteuid() != 0:
        return ["you"]
    with open("/etc/passwd") as file:
        return ["root"] + (["phloxbench"] if any(line.startswith("phloxbench:") for line in file) else [])


if __name__ == "__main__":
    main()
