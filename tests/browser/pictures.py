"""Pictures described by a test and drawn by `make_picture` of the build tree, and what can be seen of them in a page."""
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PHLOX_BUILD_DIR", ROOT / "build" / "dev"))


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


def boxes(page):
    """Every drawn box: its node, name in full, classes, and place."""
    return page.evaluate(
        """() => [...document.querySelectorAll('.b')].map(g => {
            const r = g.querySelector('rect'), t = g.querySelector('text');
            return {node: +g.dataset.n, text: t ? t.textContent : '', css: g.getAttribute('class'), fill: r.getAttribute('class'),
                    x: +r.getAttribute('x'), y: +r.getAttribute('y'), width: +r.getAttribute('width')};
        })"""
    )


def box(page, text, nth=0):
    return page.locator(".b", has=page.locator(f"text=/^{re.escape(text)}$/")).nth(nth)


def names(page):
    return [entry["text"] for entry in boxes(page)]


def fragment(page):
    return page.evaluate("location.hash")


def tip(page):
    assert page.locator("#tip").get_attribute("visibility") == "visible"
    return page.locator(".tip").inner_text()


def search_text(page):
    return page.evaluate("document.querySelector('input').value")


def matched(page):
    return page.locator(".found").inner_text()
