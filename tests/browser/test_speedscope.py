"""speedscope's own page (tools/get-consumers.sh brings it), given our export: its sums, and what it shows of a function, are the recording's."""
import base64
import collections
import json
import os
import pathlib
import sqlite3

import pytest

from pages import FLAGS, phlox

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "phlox" / "consumers"
PAGE = pathlib.Path(os.environ.get("PHLOX_CONSUMERS") or CACHE) / "node_modules" / "speedscope" / "dist" / "release" / "index.html"
# It draws by WebGL, which a machine without a graphics card has in software.
WEBGL = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--allow-file-access-from-files"]

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="no speedscope here: tools/get-consumers.sh")

# The sums as plain SQL gives them.
OWN = "select qualified_name, sum(wall_ns) from sample join stack on stack.id = sample.stack join frame on frame.id = stack.frame group by 1"


@pytest.fixture(scope="module")
def loaded(launch, recording, tmp_path_factory):
    """The page with the export in it, as the command `speedscope FILE` opens one."""
    folder = tmp_path_factory.mktemp("speedscope")
    phlox("export", recording, "-f", "speedscope", "--show", "everything", "-o", folder / "app.json")
    content = base64.b64encode((folder / "app.json").read_bytes()).decode()
    (folder / "app.js").write_text(f'speedscope.loadFileFromBase64("app.json", "{content}")')
    with launch([flag for flag in FLAGS if flag != "--disable-gpu"] + WEBGL) as browser:
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.set_default_timeout(60_000)
        if not page.evaluate("!!document.createElement('canvas').getContext('webgl')"):
            pytest.skip("this Chromium has no WebGL")
        page.goto(f"file://{PAGE}#localProfilePath={folder / 'app.js'}")
        page.wait_for_function("/ - speedscope$/.test(document.title) && document.querySelectorAll('canvas').length > 1")
        yield page


@pytest.fixture(scope="module")
def saved(loaded, tmp_path_factory):
    """What the page holds, by its own Ctrl-S."""
    with loaded.expect_download() as download:
        loaded.keyboard.press("Control+s")
    path = tmp_path_factory.mktemp("saved") / "saved.json"
    download.value.save_as(path)
    return json.loads(path.read_text())


def times_of(profile):
    """{frame: [own time, time with it on the stack]} of a profile of the type `evented`."""
    assert (profile["type"], profile["unit"]) == ("evented", "nanoseconds")
    times, stack, at = collections.defaultdict(lambda: [0, 0]), [], profile["startValue"]
    for event in profile["events"]:
        for frame in set(stack):
            times[frame][1] += event["at"] - at
        if stack:
            times[stack[-1]][0] += event["at"] - at
        at = event["at"]
        if event["type"] == "O":
            stack.append(event["frame"])
        else:
            assert stack.pop() == event["frame"]
    assert not stack
    return times


def test_sums_are_those_of_the_recording(recording, saved):
    database = sqlite3.connect(recording)
    total, in_functions = database.execute("select sum(wall_ns), sum(iif(stack is null, 0, wall_ns)) from sample").fetchone()
    frames, theirs, ours = saved["shared"]["frames"], collections.Counter(), collections.Counter()
    for profile in saved["profiles"]:
        for frame, (own, _) in times_of(profile).items():
            theirs[frames[frame]["name"]] += own
    for name, own in database.execute(OWN):
        ours[name] += own
    assert sum(profile["endValue"] - profile["startValue"] for profile in saved["profiles"]) == total
    assert sum(theirs.values()) == in_functions
    assert +theirs == +ours


def shown(nanoseconds):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.2f}{unit}"
    return f"{nanoseconds:.2f}ns"


def test_sandwich_shows_what_a_function_has(loaded, saved):
    times = times_of(saved["profiles"][saved["activeProfileIndex"]])
    frame = max(times, key=lambda frame: times[frame])
    own, with_it = times[frame]
    loaded.keyboard.press("3")
    rows = loaded.locator("tr").filter(has=loaded.get_by_text(saved["shared"]["frames"][frame]["name"], exact=True))
    rows.first.wait_for()
    assert [shown(with_it), shown(own)] in [[cell.split(" ")[0] for cell in row.locator("td").all_inner_texts()][:2] for row in rows.all()]
