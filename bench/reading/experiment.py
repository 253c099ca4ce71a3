#!/usr/bin/env python3
"""Runs the experiment of docs/decisions/0001: a target, perhaps neighbours, and the reader; prints one line for each case.

    experiment.py --reader build/release/bench/reading [--quick] [--only REGEX] [--user NAME] [--json FILE] [--list]
    experiment.py --reader ... --one --python PY --target hard.py --target-args 50 [--target-cpu 0] [-- reader's options]

Needs the three interpreters of the layout table (--pythons, PHLOX_PYTHONS, or pyenv's). As root it also runs cases as an
ordinary user (--user; create it with useradd). Standard library only.
"""
import argparse
import glob
import json
import math
import os
import re
import signal
import struct
import subprocess
import sys
import time

# Versions known to bench/reading/layout.h.
LAYOUTS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.13t", "3.14", "3.15")
HERE = os.path.dirname(os.path.abspath(__file__))
TARGETS = os.path.join(os.path.dirname(HERE), "targets")


def symbol(path, wanted):
    """Value of a dynamic symbol of a 64-bit little-endian ELF file, and whether the file is position-independent."""
    with open(path, "rb") as file:
        data = file.read()
    kind, = struct.unpack_from("<H", data, 16)
    offset, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size) for i in range(count)]
    for section in sections:
        if section[1] not in (2, 11):  # SHT_SYMTAB, SHT_DYNSYM
            continue
        strings = sections[section[6]]
        for at in range(section[4], section[4] + section[5], 24):
            name, = struct.unpack_from("<I", data, at)
            begin = strings[4] + name
            if data[begin:begin + len(wanted) + 1] == wanted.encode() + b"\0":
                value, = struct.unpack_from("<Q", data, at + 8)
                if value:
                    return value, kind == 3
    return None


def runtime_address(pid):
    seen = set()
    with open("/proc/%d/maps" % pid) as maps:
        for line in maps:
            parts = line.split()
            if len(parts) < 6 or parts[5] in seen or "python" not in os.path.basename(parts[5]):
                continue
            seen.add(parts[5])
            if not parts[5].startswith("/"):
                continue
            found = symbol(parts[5], "_PyRuntime")
            if found:
                return found[0] + (int(parts[0].split("-")[0], 16) if found[1] else 0)
    raise SystemExit("no _PyRuntime in process %d" % pid)


def as_user(user):
    if not user:
        return []
    # No capability, empty bounding set, no right to real time or to a better nice value.
    return ["prlimit", "--rtprio=0", "--nice=0", "setpriv", "--reuid", user, "--regid", user, "--clear-groups",
            "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]


class Case:
    def __init__(self, name, target, *, python="3.12", args=(), target_cpu=None, reader=(), neighbour=None, user=None,
                 samples=100000, versus=0, rounds=10):
        """versus: take this many samples of the same process stopped by ptrace, alternating with the reader's own."""
        self.versus, self.rounds = versus, rounds
        self.name, self.target, self.python, self.args = name, target, python, [str(a) for a in args]
        self.target_cpu, self.reader, self.neighbour, self.user = target_cpu, list(reader), neighbour, user
        self.samples = samples


def start_neighbours(case):
    """`free`: one spinner wherever the scheduler puts it; `pinned`: one on CPU 0; `all`: one on every CPU."""
    spin = [sys.executable, "-c", "while True: pass"]
    places = {None: [], "free": [None], "pinned": [0], "all": list(range(os.cpu_count()))}[case.neighbour]
    return [subprocess.Popen(as_user(case.user) + (["taskset", "-c", str(c)] if c is not None else []) + spin) for c in places]


def read_once(command, timeout):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=timeout, check=True)
    return json.loads(done.stdout)


def merge(results):
    """Sums of counts; averages of percentiles and shares, weighted by samples."""
    total = dict(results[0])
    if len(results) == 1:
        return total
    weights = [max(1, r["samples"]) for r in results]
    for key, value in results[0].items():
        values = [r[key] for r in results]
        if isinstance(value, bool) or isinstance(value, str):
            continue
        if isinstance(value, int):
            total[key] = sum(values)
        elif isinstance(value, float):
            total[key] = sum(values) if key == "seconds" else sum(v * w for v, w in zip(values, weights)) / sum(weights)
        elif isinstance(value, list):
            total[key] = [x for v in values for x in v][:5]
        elif key == "leaves":
            total[key] = {}
            for v in values:
                for name, count in v.items():
                    total[key][name] = total[key].get(name, 0) + count
        else:
            total[key] = {k: sum(v[k] * w for v, w in zip(values, weights)) / sum(weights) for k in value}
    return total


