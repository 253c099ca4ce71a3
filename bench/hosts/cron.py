"""A program that runs for some seconds, again and again: it imports, reads files and ends."""
import argparse
import ast
import email.message
import glob
import os
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("seconds", type=float)
until = time.monotonic() + parser.parse_args().seconds
sys.stdout.write("ready\n")
sys.stdout.flush()
while time.monotonic() < until:
    for path in glob.glob(os.path.join(os.path.dirname(ast.__file__), "*.py"))[:20]:
        with open(path, encoding="utf-8", errors="replace") as file:
            tree = ast.parse(file.read())
        message = email.message.EmailMessage()
        message.set_content("%d nodes in %s" % (sum(1 for _ in ast.walk(tree)), path))
    time.sleep(0.3)
