"""phlox view: where the page lies, and who opens it."""
import importlib.util
import os
import pathlib
import re

import pytest
from cli_support import phlox

TREE = pathlib.Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("synthetic", TREE / "bench" / "recording" / "synthetic.py")
synthetic = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(synthetic)


@pytest.fixture
def recording(tmp_path):
    synthetic.write(tmp_path / "app.phlox", samples=200, threads=3, stacks=50, depth=5)
    return tmp_path / "app.phlox"


@pytest.fixture
def desktop(tmp_path):
    """An xdg-open that notes what it was asked to open; the environment that finds it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    os.mkfifo(tmp_path / "asked")
    (folder / "xdg-open").write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/asked\n')
    (folder / "xdg-open").chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "SUDO_UID")}
    return {**environment, "PATH": f"{folder}:{environment['PATH']}"}


def test_the_page_is_next_to_the_recording_and_its_path_is_printed(recording, desktop):
    done = phlox("view", recording, env=desktop)
    page = recording.with_name("app.phlox.html")
    assert done.returncode == 0 and done.stdout == ""
    assert re.search(rf"wrote {page} \([\d.]+ [KM]B\): open it in any browser", done.stderr), done.stderr
    assert page.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("variable", ["DISPLAY", "WAYLAND_DISPLAY"])
def test_a_desktop_opens_it(recording, desktop, tmp_path, variable):
    done = phlox("view", recording, "-o", tmp_path / "other.html", env={**desktop, variable: ":7"})
    assert re.search(rf"wrote {tmp_path}/other.html \([\d.]+ [KM]B\): it opens in your browser", done.stderr), done.stderr
    assert (tmp_path / "asked").read_text() == f"{tmp_path / 'other.html'}\n"


def test_a_desktop_without_xdg_open_is_no_error(recording, desktop):
    done = phlox("view", recording, env={**desktop, "DISPLAY": ":7", "PATH": "/nonexistent"})
    assert done.returncode == 0 and "open it in any browser" in done.stderr


def test_errors_are_reported(recording, desktop, tmp_path):
    assert "view which recording?" in phlox("view", env=desktop).stderr
    assert phlox("view", recording, "-o", "-", env=desktop).returncode == 2
    assert "up to 500" in phlox("view", recording, "--max-page-size", "much", env=desktop).stderr
    done = phlox("view", recording, "--max-page-size", "0.01", env=desktop)
    assert "--max-page-size" in done.stderr and not recording.with_name("app.phlox.html").exists()


def test_choices_say_what_goes_in(recording, desktop, tmp_path):
    phlox("view", recording, "--title", "only & one", "--state", "running", env=desktop)
    assert "only while running" in recording.with_name("app.phlox.html").read_text()
    assert "<title>only &amp; one</title>" in recording.with_name("app.phlox.html").read_text()