def run(case, reader, pythons, timeout=900):
    python = pythons[case.python]
    command = as_user(case.user)
    if case.target_cpu is not None:
        command += ["taskset", "-c", str(case.target_cpu)]
    command += [python, os.path.join(TARGETS, case.target), "3600"] + case.args
    target = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    neighbours = []
    try:
        line = target.stdout.readline()
        if not line.startswith("ready"):
            raise SystemExit("target did not start: %s" % command)
        pid = int(line.split()[1])
        neighbours = start_neighbours(case)
        time.sleep(0.2)
        base = as_user(case.user) + [reader, "--pid", str(pid), "--runtime", "%x" % runtime_address(pid),
                                     "--python", case.python]
        rounds = case.rounds if case.versus else 1
        own, stopped = [], []
        for _ in range(rounds):
            own.append(read_once(base + ["--samples", str(case.samples // rounds)] + case.reader, timeout))
            if case.versus:
                check = case.reader[case.reader.index("--check"):][:2] if "--check" in case.reader else []
                stopped.append(read_once(base + ["--samples", str(case.versus // rounds), "--way", "ptrace", "--rate", "5000"] +
                                         check, timeout))
        result = dict(merge(own), case=case.name, python=case.python)
        if stopped:
            reference = merge(stopped)
            result["tv"], result["tv_chance"] = variation(result["leaves"], reference["leaves"])
            result["stopped"] = {k: reference[k] for k in ("samples", "accepted", "impossible", "detached", "leaves", "late_100us")}
            # The difference between two halves of the same mode: the target's own variation.
            halves = [merge(own[i::2])["leaves"] for i in (0, 1)] if rounds > 1 else None
            if halves:
                result["tv_halves"], result["tv_halves_chance"] = variation(*halves)
        return result
    except subprocess.CalledProcessError as error:
        return {"case": case.name, "failed": error.returncode, "command": error.cmd}
    finally:
        for process in neighbours + [target]:
            process.kill()
            process.wait()
        target.stdout.close()


def shares(leaves):
    total = sum(leaves.values())
    return {name: count / total for name, count in leaves.items()} if total else {}


def variation(a, b):
    """Total variation between two sets of leaf counts, and its value by chance alone for samples of these sizes."""
    p, q = shares(a), shares(b)
    n, m = sum(a.values()), sum(b.values())
    names = set(p) | set(q)
    seen = sum(abs(p.get(x, 0) - q.get(x, 0)) for x in names) / 2
    chance = sum(math.sqrt(2 / math.pi * r * (1 - r) * (1 / n + 1 / m))
                 for r in ((a.get(x, 0) + b.get(x, 0)) / (n + m) for x in names)) / 2
    return seen, chance


def line_of(result):
    if "failed" in result:
        return "%-46s FAILED (%s)" % (result["case"], result["failed"])
    n = max(1, result["samples"])
    text = "%-46s %-11s %8d  acc %7.3f%%  imp %d  det %.2f%%  ran %d moved %d unread %d broken %d  refused-imp %d  " % (
        result["case"], result["class"], result["samples"], 100 * result["accepted"] / n, result["impossible"],
        100 * result["detached"] / n, result["ran"], result["moved"], result["unreadable"], result["broken"],
        result["refused_impossible"])
    text += "wake %.0f/%.0f us  turn %.1f/%.1f us  late>100us %.2f%% >1ms %.2f%%  cpu-changes %d migr %d" % (
        result["latency_us"]["p50"], result["latency_us"]["p99"], result["turn_us"]["p50"], result["turn_us"]["p99"],
        100 * result["late_100us"], 100 * result["late_1ms"], result["cpu_changes"], result["target_migrations"])
    if "tv" in result:
        text += "  TV %.4f (chance %.4f, halves %.4f)" % (result["tv"], result["tv_chance"], result.get("tv_halves", 0))
    return text


def markdown(path):
    """The stored results as the table of docs/decisions/0001; runs of the same case are summed."""
    by_case = {}
    with open(path) as file:
        for line in file:
            result = json.loads(line)
            if "failed" not in result:
                by_case.setdefault(result["case"], []).append(result)
    print("| Python, target / who, rate, neighbour | class | samples | impossible | accepted | detached | attempts refused: ran, moved | "
          "of them impossible | wake p50 / p99 us | turn p50 / p99 us | TV (chance) |")
    print("|" + " --- |" * 11)
    for case in sorted(by_case):
        results = by_case[case]
        r = merge(results)
        n = max(1, r["samples"])
        compared = [x for x in results if "tv" in x]
        tv = "%.4f (%.4f)" % (compared[-1]["tv"], compared[-1]["tv_chance"]) if compared else ""
        print("| %s | %s | %d | %d | %.3f %% | %.2f %% | %d, %d | %d | %.0f / %.0f | %.0f / %.0f | %s |" % (
            case, r["class"], r["samples"], r["impossible"], 100 * r["accepted"] / n, 100 * r["detached"] / n, r["ran"], r["moved"],
            r["refused_impossible"], r["latency_us"]["p50"], r["latency_us"]["p99"], r["turn_us"]["p50"], r["turn_us"]["p99"], tv))


def find_pythons(words):
    """3.11=/path/python ... or directories with bin/python3.N below; default: pyenv's."""
    found = {}
    for word in words or glob.glob(os.path.expanduser("~/.pyenv/versions/3.1[123].*")):
        if "=" in word:
            version, path = word.split("=", 1)
            found[version] = path
            continue
        for path in sorted(glob.glob(os.path.join(word, "bin", "python3.1[123]"))):
            found[os.path.basename(path)[6:]] = path
    return found


HARD = {"hard 50": ("hard.py", [50]), "hard 200": ("hard.py", [200]), "leaf": ("leaf.py", [])}


def cases(pythons, user, quick):
    scale = 0.02 if quick else 1
    result = []

    def add(name, target, args, samples, version, versus=0, **more):
        more["versus"] = int(versus * scale)
        more["rounds"] = 2 if quick else 10
        result.append(Case("%s %s" % (version, name), target, args=args, python=version,
                           samples=max(200, int(samples * scale)), **more))

    families = ["--check", "families"]
    for version in sorted(pythons):
        for label, (target, args) in HARD.items():
            for who in [None, user] if user else [None]:
                tag = "user" if who else "root"
                add("%s / %s 5000 Hz" % (label, tag), target, args, 100000, version, reader=families + ["--rate", "5000"],
                    user=who, versus=100000)
                add("%s / %s 1000 Hz" % (label, tag), target, args, 20000, version, reader=families + ["--rate", "1000"], user=who)
                for neighbour in ("free", "all"):
                    add("%s / %s 5000 Hz, neighbour %s" % (label, tag, neighbour), target, args, 30000, version,
                        reader=families + ["--rate", "5000"], user=who, neighbour=neighbour)
        add("leaf / other CPU, no proof", "leaf.py", [], 20000, version, target_cpu=0,
            reader=families + ["--way", "other-cpu", "--cpu", "1", "--proof", "none", "--rate", "5000"])
        add("leaf / other CPU, words read twice", "leaf.py", [], 20000, version, target_cpu=0,
            reader=families + ["--way", "other-cpu", "--cpu", "1", "--proof", "words", "--rate", "5000"])
        add("leaf / same CPU, no proof", "leaf.py", [], 50000, version, reader=families + ["--proof", "none", "--rate", "5000"])
        add("leaf / same CPU, words read twice", "leaf.py", [], 50000, version, reader=families + ["--proof", "words", "--rate", "5000"])
        for kind in ("exec", "template"):
            add("fresh %s / root 5000 Hz" % kind, "fresh.py", [kind], 50000, version,
                reader=["--check", "serials", "--names", "fresh", "--rate", "5000"])
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reader")
    parser.add_argument("--markdown", metavar="FILE", help="print the results of --json as a table; measure nothing")
    parser.add_argument("--pythons", nargs="*", default=os.environ.get("PHLOX_PYTHONS", "").split(":") if os.environ.get("PHLOX_PYTHONS") else None)
    parser.add_argument("--user", help="an ordinary user to repeat the cases as (root only)")
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the samples")
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--json", help="append one line of JSON for each case")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--one", action="store_true", help="one case; the reader's options follow --")
    parser.add_argument("--python", default="3.12")
    parser.add_argument("--target", default="hard.py")
    parser.add_argument("--target-args", nargs="*", default=[])
    parser.add_argument("--target-cpu", type=int)
    parser.add_argument("--neighbour", choices=["free", "pinned", "all"])
    parser.add_argument("--samples", type=int, default=20000)
    parser.add_argument("--versus", type=int, default=0, metavar="SAMPLES", help="compare with a stopped target")
    argv, extra = sys.argv[1:], []
    if "--" in argv:
        argv, extra = argv[:argv.index("--")], argv[argv.index("--") + 1:]
    options = parser.parse_args(argv)
    if options.markdown:
        return markdown(options.markdown)
    if not options.reader:
        parser.error("--reader is missing (make bench-reading builds it)")
    pythons = find_pythons(options.pythons)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if options.one:
        todo = [Case("%s %s %s" % (options.python, options.target, " ".join(extra)), options.target, python=options.python,
                     args=options.target_args, target_cpu=options.target_cpu, reader=extra, neighbour=options.neighbour,
                     user=options.user, samples=options.samples, versus=options.versus)]
    else:
        todo = [c for c in cases(pythons, options.user, options.quick) if re.search(options.only, c.name)]
    if options.list:
        print("\n".join(c.name for c in todo))
        return
    results = []
    for case in todo:
        result = run(case, os.path.abspath(options.reader), pythons)
        results.append(result)
        print(line_of(result), flush=True)
        for example in result.get("examples", []):
            print("    " + example[:160])
        if options.json:
            with open(options.json, "a") as file:
                file.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
