#!/usr/bin/env python3
"""news.py [VERSION]   Moves the files of news/ into a section of CHANGELOG.md; without a version it prints
the section.

A file is `news/WHAT.KIND.md`, one paragraph in the user's words (news/README.md). An "unreleased" section of
the same version is filled, below what it already has; otherwise a new one is added on top. `--date
unreleased` leaves it open. If any file is invalid, nothing is written.
"""
import argparse
import datetime
import pathlib
import re
import sys
import textwrap

KINDS = {"added": "Added", "changed": "Changed", "fixed": "Fixed"}


class Wrong(Exception):
    pass


def fragments(folder):
    """{kind: sentences}, sorted by file name."""
    found = {kind: [] for kind in KINDS}
    for path in sorted(folder.iterdir()):
        if path.name == "README.md":
            continue
        name = re.fullmatch(rf"[a-z0-9][a-z0-9.-]*\.({'|'.join(KINDS)})\.md", path.name)
        if not name:
            raise Wrong(f"{path}: not WHAT.KIND.md with {', '.join(KINDS)} for KIND")
        text = path.read_text().strip()
        if not text or "\n\n" in text:
            raise Wrong(f"{path}: {'empty' if not text else 'more than one paragraph'}")
        found[name[1]].append(" ".join(text.split()))
    return found


def section(version, date, found, old=""):
    """`old`: the version's section, whose text and sentences stay."""
    summary, *parts = re.split(r"^### (.*)\n+", old, flags=re.M)
    kept = dict(zip(parts[::2], parts[1::2]))
    lines = [f"## {version}, {date}", ""]
    if text := "\n".join(summary.splitlines()[1:]).strip():
        lines += [text, ""]
    for kind, title in KINDS.items():
        if found[kind] or title in kept:
            lines += [f"### {title}", "", *kept.get(title, "").strip().splitlines()]
            for sentence in found[kind]:
                lines += textwrap.wrap(sentence, 118, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
            lines.append("")
    return "\n".join(lines)


def with_section(changelog, version, date, found):
    """The changelog with the section: in place of the version's unreleased section, or above the newest."""
    versions = [(m.start(), m[1], m[2]) for m in re.finditer(r"^## (\S+), (.*)$", changelog, re.M)] + [(len(changelog), "", "")]
    start = end = versions[0][0]
    for (at, name, its_date), (behind, *_) in zip(versions, versions[1:]):
        if name == version and its_date != "unreleased":
            raise Wrong(f"CHANGELOG.md: {version} is there already, of {its_date}")
        if name == version:
            start, end = at, behind
    new = section(version, date, found, changelog[start:end])
    return "\n".join(filter(None, [changelog[:start] + new, changelog[end:]]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("version", nargs="?")
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    parser.add_argument("--tree", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    a = parser.parse_args()
    folder, changelog = a.tree / "news", a.tree / "CHANGELOG.md"
    found = fragments(folder)
    if a.version is None:
        print(section("next", "unreleased", found), end="")
        return
    if not any(found.values()):
        raise Wrong(f"{folder}: there is no news")
    changelog.write_text(with_section(changelog.read_text(), a.version, a.date, found))
    for path in folder.glob("*.*.md"):
        path.unlink()


if __name__ == "__main__":
    try:
        main()
    except Wrong as wrong:
        sys.exit(f"news: {wrong}")
