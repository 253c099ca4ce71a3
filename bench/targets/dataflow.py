"""A Bytewax dataflow over synthetic taxi trips: Python called by Rust, on worker threads that Rust started.

    dataflow.py SECONDS [WORKERS]

A unit is one batch of trips through every step. Needs bytewax.
"""
import json
import random
import signal
import sys
import threading
import time

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import cluster_main

import meter

BATCH = 200

seconds = meter.seconds_argument()
workers = int(sys.argv[2]) if len(sys.argv) > 2 else 1
stop = threading.Event()
windows = []
batches = [0]


def make_trips():
    chance = random.Random(7)
    return [json.dumps({"zone": "zone-%d" % chance.randrange(20), "distance": chance.gammavariate(2, 1.5), "fare": chance.gammavariate(3, 4)})
            for _ in range(BATCH)]


TRIPS = make_trips()


class Trips(StatelessSourcePartition):
    def next_batch(self):
        if stop.is_set():
            raise StopIteration()
        batches[0] += 1
        if not windows or time.monotonic() >= windows[-1][0] + meter.WINDOW:
            windows.append([time.monotonic(), batches[0], time.process_time()])
        return TRIPS


class TripSource(DynamicSource):
    def build(self, step_id, worker_index, worker_count):
        return Trips()


class Nowhere(StatelessSinkPartition):
    def write_batch(self, items):
        pass


class NoSink(DynamicSink):
    def build(self, step_id, worker_index, worker_count):
        return Nowhere()


def price(trip):
    trip["price"] = trip["fare"] / max(trip["distance"], 0.1)
    return trip


def is_dear(trip):
    return trip["price"] > 1.0


def smooth(state, trip):
    state = trip["price"] if state is None else 0.9 * state + 0.1 * trip["price"]
    return state, (trip["zone"], state)


def make_flow():
    flow = Dataflow("trips")
    trips = op.input("trips", flow, TripSource())
    trips = op.map("parse", trips, json.loads)
    trips = op.map("price", trips, price)
    trips = op.filter("dear", trips, is_dear)
    zones = op.key_on("zone", trips, lambda trip: trip["zone"])
    op.output("out", op.stateful_map("smooth", zones, smooth), NoSink())
    return flow


def wait_for_the_end():
    signal.sigtimedwait({signal.SIGTERM}, seconds)
    stop.set()


# The main thread waits inside Rust, where no Python signal handler would run.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
threading.Thread(target=wait_for_the_end, daemon=True, name="end").start()
start = time.monotonic()
meter.ready()
cluster_main(make_flow(), [], 0, worker_count_per_proc=workers)
meter.report({"units": batches[0], "wall": time.monotonic() - start, "cpu": time.process_time(), "windows": windows})
