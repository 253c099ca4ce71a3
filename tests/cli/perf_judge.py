"""What `perf script` says of a perf.data, and what the recording says that phlox made of it: shares of functions. And what
hotspot-perfparser makes of it, Hotspot's own reader, by what it writes.

Alone: perf_judge.py perf.data app.phlox
"""
import collections
import re
import sqlite3
import struct
import subprocess
import sys
import tempfile

FRAME = re.compile(r"^\s+([0-9a-f]+) (.*) \((.*?)\)$")
UNKNOWN = "[unknown]"
NOT_MAPPED = "(an address at which nothing is mapped)"  # phlox's word for it where perf chained something that is no address of code
# Where a program, a thread of it, or one of the kernel begins; without the underscores that name_of() takes off.
STARTS = {"start", "dl_start_user", "dl_start", "clone3", "clone", "start_thread", "ret_from_fork_asm"}
# Two names of one address: which one is given is a matter of taste. "_" and "__" before a name are given or not, too.
ALIASES = {"libc_start_main_impl": "libc_start_main", "cfree": "free", "libc_malloc": "malloc", "libc_calloc": "calloc"}
# glibc's memcpy and memmove are one function, for each kind of CPU.
MEMCPY = re.compile(r"^memcpy_((?:sse2|ssse3|avx|avx512|evex)\w*)$")
FOR_LARGE_FILES = re.compile(r"^(creat|f?l?stat|fstatat|f?truncate|getdents|lseek|mmap|open|openat|pread|pwrite|readdir|scandir)64$")
# What Cython makes of a function's qualified name: f of a cdef function, pf and pw of a def function and its wrapper.
CYTHON = re.compile(r"^(?:pyx_fuse_\d+__?)*pyx_(?:f|pf|pw)_(?=\d)")


def cython_name(symbol):
    """"pyx_pw_7sklearn_4tree_5Class_3build" -> "sklearn.tree.Class.build": each part behind its length, the function behind a counter, or as it is."""
    rest, parts = CYTHON.sub("", symbol), []
    while (length := re.match(r"\d+(?!\d|__\w+__$)", rest)) and rest[length.end() + int(length[0]):][:1] == "_":
        begin = length.end()
        parts.append(rest[begin:begin + int(length[0])])
        rest = rest[begin + int(length[0]) + 1:]
    return ".".join([*parts, re.sub(r"^\d+", "", rest)])


def without_parameters(symbol):
    """C++: removes the last pair of brackets: "a::f(int (*)(b)) const" -> "a::f"."""
    while (end := re.search(r"\)( const)?( &&?)?( \[clone .*\])?$", symbol)):
        depth = at = 0
        for at in range(end.start(), -1, -1):
            depth += {")": 1, "(": -1}.get(symbol[at], 0)
            if depth == 0:
                break
        if at == 0:
            break
        symbol = symbol[:at]
    return symbol


def name_of(symbol):
    """A function's name without what the two may write otherwise: offsets, versions, parameters."""
    symbol = re.sub(r"\+0x[0-9a-f]+$", "", symbol)
    if symbol.startswith("py::"):
        return symbol
    symbol = without_parameters(symbol)
    symbol = re.sub(r"@@?[A-Z]\w*_[\d.]+$", "", symbol)
    symbol = re.sub(r"(\.(constprop|isra|part|cold|llvm|localalias)\b.*)$", "", symbol)
    symbol = re.sub(r"^_+(GI_+|vdso_)?", "", symbol)
    if CYTHON.match(symbol):
        return cython_name(symbol).lstrip("_")
    if symbol.startswith("pyx_pymod_exec_"):
        return symbol.removeprefix("pyx_pymod_exec_").lstrip("_") + ".<module>"
    symbol = FOR_LARGE_FILES.sub(r"\1", symbol)
    symbol = MEMCPY.sub(r"memmove_\1", symbol)
    return ALIASES.get(symbol, symbol)


class Shares:
    def __init__(self):
        self.total = 0
        self.samples = 0
        self.whole = 0
        self.mystery = 0  # samples whose stack has a function without a name, or does not reach where something begins
        self.own = collections.Counter()
        self.under = collections.Counter()

    def add(self, names, weight, samples=1):
        """`names`: leaf first."""
        self.total += weight
        self.samples += samples
        self.mystery += samples * (not names or UNKNOWN in names or names[-1] not in STARTS)
        if not names:
            return
        self.own[names[0]] += weight
        for name in set(names):
            self.under[name] += weight
        if names[-1] in STARTS:
            self.whole += samples

    def share(self, counter, name):
        return 100 * counter[name] / max(self.total, 1)


