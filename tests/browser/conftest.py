"""Pictures made by `make_picture` of the build tree, opened in a real Chromium."""
import os
import pathlib
import shutil

import pytest

from pages import FLAGS, export, settled, synthetic
from pictures import Picture


def chromium():
    brought = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "phlox" / "chromium-138"  # by install-test-deps.sh
    found = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium", path=brought)
    assert found, "chromium is needed for the browser tests: make test brings it"
    return found


@pytest.fixture(scope="session")
def launch():
    """Starts a Chromium; playwright itself is there once only."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield lambda flags: playwright.chromium.launch(executable_path=chromium(), args=flags)


@pytest.fixture(scope="session")
def browser(launch):
    with launch(FLAGS) as launched:
        yield launched


@pytest.fixture
def open_picture(browser, tmp_path):
    """Opens a picture, or a file, from disk; a script error or any network request fails the test."""
    complaints = []
    contexts = []

    def open_(picture, fragment="", width=1200, height=800, script=True, dark=False):
        path = picture.write(tmp_path / "picture.svg") if isinstance(picture, Picture) else picture
        context = browser.new_context(
            viewport={"width": width, "height": height},
            java_script_enabled=script,
            color_scheme="dark" if dark else "light",
        )
        contexts.append(context)
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(f"script error: {error}"))
        page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
        page.on("request", lambda request: request.url.startswith(("file:", "data:", "blob:")) or complaints.append(request.url))
        page.goto(f"file://{path}{fragment}")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture(scope="session")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "app.phlox"
    synthetic.write(path, samples=4000, threads=12, stacks=900, depth=80, seed=5)
    return path


# Of a module, which may have a recording of its own.
@pytest.fixture(scope="module")
def page_file(recording):
    return export(recording, recording.with_suffix(".html"))


@pytest.fixture
def open_page(open_picture, page_file):
    def open_(fragment="", **how):
        return settled(open_picture(how.pop("file", page_file), fragment, **how))

    return open_
