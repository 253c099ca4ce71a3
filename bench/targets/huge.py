"""Numeric work in a process with huge libraries: those of the list below that are installed. A unit is one call into each.

    huge.py SECONDS
"""
import importlib

import meter

seconds = meter.seconds_argument()
loaded = {}
for name in ("torch", "numpy", "scipy.linalg", "scipy.sparse.linalg", "sklearn.ensemble", "polars", "pyarrow", "pyarrow.compute", "pyarrow.parquet"):
    try:
        loaded[name] = importlib.import_module(name)
    except ImportError:
        pass
numpy = loaded["numpy"]
ROWS = numpy.random.default_rng(1).normal(size=(2000, 12))
SQUARE = ROWS.T @ ROWS


def polars():
    frame = loaded["polars"].DataFrame({"key": numpy.arange(20000) % 37, "value": numpy.arange(20000.0)})
    return frame.group_by("key").agg(loaded["polars"].col("value").sum()).sort("key")


def arrow():
    return loaded["pyarrow.compute"].sort_indices(loaded["pyarrow"].array(ROWS[:, 0]))


def forest():
    return loaded["sklearn.ensemble"].RandomForestRegressor(5, max_depth=6).fit(ROWS, ROWS[:, 0])


def torch():
    tensor = loaded["torch"].from_numpy(ROWS)
    return (tensor.T @ tensor).softmax(0).sum().item()


CALLS = {"torch": torch, "polars": polars, "pyarrow.compute": arrow, "sklearn.ensemble": forest,
         "scipy.linalg": lambda: loaded["scipy.linalg"].eigh(SQUARE), "numpy": lambda: numpy.sort(ROWS, axis=0)}
calls = [CALLS[name] for name in CALLS if name in loaded]


def work():
    for call in calls:
        call()


work()
meter.measure(work, seconds, lambda: {"libraries": sorted(loaded)})
