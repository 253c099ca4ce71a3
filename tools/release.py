#!/usr/bin/env python3
"""release.py DIST [--deb] [--sdist FILE] PROGRAM...   Packs static programs that are already built, one for each machine (make release).

Writes to DIST, for each program: the program, a wheel and a Debian package with it, and a CycloneDX list of its components (also
in the wheel, PEP 770); and the licences of what is linked in, and SHA256SUMS. --deb writes the Debian package alone. Packing the
same program again gives the same bytes: times are those of the last commit.
"""
import argparse
import base64
import csv
import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
import zipfile

TREE = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "phlox"
MACHINES = {62: "x86_64", 183: "aarch64"}  # by e_machine
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
# A static program needs no C library of the host, so it runs on every one that pip has tags for. These are
# the oldest tags, known to every pip since 2021.
PLATFORMS = ("manylinux_2_17_{0}", "manylinux2014_{0}", "musllinux_1_1_{0}")
# Linked in addition to the packages of tools/packages-build.txt and packages-static.txt.
OF_THE_COMPILER = ("libstdc++-12-dev", "libgcc-12-dev")
TOOLS = {"cmake", "ninja-build", "g++", "ccache", "esbuild", "dpkg-dev"}
# The static program has what tools/static-libraries.sh made in their place, or nothing of them.
NOT_LINKED = {"libzydis-dev", "libcurl4-openssl-dev"}
CONTROL = """Package: phlox
Version: {version}
Architecture: {architecture}
Maintainer: the Phlox developers <phlox@localhost>
Installed-Size: {size}
Recommends: ca-certificates
Section: devel
Priority: optional
Description: shows where a running Python program spends its time
 Phlox samples Python programs on this host without touching them, and shows
 flame graphs, timelines and reports. The program is linked statically and
 needs no other package.
"""


def out(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **options).stdout.strip()


def version(before_candidate):
    """1.0.0-rc1 with "-": packages of Python have nothing there, Debian's have "~"."""
    text = (TREE / "CMakeLists.txt").read_text()
    candidate = re.search(r'set\(PHLOX_CANDIDATE "(.*)"\)', text)[1]
    return re.search(r"project\(phlox VERSION ([\d.]+)", text)[1] + (before_candidate + candidate if candidate else "")


