"""The tasks of docs/stories.md that are done from the page alone, click by click, on recordings made for it; and their counts as the page shows them."""
import re
import subprocess

import pytest

import page_stories
from page_stories import Hand
from pages import export, phlox, report, settled
from pictures import BUILD, ROOT

pytestmark = pytest.mark.live


# What examples/prices_api.py does to its loop, without FastAPI.
STALLS = """
import asyncio, time
def read_prices():
    end = time.thread_time() + 0.4
    while time.thread_time() < end: sum(range(500))
async def ticks():
    while True: await asyncio.sleep(0.01)
async def main():
    task = asyncio.create_task(ticks())
    for _ in range(8):
        await asyncio.sleep(0.3)
        read_prices()
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """Short recordings of the programs of the stories, as pages with their source, and the page of both workers."""
    folder = tmp_path_factory.mktemp("stories")
    for name, seconds, *words in (("before", 4, "web_worker.py"), ("after", 4, "web_worker.py", "--fixed"), ("waiting", 2, "waiting.py"), ("slower", 8, "slower.py")):
        subprocess.run([BUILD / "phlox", "record", "-q", "-r", "300", "--max-overhead", "off", "-o", folder / f"{name}.phlox", "--",
                        "/usr/bin/python3", ROOT / "examples" / words[0], *words[1:], str(seconds)], check=True)
        export(folder / f"{name}.phlox", folder / f"{name}.html", "--source")
    (folder / "prices.py").write_text(STALLS)
    subprocess.run([BUILD / "phlox", "record", "-q", "-r", "300", "--max-overhead", "off", "-o", folder / "prices.phlox", "--", "/usr/bin/python3", folder / "prices.py"],
                   check=True)
    export(folder / "prices.phlox", folder / "prices.html", "--source")
    phlox("diff", folder / "before.phlox", folder / "after.phlox", "-o", folder / "diff.html")
    return folder


@pytest.fixture
def hand(recordings, open_picture):
    return lambda name, fragment="": Hand(settled(open_picture(recordings / f"{name}.html", fragment, width=1180, height=900)))


@pytest.fixture(scope="module")
def told():
    """What docs/stories.md says that each task takes."""
    rows = re.findall(r"^\| (.*?) \| ([^|]*(?:click|key)[^|]*) \|", (ROOT / "docs" / "stories.md").read_text(), re.M)
    assert len(rows) == 8
    return dict(rows)


def counted(told, start):
    (count,) = [count for task, count in told.items() if task.startswith(start)]
    return count


def test_the_busiest_thread_and_its_line(hand, recordings, told):
    one = hand("before")
    thread = report(recordings / "before.phlox", "--show", "everything")["threads"][0]
    name, function = page_stories.busiest_thread(one)
    assert name in thread["name"] and function
    assert one.count == counted(told, "Which thread is busiest")
    assert "% of what is shown" in page_stories.line_of_the_thread(one, "web_worker.py")
    assert one.page.locator(".source .text .row .cell", has_text='if product["number"] == number').count() == 1
    assert one.count == counted(told, "From the most solid bar")


def test_wait_targets_and_wakers(hand, told):
    one = hand("waiting")
    first = page_stories.who_keeps_it_waiting(one)
    assert "stock_of:19" in first
    words = one.page.locator(".chart .notes").inner_text()
    assert "busiest of 9 threads" in words and "timeline.zoom" in one.page.url
    assert one.count == counted(told, "What does the slow thread wait for")


def test_what_blocked_the_loop(hand, told):
    one = hand("prices")
    assert re.search(r"the longest .* in read_prices \(prices\.py:\d+\)", page_stories.what_blocked_the_loop(one))
    assert one.page.locator(".stalls .rows .row", has_text="read_prices").count() >= 3
    assert one.count == counted(told, "When was the event loop blocked")


def test_every_path_into_a_function(hand, told, recordings):
    one = hand("before")
    found, chosen = page_stories.every_path(one, "find_product")
    assert chosen.startswith("find_product ") and re.search(r"Matched ([\d.]+ %)", found).group(1) in chosen
    assert one.count == counted(told, "Every path")


def test_first_and_last_and_the_link_to_it(hand, told, open_picture, recordings):
    one = hand("slower")
    rows = page_stories.first_and_last(one)
    assert any("is_known" in cell for row in rows for cell in row), rows
    assert one.count == counted(told, "What differs")
    sent = Hand(one.page)
    address = page_stories.send_this_view(sent)
    assert sent.count == counted(told, "Send a colleague")
    there = settled(open_picture(recordings / "slower.html", "#" + address.split("#")[1], width=1180, height=900))
    for part in (".whole", ".difference .counts", ".difference .rows"):
        assert there.locator(part).inner_text() == one.page.locator(part).inner_text()


def test_a_worker_before_and_after_its_fix(hand, told):
    one = hand("diff")
    (row,) = page_stories.before_and_after(one, "find_product")
    assert "shrank" in row or "vanished" in row
    assert one.page.locator(".difference canvas").first.bounding_box()["height"] > 100
    assert one.count == counted(told, "A worker before and after")
