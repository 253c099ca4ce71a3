"""A real program, recorded and drawn by the real phlox: what the picture says is what the program did."""
import subprocess
import sys

from pictures import BUILD, box, boxes, matched, names

PROGRAM = '''
import time

def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(200))

def heavy():
    spin(0.9)

def light():
    spin(0.1)

def main():
    for _ in range(2):
        heavy()
        light()

main()
'''


def test_picture_of_a_real_program(open_picture, tmp_path):
    (tmp_path / "shares.py").write_text(PROGRAM)
    recording, svg = tmp_path / "shares.phlox", tmp_path / "shares.svg"
    for command in [
        ["record", "--max-overhead", "off", "-o", recording, "--", sys.executable, tmp_path / "shares.py"],
        ["export", recording, "-o", svg],
    ]:
        done = subprocess.run([BUILD / "phlox", *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    page = open_picture(svg)
    assert {"main", "heavy", "light"} <= set(names(page))
    widths = {}  # the widest of each name: `site` has a main too
    for entry in boxes(page):
        widths[entry["text"]] = max(entry["width"], widths.get(entry["text"], 0))
    # 90 to 10 by the program's own clock; the rest is for a busy machine, where either may be kept waiting.
    assert 0.75 < widths["heavy"] / widths["main"] < 0.97
    page.locator("input").fill(r"^shares\.spin$")
    assert float(matched(page).split()[1]) > 80
    box(page, "light").click()
    assert "heavy" not in names(page)
    assert "samples (" in page.locator(".quality").inner_text() and "rejected" in page.locator(".quality").inner_text()
    assert "shares.py" in page.locator("h1").inner_text()


POOL = '''
import queue, threading, time

jobs = queue.Queue()

def idle():
    while True:
        jobs.get()

def busy():
    end = time.perf_counter() + 2
    while time.perf_counter() < end:
        sum(range(200))

for _ in range(30):
    threading.Thread(target=idle, daemon=True).start()
worker = threading.Thread(target=busy)
worker.start()
worker.join()
'''


def test_threads_that_only_wait_are_out_of_the_way_and_a_click_away(open_picture, tmp_path):
    (tmp_path / "pool.py").write_text(POOL)
    recording, svg = tmp_path / "pool.phlox", tmp_path / "pool.svg"
    for command in [
        ["record", "--max-overhead", "off", "-o", recording, "--", sys.executable, tmp_path / "pool.py"],
        ["export", recording, "-o", svg],
    ]:
        done = subprocess.run([BUILD / "phlox", *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert "30 in idle (pool.py)" in done.stderr, done.stderr
    page = open_picture(svg)

    def share(name):
        found = [entry["width"] for entry in boxes(page) if entry["text"] == name]
        return max(found, default=0) / boxes(page)[0]["width"]

    # While they start on a busy machine they wait for a CPU and for the GIL, which is no waiting for something to do.
    assert share("busy") > 0.8 and share("idle") < 0.1
    assert "Not shown: " in page.locator(".left-out").inner_text() and "30 in idle (pool.py)" in page.locator(".left-out").inner_text()
    page.get_by_role("button", name="Everything").click()
    assert share("busy") < 0.1 and share("idle") > 0.8
    assert "Not shown" not in page.locator(".left-out").inner_text()
    assert page.evaluate("location.hash") == "#show=everything"
    page.get_by_role("button", name="Computing").click()
    assert share("busy") > 0.9
    page.get_by_role("button", name="Waiting").click()
    assert share("idle") > 0.8
    page.keyboard.press("s")
    assert page.evaluate("location.hash") == "#show=everything"