def epoch():
    """Seconds: the time of the last commit, or SOURCE_DATE_EPOCH outside a repository."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or out("git", "log", "-1", "--format=%ct", cwd=TREE))


def machine_of(program):
    with open(program, "rb") as file:
        head = file.read(20)
    machine = MACHINES.get(int.from_bytes(head[18:20], "little")) if head[:4] == b"\x7fELF" else None
    return machine or sys.exit(f"release: {program} is no program of {' or '.join(MACHINES.values())}")


class Parts:
    """What a machine's program is linked from."""

    def __init__(self, machine):
        self.architecture = DEBIAN[machine]
        self.made = pathlib.Path(os.environ.get("PHLOX_STATIC_LIBRARIES") or CACHE / "static") / machine
        names, compiler = self._names(), set(OF_THE_COMPILER)
        here = pathlib.Path("/")
        if machine == platform.machine():
            self.packages = self._of(here, self._installed(), names | compiler, self.architecture)
        else:  # libraries from a root that was unpacked, not installed; the compiler's own from this machine
            root = pathlib.Path(os.environ.get(f"PHLOX_{machine.upper()}_ROOT") or CACHE / machine / "root")
            compiler = {f"{name}-{self.architecture}-cross" for name in compiler}
            self.packages = sorted(self._of(root, self._unpacked(root), names, self.architecture) + self._of(here, self._installed(), compiler, "all"))
        listed = self.made / "parts"
        self.sources = [tuple(line.split()) for line in listed.read_text().splitlines()] if listed.exists() else []

    @staticmethod
    def _names():
        """Of the packages whose code is in the program, but for the compiler's."""
        lists = [(TREE / "tools" / name).read_text().splitlines() for name in ("packages-build.txt", "packages-static.txt")]
        names = {line.split()[0] for lines in lists for line in lines if line.strip() and not line.startswith("#")}
        return (names | {"libc6-dev"}) - TOOLS - NOT_LINKED

    def _installed(self):
        for line in out("dpkg-query", "-W", "-f", "${Package} ${Version} ${Architecture} ${db:Status-Status}\n").splitlines():
            name, number, architecture, status = line.split()
            if architecture in (DEBIAN[platform.machine()], "all") and status == "installed":
                yield name, number

    @staticmethod
    def _unpacked(root):
        listed = root / "var/lib/phlox-packages"
        if not listed.is_file():
            sys.exit(f"release: {listed} is missing: tools/aarch64-root.sh")
        return (line.split() for line in listed.read_text().splitlines())

    @staticmethod
    def _of(root, listed, names, architecture):
        """[(name, version, architecture, its licence)] of those that are in `names`."""
        return sorted((name, number, architecture, root / "usr/share/doc" / name / "copyright") for name, number in listed if name in names)

    def licences(self):
        text = [f"phlox\n\n{(TREE / 'LICENSE').read_text()}"]
        for name, _, _, path in self.packages:
            if path.is_file():
                text.append(f"{name}\n\n{path.read_text(errors='replace')}")
        if self.sources:
            text.append((self.made / "parts.licences").read_text(errors="replace"))
        return ("\n" + "=" * 80 + "\n").join(text)

    def bill(self, when):
        system = dict(re.findall(r'^(\w+)="?([^"\n]*)', pathlib.Path("/etc/os-release").read_text(), re.M))
        distribution = f"distro={system['ID']}-{system['VERSION_ID']}"
        components = [{"type": "library", "bom-ref": name, "name": name, "version": number, "purl": f"pkg:deb/{system['ID']}/{name}@{number}?arch={arch}&{distribution}"}
                      for name, number, arch in [entry[:3] for entry in self.packages] + [(*entry, "source") for entry in self.sources]]
        return json.dumps({
            "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
            "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, f"phlox {version('-')} {when} {components}").urn,
            "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when)),
                         "component": {"type": "application", "bom-ref": "phlox", "name": "phlox", "version": version("-"), "licenses": [{"license": {"id": "Apache-2.0"}}]}},
            "components": components,
            "dependencies": [{"ref": "phlox", "dependsOn": [component["bom-ref"] for component in components]}],
        }, indent=1) + "\n"


def plain_wheel(program, folder):
    """The wheel that the build back end makes of program and package, with this machine's tag."""
    source = folder / "prebuilt"
    shutil.copytree(TREE / "tests/package/prebuilt", source)
    settings = {"cmake.source-dir": source, "cmake.define.PHLOX_PREBUILT": program, "build-dir": folder / "build", "install.strip": "false"}
    out(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-w", folder,
        *[f"--config-settings={name}={value}" for name, value in settings.items()], TREE)
    (made,) = folder.glob("phlox-*.whl")
    return made


