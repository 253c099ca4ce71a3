"""An import of orders that is slower the longer it runs: docs/stories.md finds out why.

    python3 slower.py [SECONDS]
"""
import json
import sys
import time

seen = []


def orders():
    number = 0
    while True:
        number += 1
        yield json.dumps({"order": f"A{number}", "customer": number % 977, "lines": [{"article": number * step % 5000, "price": step * 7} for step in range(40)]})


def is_known(name):
    return name in seen


def total_of(order):
    return sum(line["price"] for line in order["lines"])


def take_in(text):
    order = json.loads(text)
    if not is_known(order["order"]):
        seen.append(order["order"])
    return total_of(order)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 24
    until = time.monotonic() + seconds
    for text in orders():
        if time.monotonic() >= until:
            break
        take_in(text)
    print(f"{len(seen) / seconds:.0f} orders a second")


if __name__ == "__main__":
    main()
