"""Times pages in Chromium: run by harness/page.py with the Python of the tests' environment, which has playwright.

    page_timings.py open ROUNDS NAME=ADDRESS...      opens every page in turn: {NAME: [ms]}, {NAME: {crashed_s}} if the browser gave it up
    page_timings.py filters PAGE.html JOB.json       the addresses of JOB, one after the other: [{drawn, model}]
    page_timings.py redraws PAGE.html JOB.json       [[fragment, selector, kind, steps]]: [[ms]]
"""
import json
import os
import shutil
import sys
import time

from playwright.sync_api import Error, sync_playwright

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page_timings.js")
# speedscope draws by WebGL, which runs in software (SwiftShader) on a machine without a graphics card.
# Everything else is painted by the CPU directly: Debian's Chromium would use SwiftShader for it too, where
# one frame takes seconds.
FLAGS = ["--no-sandbox", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic",
         "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--allow-file-access-from-files",
         "--disable-gpu-compositing", "--disable-gpu-rasterization"]
SIZE = {"width": 1440, "height": 900}


class Tab:
    def __init__(self, browser, address):
        self.context = browser.new_context(viewport=SIZE)
        self.context.set_default_timeout(600_000)
        self.page = self.context.new_page()
        self.page.add_init_script(path=SCRIPT)
        self.page.goto(address, wait_until="commit", timeout=600_000)

    def __enter__(self):
        return self.page

    def __exit__(self, *_):
        self.context.close()


def opened(browser, rounds, pages):
    times = {name: [] for name, _ in pages}
    for turn in range(rounds + 1):
        for name, address in pages:
            if isinstance(times[name], dict):
                continue
            begun = time.monotonic()
            try:
                with Tab(browser, address) as page:
                    taken = page.evaluate("phloxBench.open()")
                    if turn == 0 and os.environ.get("PHLOX_BENCH_SHOTS"):
                        page.screenshot(path=os.path.join(os.environ["PHLOX_BENCH_SHOTS"], name.replace(" ", "-") + ".png"))
            except Error as error:
                if "crashed" not in str(error):
                    raise
                times[name] = {"crashed_s": time.monotonic() - begun}
                continue
            if turn:  # the first one warms the caches
                times[name].append(taken)
    return times


def filters(browser, address, fragments):
    with Tab(browser, address) as page:
        page.evaluate("phloxBench.open()")
        return [page.evaluate("(fragment) => phloxBench.go(fragment)", fragment) for fragment in fragments]


def redraws(browser, address, jobs):
    result = []
    for fragment, selector, kind, steps in jobs:
        with Tab(browser, address + "#" + fragment) as page:
            page.evaluate("phloxBench.open()")
            page.evaluate("(job) => phloxBench.redraw(...job)", [selector, kind, 4])
            result.append(page.evaluate("(job) => phloxBench.redraw(...job)", [selector, kind, steps]))
    return result


def main():
    what, *words = sys.argv[1:]
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        sys.exit("chromium is needed: apt-get install chromium")
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=chromium, args=FLAGS) as browser:
        if what == "open":
            result = opened(browser, int(words[0]), [word.split("=", 1) for word in words[1:]])
        else:
            with open(words[1]) as file:
                job = json.load(file)
            result = {"filters": filters, "redraws": redraws}[what](browser, "file://" + os.path.abspath(words[0]), job)
        print(json.dumps({"browser": browser.version, "result": result}))


if __name__ == "__main__":
    main()
