#!/usr/bin/env python3
"""release.py PROGRAM DIST [--deb FILE] [--sdist FILE]   Packs a static phlox that is already built (make release).

Writes to DIST: the program, a wheel with it, the licences of the linked libraries, a CycloneDX list of components (also in the
wheel, PEP 770), and SHA256SUMS. Packing the same program again gives the same bytes: times are those of the last commit.
"""
import argparse
import base64
import csv
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
# A static program needs no C library of the host, so it runs on every one that pip has tags for. These are
# the oldest tags, known to every pip since 2021.
PLATFORMS = ("manylinux_2_17_{0}", "manylinux2014_{0}", "musllinux_1_1_{0}")
# Linked in addition to the packages of tools/packages-build.txt and packages-static.txt.
OF_THE_COMPILER = ("libc6-dev", "libstdc++-12-dev", "libgcc-12-dev")
TOOLS = {"cmake", "ninja-build", "g++", "ccache", "esbuild", "dpkg-dev"}
# The static program has what tools/static-libraries.sh made in their place, or nothing of them.
NOT_LINKED = {"libzydis-dev", "libcurl4-openssl-dev"}


def out(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **options).stdout.strip()


def version():
    return re.search(r"project\(phlox VERSION ([\d.]+)", (TREE / "CMakeLists.txt").read_text())[1]


def epoch():
    """Seconds: the time of the last commit, or SOURCE_DATE_EPOCH outside a repository."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or out("git", "log", "-1", "--format=%ct", cwd=TREE))


def made():
    """Where tools/static-libraries.sh leaves the archives that it builds."""
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "phlox/static" / platform.machine()


def packages():
    """[(name, version)] of the packages whose code is in the program."""
    names = [line.split()[0] for name in ("packages-build.txt", "packages-static.txt") for line in (TREE / "tools" / name).read_text().splitlines()
             if line.strip() and not line.startswith("#")]
    found = []
    for name in [*names, *OF_THE_COMPILER]:
        if name in TOOLS | NOT_LINKED:
            continue
        shown = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], capture_output=True, text=True)
        if shown.returncode == 0 and shown.stdout:
            found.append((name, shown.stdout))
    return sorted(set(found))


def sources():
    """[(name, version)] of the source packages whose code is in it."""
    listed = made() / "parts"
    return [tuple(line.split()) for line in listed.read_text().splitlines()] if listed.exists() else []


def licences(parts):
    text = [f"phlox\n\n{(TREE / 'LICENSE').read_text()}"]
    for name, _ in parts:
        path = pathlib.Path("/usr/share/doc") / name / "copyright"
        if path.is_file():
            text.append(f"{name}\n\n{path.read_text(errors='replace')}")
    if sources():
        text.append((made() / "parts.licences").read_text(errors="replace"))
    return ("\n" + "=" * 80 + "\n").join(text)


def list_of_parts(parts, when):
    system = dict(re.findall(r'^(\w+)="?([^"\n]*)', pathlib.Path("/etc/os-release").read_text(), re.M))
    distribution = f"distro={system['ID']}-{system['VERSION_ID']}"
    components = [{"type": "library", "bom-ref": name, "name": name, "version": number, "purl": f"pkg:deb/{system['ID']}/{name}@{number}?{more}{distribution}"}
                  for more, listed in (("", parts), ("arch=source&", sources())) for name, number in listed]
    return json.dumps({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'phlox {version()} {when} {parts}')}",
        "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when)),
                     "component": {"type": "application", "bom-ref": "phlox", "name": "phlox", "version": version(), "licenses": [{"license": {"id": "Apache-2.0"}}]}},
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


def wheel(program, dist, when, extra):
    """`extra`: texts by path in .dist-info."""
    tags = [tag.format(platform.machine()) for tag in PLATFORMS]
    name = f"phlox-{version()}-py3-none-{'.'.join(tags)}.whl"
    info = f"phlox-{version()}.dist-info"
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
    return name


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("dist", type=pathlib.Path)
    parser.add_argument("--deb", type=pathlib.Path)
    parser.add_argument("--sdist", type=pathlib.Path)
    asked = parser.parse_args()
    when, parts = epoch(), packages()
    asked.dist.mkdir(parents=True, exist_ok=True)
    for old in asked.dist.iterdir():
        old.unlink()
    program = asked.dist / f"phlox-{version()}-linux-{platform.machine()}"
    shutil.copyfile(asked.program, program)
    program.chmod(0o755)
    bill, terms = list_of_parts(parts, when), licences(parts)
    wheel(program.resolve(), asked.dist, when, {"sboms/phlox.cdx.json": bill, "licenses/LICENSES.txt": terms})
    for more in (asked.deb, asked.sdist):
        if more:
            shutil.copyfile(more, asked.dist / more.name)
    (asked.dist / "LICENSES.txt").write_text(terms)
    (asked.dist / f"phlox-{version()}.cdx.json").write_text(bill)
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(asked.dist.iterdir()))
    (asked.dist / "SHA256SUMS").write_text(sums)
    print(sums, end="")


if __name__ == "__main__":
    main()