def wheel(program, machine, dist, when, extra):
    """`extra`: texts by path in .dist-info."""
    tags = [tag.format(machine) for tag in PLATFORMS]
    name = f"phlox-{version('')}-py3-none-{'.'.join(tags)}.whl"
    info = f"phlox-{version('')}.dist-info"
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(plain_wheel(program, pathlib.Path(folder))) as plain:
            files = {entry.filename: (plain.read(entry), entry.external_attr >> 16) for entry in plain.infolist() if not entry.is_dir()}
    facts = files[f"{info}/WHEEL"][0].decode()
    facts = re.sub(r"^Tag: .*\n", "", facts, flags=re.M).rstrip("\n") + "\n" + "".join(f"Tag: py3-none-{tag}\n" for tag in tags)
    files[f"{info}/WHEEL"] = (facts.encode(), 0o644)
    files |= {f"{info}/{path}": (text.encode(), 0o644) for path, text in extra.items()}
    record = io.StringIO()
    lines = csv.writer(record, lineterminator="\n")
    for path in sorted(files):
        if path != f"{info}/RECORD":
            digest = base64.urlsafe_b64encode(hashlib.sha256(files[path][0]).digest()).rstrip(b"=").decode()
            lines.writerow([path, f"sha256={digest}", len(files[path][0])])
    lines.writerow([f"{info}/RECORD", "", ""])
    files[f"{info}/RECORD"] = (record.getvalue().encode(), 0o644)
    # The contents of .dist-info come last, as the format requires.
    with zipfile.ZipFile(dist / name, "w") as made:
        for path in sorted(files, key=lambda path: (path.startswith(info), path)):
            content, mode = files[path]
            entry = zipfile.ZipInfo(path, time.gmtime(max(when, 315532800))[:6])
            entry.external_attr = (0o100755 if mode & 0o100 else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            made.writestr(entry, content, compresslevel=9)


def written_by(program):
    """{path in a package: bytes} of what the program prints about itself."""
    said = lambda *words: out(program, *words).encode() + b"\n"
    return {"usr/share/man/man1/phlox.1.gz": gzip.compress(said("man"), mtime=0),
            "usr/share/bash-completion/completions/phlox": said("completions", "bash"),
            "usr/share/zsh/vendor-completions/_phlox": said("completions", "zsh"),
            "usr/share/fish/vendor_completions.d/phlox.fish": said("completions", "fish")}


def debian_package(program, machine, dist, when, texts, terms):
    """With the static program, so that one package serves every release of Debian and Ubuntu."""
    files = {"usr/bin/phlox": program.read_bytes(), **texts, "usr/share/doc/phlox/copyright": terms.encode(),
             **{f"usr/share/doc/phlox/{path.name}": path.read_bytes() for path in sorted((TREE / "packaging").iterdir())}}
    number = version("~")
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        control = CONTROL.format(version=number, architecture=DEBIAN[machine], size=sum(map(len, files.values())) // 1024)
        sums = "".join(f"{hashlib.md5(content).hexdigest()}  {path}\n" for path, content in sorted(files.items()))
        for path, content in {**files, "DEBIAN/control": control.encode(), "DEBIAN/md5sums": sums.encode()}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
            (root / path).chmod(0o755 if path == "usr/bin/phlox" else 0o644)
        for path in [root, *(path for path in root.rglob("*") if path.is_dir())]:
            path.chmod(0o755)
        out("dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, dist / f"phlox_{number}_{DEBIAN[machine]}.deb",
            env={**os.environ, "SOURCE_DATE_EPOCH": str(when)})


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("dist", type=pathlib.Path)
    parser.add_argument("programs", type=pathlib.Path, nargs="+")
    parser.add_argument("--deb", action="store_true")
    parser.add_argument("--sdist", type=pathlib.Path)
    asked = parser.parse_args()
    when, programs = epoch(), {machine_of(path): path for path in asked.programs}
    asked.dist.mkdir(parents=True, exist_ok=True)
    for old in asked.dist.iterdir():
        old.unlink()
    texts = written_by(programs.get(platform.machine()) or sys.exit("release: none of these programs runs on this machine"))
    terms = {}
    for machine, path in programs.items():
        parts = Parts(machine)
        terms[machine] = parts.licences()
        debian_package(path, machine, asked.dist, when, texts, terms[machine])
        if asked.deb:
            continue
        program = asked.dist / f"phlox-{version('-')}-linux-{machine}"
        shutil.copyfile(path, program)
        program.chmod(0o755)
        bill = parts.bill(when)
        (asked.dist / f"{program.name}.cdx.json").write_text(bill)
        wheel(program.resolve(), machine, asked.dist, when, {"sboms/phlox.cdx.json": bill, "licenses/LICENSES.txt": terms[machine]})
    if asked.deb:
        return
    # This machine's program has all parts of the others, and the decoder.
    (asked.dist / "LICENSES.txt").write_text(terms[platform.machine()])
    if asked.sdist:
        shutil.copyfile(asked.sdist, asked.dist / asked.sdist.name)
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(asked.dist.iterdir()))
    (asked.dist / "SHA256SUMS").write_text(sums)
    print(sums, end="")
    lacking = [machine for machine in DEBIAN if machine not in programs]
    print(f"release: made for {' and '.join(programs)}" + (f", not for {' and '.join(lacking)} (docs/installing.md)" if lacking else ""))


if __name__ == "__main__":
    main()
