"""Pictures made by `make_picture` of the build tree, opened in a real Chromium."""
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PHLOX_BUILD_DIR", ROOT / "build" / "dev"))
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]


class Frame(str):
    """One frame of a description, see make_picture.cpp."""

    def __new__(cls, name, module="app", file=None, line=1, kind=0):
        file = f"/app/{module}.py" if file is None else file
        return super().__new__(cls, f"{name}|{module}|{file}|{line}|{kind}")


class Picture:
    """What a test wants to see: stacks, and the words around them."""

    def __init__(self, title="app.py", **words):
        self.lines = [f"title\t{title}", f"subtitle\t{words.pop('subtitle', 'Python 3.12.1, 1 thread')}"]
        self.lines.append(f"quality\t{words.pop('quality', '100 samples (200 Hz of 200 Hz asked), 0 rejected')}")
        self.lines += [f"{key}\t{value}" for key, value in words.items()]

    def stack(self, weight, *frames, samples=1):
        frames = [frame if isinstance(frame, Frame) else Frame(frame) for frame in frames]
        self.lines.append("\t".join(["stack", str(weight), str(samples), *frames]))
        return self

    def write(self, path):
        text = "\n".join(self.lines) + "\n"
        subprocess.run([BUILD / "tests" / "make_picture", path], input=text.encode("utf-8", "surrogateescape"), check=True)
        return path


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    assert chromium, "chromium is needed for the browser tests: apt-get install chromium"
    with sync_playwright() as playwright:
        with playwright.chromium.launch(executable_path=chromium, args=FLAGS) as launched:
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
        context.set_default_timeout(10_000)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(f"script error: {error}"))
        page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
        page.on("request", lambda request: request.url.startswith(("file:", "data:")) or complaints.append(request.url))
        page.goto(f"file://{path}{fragment}")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []
