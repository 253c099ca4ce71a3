"""An ordinary program: tokenize, difflib, json and pprint on the standard library's own sources.

    ordinary.py SECONDS
"""
import difflib
import io
import json
import pprint
import tokenize

import meter

with open(json.__file__.replace("__init__", "decoder")) as source:
    TEXT = source.read()
LINES = TEXT.splitlines()[:60]
OTHER = [line.replace("self", "this") for line in LINES[::-1]][:40]
DATA = {"key%d" % i: [i, {"a": i * 1.5, "b": str(i)}, None] for i in range(12)}
step = [0]


def tokens():
    return sum(1 for _ in tokenize.generate_tokens(io.StringIO("\n".join(LINES[:30]) + "\n").readline))


def differences():
    return len(list(difflib.unified_diff(LINES[:25], OTHER[:25])))


def documents():
    return json.loads(json.dumps(DATA, indent=1))


def pretty():
    return len(pprint.pformat(DATA))


WORK = [tokens, differences, documents, pretty]


def work():
    try:
        WORK[step[0] % 4]()
    except (SyntaxError, tokenize.TokenError):
        pass
    step[0] += 1


# Imports during the first calls are not part of the comparison.
for _ in WORK:
    work()
meter.measure(work, meter.seconds_argument(), lambda: {"steps": step[0]})
