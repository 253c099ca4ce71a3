"""The tasks of docs/stories.md ("From the page alone"), done as a person does them: every click and key goes through a Hand, which counts them.
tests/browser/test_page_stories.py runs them; with recordings of the programs the pictures of the page are made:

    python tests/browser/page_stories.py RECORDINGS docs/images

RECORDINGS: a folder with before.phlox, waiting.phlox, slower.phlox, taxi.phlox, prices.phlox and diff.html, made by the commands of docs/stories.md.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys

from pages import CATCH_COPIES, export, settled

ROW = 20  # as web/src/views/timeline_picture.ts has it


class Hand:
    """What a person does: a click, a drag and a word that is typed count one each, a key one."""

    def __init__(self, page, pictures=None):
        self.page, self.pictures, self.clicks, self.keys = page, pictures, 0, 0
        page.evaluate(CATCH_COPIES)

    def click(self, name, within="body", menu=False):
        """The button of this name; `menu`: an entry of the menu."""
        self.clicks += 1
        role = "menuitem" if menu else "button"
        self.page.locator(within).get_by_role(role, name=name, exact=isinstance(name, str)).first.click()
        return settled(self.page)

    def at(self, locator, button="left", **position):
        self.clicks += 1
        locator.click(button=button, **position)
        return settled(self.page)

    def press(self, key):
        self.keys += 1
        self.page.keyboard.press(key)
        return settled(self.page)

    def write(self, text):
        """Counts each letter."""
        self.keys += len(text)
        self.page.keyboard.type(text)
        return settled(self.page)

    def picture(self, name):
        if self.pictures:
            self.page.mouse.move(1, 1)
            path = self.pictures / f"{name}.png"
            settled(self.page).screenshot(path=path)
            if shutil.which("pngquant"):
                subprocess.run(["pngquant", "--force", "--strip", "--speed", "1", "--output", path, "96", path], check=True)

    @property
    def count(self):
        parts = [f"{n} {word}{'' if n == 1 else 's'}" for n, word in ((self.clicks, "click"), (self.keys, "key")) if n]
        return ", ".join(parts) or "none"


def answer(page):
    return settled(page).locator(".timeline .answer").inner_text()


def thread_rows(page):
    """The first row of a thread, with one process: a process has a head row only if there are several."""
    return page.locator(".timeline .lanes canvas")


def busiest_thread(hand, rows_above=0):
    """Which thread is busiest, and on what: said on the first screen; with its stacks alone, and down to the line."""
    page = hand.page
    words = answer(page)
    name, function = re.match(r"Busiest thread: (.*?), .* CPU time, .* of it in (.*?)\.(?: |$)", words).groups()
    hand.at(thread_rows(page), position={"x": 60, "y": ROW * rows_above + ROW // 2})
    hand.click(re.compile("^Only thread"), ".timeline")
    assert name in page.locator(".chip").first.inner_text()
    hand.picture("story-busiest")
    return name, function


def line_of_the_thread(hand, file):
    """After busiest_thread: to the line of the program that costs most, with everything that it calls."""
    page = hand.page
    hand.click("Source", "nav.views")
    hand.at(page.locator(".source .choose .cell.name", has_text=file).first)
    hand.picture("story-line")
    return page.locator(".source .chosen").inner_text()


def who_keeps_it_waiting(hand):
    """What does the slow thread wait for, and who keeps it waiting: what is waited in, by line, and what was done meanwhile."""
    page = hand.page
    hand.click("Waiting")
    hand.click("Lines")
    hand.click("Functions and lines", "nav.views")
    hand.picture("story-waits")
    first = page.locator(".functions .rows .row").first.inner_text()
    hand.click("Flame chart", "nav.views")
    hand.click("8", ".chart")
    for _ in range(8):
        hand.press("w")
    hand.picture("story-who")
    return first


def what_blocked_the_loop(hand):
    """When was the event loop blocked, and in what: the table of stalls, and the longest one in the timeline."""
    page = hand.page
    hand.click("Stalls", "nav.views")
    hand.at(page.locator(".stalls .rows .row").first)
    hand.picture("story-stalls")
    return page.locator(".loop-words").first.inner_text()


def every_path(hand, function):
    """Every path into one function, and its share."""
    page = hand.page
    hand.press("/")
    hand.write(function)
    found = page.locator(".found").inner_text()
    hand.press("Tab")
    hand.click("Functions and lines", "nav.views")
    hand.at(page.locator(".functions .rows .row.hit .cell.name").first, button="right")
    hand.click(re.compile("^Callers and callees"), menu=True)
    hand.picture("story-paths")
    return found, page.locator(".sandwich .chosen").inner_text()


def first_and_last(hand):
    """What differs between the first and the last ten seconds (of a short recording: the first and the last tenth)."""
    page = hand.page
    hand.click("Difference", "nav.views")
    hand.click(re.compile("^First and last"), ".difference")
    hand.picture("story-first-last")
    return [row.split("\n") for row in page.locator(".difference .rows .row:not(.dim)").all_inner_texts()]


def send_this_view(hand):
    """Send a colleague exactly this view: the address, for the same file."""
    hand.click("Copy link")
    return hand.page.evaluate("window.copied")


def before_and_after(hand, function):
    """A worker before and after its fix, in the page of both: the search, the table, the flame graph of both."""
    page = hand.page
    hand.press("/")
    hand.write(function)
    rows = page.locator(".difference .rows .row.hit").all_inner_texts()
    hand.picture("story-before-after")
    hand.click("Flame graph", ".difference")
    hand.click(re.compile("Timeline$"), ".timeline")
    hand.picture("story-before-after-flame")
    return rows


def main():
    from playwright.sync_api import sync_playwright

    source, target = map(pathlib.Path, sys.argv[1:])
    counts = {}
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"]) as browser:
        def hand_on(name, height=700, light="light"):
            file = source / f"{name}.html"
            if not file.exists():
                export(source / f"{name}.phlox", file, "--source")
            page = browser.new_page(viewport={"width": 1180, "height": height}, color_scheme=light)
            page.set_default_timeout(60_000)
            page.goto(f"file://{file}")
            return Hand(settled(page), target)

        def tell(name, hand, told):
            counts[name] = hand.count
            print(name, hand.count, told, flush=True)

        hand = hand_on("taxi")
        hand.picture("story-taxi")
        tell("busiest", hand, busiest_thread(hand))
        tell("line", hand, line_of_the_thread(hand, "dataflow.py"))
        hand = hand_on("waiting", height=1080)
        tell("waits", hand, who_keeps_it_waiting(hand))
        hand = hand_on("prices")
        tell("stall", hand, what_blocked_the_loop(hand))
        hand = hand_on("before")
        hand.picture("page")
        hand_on("before", light="dark").picture("page-dark")
        tell("paths", hand, every_path(hand, "find_product"))
        hand = hand_on("slower")
        tell("first and last", hand, first_and_last(hand))
        before = hand.clicks
        told = send_this_view(hand)
        counts["send"] = hand.clicks - before
        print("send", counts["send"], told)
        hand = hand_on("diff")
        tell("before and after", hand, before_and_after(hand, "find_product"))
    print(json.dumps(counts, indent=1))


if __name__ == "__main__":
    main()
