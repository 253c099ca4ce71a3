"""test_totals.py REPORT.xml... [--again REPORT.xml...]   Sums up JUnit reports; names failed and skipped
tests; the last line is the total.

A report that is missing or empty is a failure: a suite that did not run must not look like one that passed.
--again: reports of retries. A test that failed first and then passed has passed, and is counted and named as
such.
"""
import sys
import xml.etree.ElementTree as ElementTree


def outcome(case):
    if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
        return "failed"
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        return "skipped"
    return "passed"


def name_of(case):
    return f"{case.get('classname') or ''} {case.get('name')}".strip()


def tried_again(paths):
    """Names of tests that passed on retry, and of those that could not be judged. A test whose teardown is an
    error (pytest has a case for each) has not passed."""
    names = {"passed": set(), "failed": set(), "skipped": set()}
    unjudged = set()
    for path in paths:
        try:
            for case in ElementTree.parse(path).iter("testcase"):
                names[outcome(case)].add(name_of(case))
                skipped = case.find("skipped")
                if skipped is not None and "of our CPUs' time" in (skipped.get("message") or ""):  # tests/conftest.py
                    unjudged.add(name_of(case))
        except (OSError, ElementTree.ParseError):
            continue  # without a retry it has failed
    return names["passed"] - names["failed"], unjudged - names["failed"]


def main(paths, again=()):
    names = {"passed": [], "failed": [], "skipped": []}
    retried = []
    mended, unjudged = tried_again(again)
    for path in paths:
        try:
            cases = list(ElementTree.parse(path).iter("testcase"))
        except (OSError, ElementTree.ParseError) as error:
            names["failed"].append(f"{path}: {error}")
            continue
        if not cases:
            names["failed"].append(f"{path}: holds no test")
        for case in cases:
            how, name = outcome(case), name_of(case)
            if how == "failed" and name in mended:
                how = "passed"
                retried.append(name)
            elif how == "failed" and name in unjudged:
                how = "skipped"
                name += " (failed, not judged: the host took our CPUs)"
            names[how].append(name)
    for word in ("skipped", "failed"):
        for name in names[word]:
            print(f"{word}: {name}")
    words = f"{len(names['passed'])} passed, {len(names['failed'])} failed"
    if names["skipped"]:
        words += f", {len(names['skipped'])} skipped"
    if retried:
        words += f"; {len(retried)} passed only when tried again: {', '.join(sorted(retried))}"
    print(words)
    return 1 if names["failed"] else 0


if __name__ == "__main__":
    arguments = sys.argv[1:]
    at = arguments.index("--again") if "--again" in arguments else len(arguments)
    sys.exit(main(arguments[:at], arguments[at + 1:]))
