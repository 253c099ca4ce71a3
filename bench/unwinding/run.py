#!/usr/bin/env python3
"""Compares native frames with libdwfl's on the same captured bytes, for many libraries.

    make bench-unwinding                          10,000 samples: those of a Python with packages from PyPI
    bench/unwinding/run.py [--samples N] [--python EXE] [--no-packages] [--only NAME,...]

Each library works in its own process (bench/targets/libraries.py); build/release/bench/unwinding stops it at random moments.
A sample is equal if all return addresses are, from the innermost frame to the thread's start. "said": the stack is marked as
incomplete, and the frames that it has are right. The table goes to standard output, the numbers to build/bench/unwinding.json.
"""
import argparse
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGET = os.path.join(ROOT, "bench", "targets", "libraries.py")
PACKAGES = ["numpy", "scipy", "scikit-learn", "polars", "orjson", "pydantic-core", "lxml"]


def environment(python, cache):
    """A virtual environment with the packages, made once."""
    folder = os.path.join(cache, "unwinding")
    if not os.path.exists(os.path.join(folder, "complete")):
        subprocess.run([python, "-m", "venv", folder], check=True)
        subprocess.run([os.path.join(folder, "bin", "pip"), "-q", "install", *PACKAGES], check=True)
        open(os.path.join(folder, "complete"), "w").close()
    return os.path.join(folder, "bin", "python")


def compiled(cache):
    library = os.path.join(cache, "libraries-cxx.so")
    subprocess.run(["g++", "-O2", "-shared", "-fPIC", os.path.join(ROOT, "bench", "targets", "libraries.cpp"), "-o", library], check=True)
    return library


def measure(tool, python, name, samples, library):
    target = subprocess.Popen([python, TARGET, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "PHLOX_CXX_LIBRARY": library})
    try:
        line = target.stdout.readline()
        if line != "ready\n":
            raise SystemExit("%s did not start: %r" % (name, line))
        done = subprocess.run([tool, str(target.pid), str(samples)], capture_output=True, text=True)
        sys.stderr.write("".join("%s: %s\n" % (name, line) for line in done.stderr.splitlines()))
        if done.returncode != 0:
            raise SystemExit("%s: unwinding ended with %d" % (name, done.returncode))
        return json.loads(done.stdout)
    finally:
        target.kill()
        target.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=10000, help="for all libraries together")
    parser.add_argument("--python", default=None, help="default: pyenv's 3.12, else python3")
    parser.add_argument("--no-packages", action="store_true", help="use the interpreter without extra packages")
    parser.add_argument("--only", default="")
    parser.add_argument("--tool", default=os.path.join(ROOT, "build", "release", "bench", "unwinding"))
    parser.add_argument("--cache", default=os.environ.get("PHLOX_BENCH_CACHE", "/var/tmp/phlox-bench"))
    options = parser.parse_args()
    os.makedirs(options.cache, exist_ok=True)
    python = options.python or next((path for path in (os.path.expanduser("~/.pyenv/versions/3.12.1/bin/python"),) if os.path.exists(path)),
                                    "/usr/bin/python3")
    if not options.no_packages:
        python = environment(python, options.cache)
    library = compiled(options.cache)
    asked = subprocess.run([python, TARGET, "NAMES"], capture_output=True, text=True, check=True,
                           env={**os.environ, "PHLOX_CXX_LIBRARY": library})
    names = [name for name in asked.stdout.split() if not options.only or name in options.only.split(",")]
    each = -(-options.samples // len(names))
    rows = {}
    print("%-14s %8s %8s %8s %8s %10s %12s" % ("", "samples", "equal", "whole", "said", "frames", "libraries"))
    for name in names:
        row = rows[name] = measure(options.tool, python, name, each, library)
        print("%-14s %8d %8d %8d %8d %10.1f %12d" % (name, row["samples"], row["equal"], row["whole"], row["said"], row["frames"] / row["samples"],
                                                      len(row["libraries"])), flush=True)
    whole = {key: sum(row[key] for row in rows.values()) for key in ("samples", "equal", "whole", "said", "frames", "ours_ns", "theirs_ns")}
    files = {path for row in rows.values() for path in row["libraries"]}
    print("%-14s %8d %8d %8d %8d %10.1f %12d" % ("all", whole["samples"], whole["equal"], whole["whole"], whole["said"],
                                                  whole["frames"] / whole["samples"], len(files)))
    print("equal: %.3f %%; a frame took %.0f ns, libdwfl's %.0f ns" % (100 * whole["equal"] / whole["samples"], whole["ours_ns"] / whole["frames"],
                                                                        whole["theirs_ns"] / whole["frames"]))
    os.makedirs(os.path.join(ROOT, "build", "bench"), exist_ok=True)
    with open(os.path.join(ROOT, "build", "bench", "unwinding.json"), "w") as file:
        json.dump({"python": python, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
