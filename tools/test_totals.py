"""test_totals.py JUNIT.xml...   Adds up test reports; names what failed or was skipped; the last line is the total.

A report that is missing or holds no test is a failure: a suite that did not run must not look like one that passed.
"""
import sys
import xml.etree.ElementTree as ElementTree


def outcome(case):
    if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
        return "failed"
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        return "skipped"
    return "passed"


def main(paths):
    names = {"passed": [], "failed": [], "skipped": []}
    for path in paths:
        try:
            cases = list(ElementTree.parse(path).iter("testcase"))
        except (OSError, ElementTree.ParseError) as error:
            names["failed"].append(f"{path}: {error}")
            continue
        if not cases:
            names["failed"].append(f"{path}: holds no test")
        for case in cases:
            names[outcome(case)].append(f"{case.get('classname') or ''} {case.get('name')}".strip())
    for word in ("skipped", "failed"):
        for name in names[word]:
            print(f"{word}: {name}")
    skipped = f", {len(names['skipped'])} skipped" if names["skipped"] else ""
    print(f"{len(names['passed'])} passed, {len(names['failed'])} failed{skipped}")
    return 1 if names["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