def by_perf(path, *options):
    shares = Shares()
    process = subprocess.Popen(["perf", "script", "-i", path, "--no-inline", "-F", "tid,time,period,event,ip,sym,dso", *options],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace")
    names, period = None, 0
    for line in process.stdout:
        if not line.strip():
            if names is not None:
                shares.add(names, period)
            names = None
            continue
        if frame := FRAME.match(line):
            names.append(name_of(frame[2]))
            continue
        words = line.split()
        names, period = [], int(words[2])
    if names is not None:
        shares.add(names, period)
    process.wait()
    return shares


def by_phlox(path, weight="cpu_ns"):
    """Inlined functions are not in the stacks of a recording: a frame is one address."""
    shares = Shares()
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    frames = {}
    for row, kind, name, file, path in database.execute(
            "SELECT frame.id, kind, qualified_name, file, path FROM frame LEFT JOIN module ON module.id = module"):
        # A function without a name is called after its module.
        unknown = not name or path and name.startswith(path.rpartition("/")[2] + "+0x") or name == NOT_MAPPED
        frames[row] = f"py::{name}:{file}" if kind == 0 else None if kind == 3 and not unknown else name_of(UNKNOWN if unknown else name)
    stacks = {row: (parent, frame) for row, parent, frame in database.execute("SELECT id, parent, frame FROM stack")}
    for stack, value, samples in database.execute(f"SELECT stack, sum({weight}), sum(samples) FROM sample GROUP BY stack"):
        names, at = [], stack
        while at:
            at, frame = stacks[at]
            if frames[frame] is not None:
                names.append(frames[frame])
        shares.add(names, value, samples)
    return shares


# Of the messages of hotspot-perfparser's output, which are a length and a kind each: those that tell of stacks. Big-endian.
LOCATION, SYMBOL, TEXT, SAMPLE = 3, 4, 5, 13
OUTPUT_BEGINS = b"QPERFSTREAM\0"


def messages(file):
    """(kind, bytes) of each."""
    head = file.read(len(OUTPUT_BEGINS) + 4)
    if not head.startswith(OUTPUT_BEGINS):
        raise ValueError("no output of hotspot-perfparser")
    while len(length := file.read(4)) == 4:
        message = file.read(struct.unpack("<I", length)[0])
        yield message[0], message[1:]


def by_hotspot(program, path):
    """Of the functions inlined at an address the innermost. What it guessed at a stack's end, out of other stacks of the thread, is left out."""
    shares, texts, parents, symbols, samples = Shares(), {}, {}, {}, []
    with tempfile.NamedTemporaryFile() as output:
        subprocess.run([program, "--input", path, "--output", output.name], stderr=subprocess.DEVNULL, check=True)
        for kind, message in messages(output):
            if kind == TEXT:
                texts[struct.unpack_from(">i", message)[0]] = message[8:].decode(errors="replace")
            elif kind == LOCATION:
                row, parent = struct.unpack_from(">i24xi", message)
                parents[row] = parent
            elif kind == SYMBOL:
                row, name = struct.unpack_from(">ii", message)
                symbols[row] = name
            elif kind == SAMPLE:
                (count,) = struct.unpack_from(">I", message, 20)
                # Behind the frames a byte that says how many of the last were guessed, then events and what each counted.
                end = 24 + 4 * count
                frames = struct.unpack_from(f">{count}i", message, 24)
                samples.append((frames[:count - message[end]], struct.unpack_from(">Q", message, end + 1 + 8)[0]))

    def name(row):
        while row in parents and symbols.get(row, -1) < 0:
            row = parents[row]
        return name_of(texts.get(symbols.get(row, -1), UNKNOWN) or UNKNOWN)

    for frames, weight in samples:
        shares.add([name(row) for row in frames], weight)
    return shares


def differences(perf, phlox, least=1.0):
    """(share by perf, share by phlox, what, name) of every function above `least` percent with either, worst first."""
    rows = []
    for what in ("own", "under"):
        theirs, ours = getattr(perf, what), getattr(phlox, what)
        for name in set(theirs) | set(ours):
            a, b = perf.share(theirs, name), phlox.share(ours, name)
            if max(a, b) >= least:
                rows.append((a, b, what, name))
    return sorted(rows, key=lambda row: -abs(row[0] - row[1]))


def main():
    perf, phlox = by_perf(sys.argv[1]), by_phlox(sys.argv[2])
    print(f"samples: perf {perf.samples}, phlox {phlox.samples}; weight: perf {perf.total}, phlox {phlox.total}")
    print(f"down to the start: perf {perf.whole}, phlox {phlox.whole}")
    for what in ("own", "under"):
        print(f"unknown {what}: perf {perf.share(getattr(perf, what), UNKNOWN):.2f} %, phlox {phlox.share(getattr(phlox, what), UNKNOWN):.2f} %")
    for a, b, what, name in differences(perf, phlox)[:25]:
        print(f"{a:7.2f} {b:7.2f} {b - a:+7.2f} {what:5} {name[:110]}")


if __name__ == "__main__":
    main()
