"""Idle or at work: judged on a program whose threads do one thing all the time."""
import json
import subprocess

import pytest
from cli_support import PYTHON, phlox

pytestmark = pytest.mark.live

# An event loop that has nothing to do; two threads of a pool, each in a call that reads from a silent socket; a pool of threads
# that was given nothing; a thread that waits for a job.
PROGRAM = """
import asyncio, concurrent.futures, multiprocessing.pool, queue, socket, threading
def call_upstream(end):
    return end.recv(1)
def worker(jobs):
    while True:
        jobs.get()()
async def main():
    pairs = [socket.socketpair() for _ in range(2)]
    idle = multiprocessing.pool.ThreadPool(2)
    threading.Thread(target=worker, args=(queue.Queue(),), daemon=True).start()
    pool = concurrent.futures.ThreadPoolExecutor(2, "upstream")
    calls = [asyncio.get_running_loop().run_in_executor(pool, call_upstream, end) for end, _ in pairs]
    await asyncio.sleep(0.2)
    print("ready", flush=True)
    while True:
        await asyncio.sleep(0.01)
asyncio.run(main())
"""


@pytest.fixture(scope="module", params=["auto", "no-kernel"])
def report(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("idle")
    (folder / "app.py").write_text(PROGRAM)
    program = subprocess.Popen([PYTHON, folder / "app.py"], stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout.readline() == "ready\n"
        done = phlox("record", "--mode", request.param, "-p", program.pid, "-d", "1", "-o", folder / "a.phlox")
        assert done.returncode == 0, done.stderr
    finally:
        program.kill()
        program.wait()
    return json.loads(phlox("report", "--json", folder / "a.phlox").stdout)


def test_threads_at_the_place_where_they_fetch_work_are_idle(report):
    idle = {(place["name"].split(".")[-1], place["file"]): place["threads"] for place in report["left_out"]["places"]}
    assert idle == {("_run_once", "base_events.py"): 1, ("_handle_workers", "pool.py"): 1, ("_handle_tasks", "pool.py"): 1,
                    ("_handle_results", "pool.py"): 1, ("worker", "pool.py"): 2, ("worker", "app.py"): 1}


def test_threads_within_what_they_were_given_are_at_work(report):
    upstream = [thread for thread in report["threads"] if "upstream" in thread["name"]]
    assert len(upstream) == 2
    for thread in upstream:
        waiting = thread["waiting_ns"]
        assert waiting["at_work"] > 0.5e9 and waiting["for_work"] == waiting["not_known"] == 0, thread
    (finding,) = [finding for finding in report["findings"] if finding["kind"] == "pool_busy"]
    assert "2 of 2 threads of ThreadPoolExecutor" in finding["text"] and "in call_upstream (app.py:" in finding["text"]


def test_the_time_of_the_event_loop_divides(report):
    (loop,) = report["event_loops"]
    parts = loop["parts_ns"]
    assert loop["loop"] == "asyncio" and sum(parts.values()) == loop["wall_ns"]
    assert parts["idle"] > 0 and parts["not_known"] == 0, parts
    assert parts["blocked"] < 0.01 * loop["wall_ns"], parts  # 0.065 ms of a second was seen beside other tests
