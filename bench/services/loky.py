"""loky.py WORKERS TASKS: joblib's default pool."""
import sys

import joblib


def crunch(count):
    total = 0
    for i in range(count):
        total += sum(j * j for j in range(100))
    return total


if __name__ == "__main__":
    joblib.Parallel(n_jobs=int(sys.argv[1]))(joblib.delayed(crunch)(20000) for _ in range(int(sys.argv[2])))
