"""tools/news.py: what waits in news/ becomes the changelog's section, and nothing is lost or said twice."""
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHANGELOG = "# Changes\n\nNewest first.\n\n## 0.2.0, unreleased\n\n## 0.1.0, 2026-01-01\n\n### Added\n\n- The beginning.\n"


def release(tree, *words):
    done = subprocess.run([sys.executable, ROOT / "tools" / "news.py", "--tree", tree, "--date", "2026-12-01", *words], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / "news").mkdir()
    for name, text in {"README.md": "How.", "b.fixed.md": "No\nmore harm.\n", "a.fixed.md": "Ends.\n", "z-1.added.md": "A word.\n"}.items():
        (tmp_path / "news" / name).write_text(text)
    return tmp_path


SECTION = "## 0.2.0, 2026-12-01\n\n### Added\n\n- A word.\n\n### Fixed\n\n- Ends.\n- No more harm.\n"


def test_an_unreleased_section_is_filled_and_the_files_are_gone(tree):
    assert release(tree, "0.2.0") == (0, "")
    assert (tree / "CHANGELOG.md").read_text() == CHANGELOG.replace("## 0.2.0, unreleased\n", SECTION)
    assert [path.name for path in (tree / "news").iterdir()] == ["README.md"]


def test_a_section_that_stays_open_keeps_its_text_and_grows(tree):
    text = CHANGELOG.replace("## 0.2.0, unreleased\n", "## 0.2.0, unreleased\n\nIn short:\nfaster.\n")
    (tree / "CHANGELOG.md").write_text(text)
    assert release(tree, "0.2.0", "--date", "unreleased") == (0, "")
    filled = SECTION.replace("2026-12-01\n", "unreleased\n\nIn short:\nfaster.\n")
    assert (tree / "CHANGELOG.md").read_text() == CHANGELOG.replace("## 0.2.0, unreleased\n", filled)
    (tree / "news/c.added.md").write_text("Another word.\n")
    assert release(tree, "0.2.0") == (0, "")
    dated = filled.replace("unreleased", "2026-12-01").replace("- A word.\n", "- A word.\n- Another word.\n")
    assert (tree / "CHANGELOG.md").read_text() == CHANGELOG.replace("## 0.2.0, unreleased\n", dated)


def test_a_version_that_is_not_there_goes_on_top(tree):
    (tree / "CHANGELOG.md").write_text(CHANGELOG.replace("## 0.2.0, unreleased\n\n", ""))
    assert release(tree, "0.2.0") == (0, "")
    assert (tree / "CHANGELOG.md").read_text() == CHANGELOG.replace("## 0.2.0, unreleased\n", SECTION)


def test_the_first_version_of_all(tree):
    (tree / "CHANGELOG.md").write_text("# Changes\n\n")
    assert release(tree, "0.2.0") == (0, "")
    assert (tree / "CHANGELOG.md").read_text() == "# Changes\n\n" + SECTION


@pytest.mark.parametrize("name, text, words", [
    ("a.changed", "x", "WHAT.KIND.md"), ("a.broken.md", "x", "WHAT.KIND.md"), ("c.fixed.md", " \n", "empty"),
    ("c.fixed.md", "One.\n\nTwo.\n", "more than one paragraph")])
def test_a_file_that_is_wrong_is_named_and_nothing_is_written(tree, name, text, words):
    (tree / "news" / name).write_text(text)
    before = {path: path.read_text() for path in tree.rglob("*") if path.is_file()}
    status, said = release(tree, "0.2.0")
    assert status == 1 and name in said and words in said
    assert {path: path.read_text() for path in tree.rglob("*") if path.is_file()} == before


def test_a_version_comes_once(tree):
    assert release(tree, "0.2.0")[0] == 0
    (tree / "news" / "c.added.md").write_text("More.")
    status, said = release(tree, "0.2.0")
    assert status == 1 and "there already" in said and (tree / "news" / "c.added.md").exists()


def test_without_a_version_it_only_shows(tree):
    status, said = release(tree)
    assert status == 0 and said.endswith("### Fixed\n\n- Ends.\n- No more harm.\n")
    assert (tree / "CHANGELOG.md").read_text() == CHANGELOG


def test_our_own_news_is_as_it_should_be():
    status, said = release(ROOT)
    assert status == 0, said
