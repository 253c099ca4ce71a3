"""Which interpreter the tests of the command line take: an ordinary one, whichever is first in the list."""
import sys

from cli_support import ordinary_python

ROWS = [("3.13t", "3.13.5", "t"), ("debian-3.9", "3.9.2", "-"), ("standalone-3.12.3", "3.12.3", "-"), ("trixie-3.13-dbg", "3.13.5", "d"),
        ("trixie-3.13", "3.13.5", "-")]


def test_free_threaded_and_debug_builds_are_passed_over(tmp_path):
    for name, *_ in ROWS:
        (tmp_path / name).symlink_to(sys.executable)
    (tmp_path / "pythons.list").write_text("".join(f"{name}\t{tmp_path / name}\thow\t{version}\t{flags}\n" for name, version, flags in ROWS))
    assert ordinary_python(str(tmp_path / "pythons.list")) == str(tmp_path / "standalone-3.12.3")


def test_without_a_list_it_is_the_systems(tmp_path):
    (tmp_path / "pythons.list").write_text("")
    assert ordinary_python(str(tmp_path / "pythons.list")) == ordinary_python("") == "/usr/bin/python3"
