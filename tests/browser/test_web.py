"""The unit tests of web/ (web/test/*_test.ts), run in the browser the code is for, and its types checked.

They need no DOM, so `make check` runs them without a browser.
"""
import json
import pathlib
import re
import shutil
import subprocess

import pytest

WEB = pathlib.Path(__file__).resolve().parents[2] / "web"


UNITS = pytest.mark.parametrize("path", sorted(WEB.glob("test/*_test.ts")), ids=lambda path: path.stem)


def bundled(path, folder, *options):
    subprocess.run(["esbuild", path, "--bundle", "--format=iife", "--target=es2019", "--charset=utf8", "--log-level=warning",
                    f"--outfile={folder / 'test.js'}", *options], check=True)
    return folder / "test.js"


def all_passed(results):
    assert len(results) > 1
    assert [result for result in results if result["failure"]] == []


@UNITS
def test_unit(path, browser, tmp_path):
    page = browser.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_content("<!DOCTYPE html><meta charset=utf-8>")
    page.add_script_tag(content=bundled(path, tmp_path).read_text())
    results = page.evaluate("window.results")
    page.close()
    assert errors == []
    all_passed(results)


@pytest.mark.smoke
@UNITS
def test_unit_without_a_browser(path, tmp_path):
    node = shutil.which("node")
    assert node, "node is needed, which comes with tsc: apt-get install node-typescript"
    script = bundled(path, tmp_path, "--banner:js=globalThis.window = {};", "--footer:js=console.log(JSON.stringify(window.results));")
    done = subprocess.run([node, script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    all_passed(json.loads(done.stdout))


def test_types():
    compiler = shutil.which("tsc")
    assert compiler, "the TypeScript compiler is needed: apt-get install node-typescript"
    done = subprocess.run([compiler, "-p", WEB], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def checked_format(folder):
    """Whether all of its TypeScript is formatted, and what dprint says."""
    done = subprocess.run([WEB.parent / "tools" / "format-web.sh", "--check", folder], capture_output=True, text=True)
    if done.returncode == 3:
        pytest.skip(done.stderr)
    return done.returncode == 0, done.stdout + done.stderr


def test_format():
    formatted, words = checked_format(WEB)
    assert formatted, words


def test_a_file_that_is_not_formatted_is_named(tmp_path):
    shutil.copy(WEB / "dprint.json", tmp_path)
    (tmp_path / "good.ts").write_text('export const one = "1";\n')
    assert checked_format(tmp_path)[0]
    (tmp_path / "bad.ts").write_text("export const one='1'\n")
    formatted, words = checked_format(tmp_path)
    assert not formatted and "bad.ts" in words and "good.ts" not in words


# As web/README.md has it; "" is what lies in src/ itself.
MAY_USE = {
    "model": {"model", "words"},
    "layout": {"layout", "model"},
    "state": {"state", "model"},
    "views": {"views", "layout", "model", "state", "page/dom", "words", "colours"},
    "page": {"page", "views", "layout", "model", "state", "words", "colours"},
    "svg": {"svg", "layout", "model", "words", "colours"},
    "": {"model"},
}


def test_folders_use_only_what_they_may():
    wrong = []
    for path in sorted(WEB.glob("src/**/*.ts")):
        here = path.relative_to(WEB / "src")
        folder = here.parts[0] if len(here.parts) > 1 else ""
        for wanted in re.findall(r'from "(\..*?)"', path.read_text()):
            there = (path.parent / wanted).resolve().relative_to((WEB / "src").resolve())
            if not {there.parts[0], str(there)} & MAY_USE[folder]:
                wrong.append(f"{here} uses {there}")
        if folder in ("model", "layout", "state") and re.search(r"\b(document|window)\.", path.read_text()):
            wrong.append(f"{here} knows the DOM")
    assert wrong == []
