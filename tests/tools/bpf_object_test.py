"""The compiled program of the kernel's capture that is kept in the tree (cmake/bpf_object.cmake)."""
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(tree, do, *more):
    done = subprocess.run(["cmake", "-D", f"DO={do}", *more, "-P", tree / "cmake" / "bpf_object.cmake"], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def copy(tmp_path):
    """The files of the program alone, in another folder."""
    for folder in ("cmake", "src/phlox/sampler/kernel"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def test_the_kept_object_comes_from_these_sources():
    status, said = run(ROOT, "check")
    assert status == 0, said


def test_compiled_again_in_another_folder_it_has_the_same_bytes(copy, tmp_path):
    status, said = run(copy, "verify", "-D", f"OUT={tmp_path / 'fresh.o'}")
    if said.startswith("skipped"):
        pytest.skip(said)
    assert status == 0 and "the same bytes" in said, said


def test_a_changed_source_is_seen(copy):
    with open(copy / "src/phlox/sampler/kernel/maps.bpf.h", "a") as file:
        file.write("// changed\n")
    status, said = run(copy, "check")
    assert status != 0 and "other sources" in said and "make bpf" in " ".join(said.split())


def test_a_changed_object_is_seen(copy):
    with open(copy / "src/phlox/sampler/kernel/capture.bpf.o", "ab") as file:
        file.write(b"\0")
    status, said = run(copy, "check")
    assert status != 0 and "make bpf" in said
