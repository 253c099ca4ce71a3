"""A random forest fitted to synthetic taxi trips: pandas reads them, features, fit, predict. C, Cython and C++ beneath Python,
and scikit-learn's threads beside it.

    forest.py SECONDS [TRIPS] [TREES] [THREADS]

A unit is one pass from the file to the prediction. The trips are generated, the same in every run.
Needs pandas and scikit-learn.
"""
import os
import shutil
import sys
import tempfile

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

import meter

seconds = meter.seconds_argument()
trips = int(sys.argv[2]) if len(sys.argv) > 2 else 6000
trees = int(sys.argv[3]) if len(sys.argv) > 3 else 20
threads = int(sys.argv[4]) if len(sys.argv) > 4 else 2
folder = tempfile.mkdtemp(prefix="phlox-bench-trips-")
path = os.path.join(folder, "trips.csv")


def make_trips():
    """Pick-ups around a city, fares by distance and hour."""
    chance = np.random.default_rng(7)
    start = pd.Timestamp("2015-06-01") + pd.to_timedelta(chance.integers(0, 90 * 86400, trips), unit="s")
    latitude, longitude = chance.normal(40.75, 0.05, (2, trips)), chance.normal(-73.97, 0.05, (2, trips))
    distance = np.hypot(*(latitude[0] - latitude[1], longitude[0] - longitude[1])) * 111
    table = pd.DataFrame({
        "pickup": start, "pickup_latitude": latitude[0], "pickup_longitude": longitude[0], "dropoff_latitude": latitude[1],
        "dropoff_longitude": longitude[1], "passengers": chance.integers(1, 6, trips), "vendor": chance.choice(["CMT", "VTS"], trips),
        "fare": 2.5 + 1.6 * distance + chance.gamma(2.0, 1.0, trips)})
    table.to_csv(path, index=False)


def read_trips():
    return pd.read_csv(path, parse_dates=["pickup"])


def haversine(table):
    a, b = np.radians(table["pickup_latitude"]), np.radians(table["dropoff_latitude"])
    d = np.radians(table["dropoff_longitude"] - table["pickup_longitude"])
    return 12742 * np.arcsin(np.sqrt(np.sin((b - a) / 2) ** 2 + np.cos(a) * np.cos(b) * np.sin(d / 2) ** 2))


def features(table):
    table["distance"] = haversine(table)
    table["hour"] = table["pickup"].dt.hour
    table["weekday"] = table["pickup"].dt.dayofweek
    table["usual"] = table.groupby(["weekday", "hour"])["distance"].transform("mean")
    table["vendor"] = table["vendor"].astype("category").cat.codes
    return table.drop(columns=["pickup", "fare"]), table["fare"]


def fit(known, fares):
    return RandomForestRegressor(n_estimators=trees, n_jobs=threads, min_samples_leaf=2, random_state=1).fit(known, fares)


def one_pass():
    known, asked, fares, _ = train_test_split(*features(read_trips()), test_size=0.25, random_state=1)
    return fit(known, fares).predict(asked)


def end():
    shutil.rmtree(folder, ignore_errors=True)
    return {}


make_trips()
one_pass()
meter.measure(one_pass, seconds, end)
