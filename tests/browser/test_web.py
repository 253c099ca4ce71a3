"""The unit tests of web/ (web/test/*_test.ts), run in the browser the code is for, and its types checked."""
import pathlib
import shutil
import subprocess

import pytest

WEB = pathlib.Path(__file__).resolve().parents[2] / "web"


@pytest.mark.parametrize("path", sorted(WEB.glob("test/*_test.ts")), ids=lambda path: path.stem)
def test_unit(path, browser, tmp_path):
    bundle = tmp_path / "test.js"
    subprocess.run(
        ["esbuild", path, "--bundle", "--format=iife", "--target=es2019", "--charset=utf8", "--log-level=warning",
         f"--outfile={bundle}"], check=True)
    page = browser.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_content("<!DOCTYPE html><meta charset=utf-8>")
    page.add_script_tag(content=bundle.read_text())
    results = page.evaluate("window.results")
    page.close()
    assert errors == []
    assert len(results) > 1
    assert [result for result in results if result["failure"]] == []


def test_types():
    compiler = shutil.which("tsc")
    assert compiler, "the TypeScript compiler is needed: apt-get install node-typescript"
    done = subprocess.run([compiler, "-p", WEB], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
