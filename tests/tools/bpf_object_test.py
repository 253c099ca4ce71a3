"""The compiled programs of the kernel's capture that are kept in the tree (cmake/bpf_object.cmake)."""
import pathlib
import shutil
import subprocess

import pytest

import bpf_stack

ROOT = pathlib.Path(__file__).resolve().parents[2]
MACHINES = ("x86_64", "aarch64")


def run(tree, do, *more):
    done = subprocess.run(["cmake", "-D", f"DO={do}", *more, "-P", tree / "cmake" / "bpf_object.cmake"], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def copy(tmp_path):
    """The files of the program alone, in another folder."""
    for folder in ("cmake", "src/phlox/base", "src/phlox/sampler/kernel"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def test_the_kept_objects_come_from_these_sources():
    status, said = run(ROOT, "check")
    assert status == 0, said


def test_compiled_again_in_another_folder_they_have_the_same_bytes(copy, tmp_path):
    status, said = run(copy, "verify", "-D", f"OUT={tmp_path}")
    if said.startswith("skipped"):
        pytest.skip(said)
    assert status == 0, said
    assert [f"the same bytes for {machine}" in said for machine in MACHINES] == [True, True], said


@pytest.mark.parametrize("machine", MACHINES)
def test_no_program_needs_more_stack_than_a_kernel_gives(machine):
    """512 bytes for all functions of a call. Since Linux 6.13 x86-64 gives more, so a recording on such a kernel does not show it."""
    together = bpf_stack.deepest(ROOT / f"src/phlox/sampler/kernel/capture.{machine}.bpf.o")
    assert {"on_clock", "on_switch", "on_waking"} <= set(together)
    assert max(together.values()) <= 512, together


@pytest.mark.parametrize("source", ["sampler/kernel/maps.bpf.h", "base/system_calls.inc"])
def test_a_changed_source_is_seen(copy, source):
    with open(copy / "src/phlox" / source, "a") as file:
        file.write("// changed\n")
    status, said = run(copy, "check")
    assert status != 0 and "other sources" in said and "make bpf" in " ".join(said.split())


@pytest.mark.parametrize("machine", MACHINES)
def test_a_changed_object_is_seen(copy, machine):
    with open(copy / f"src/phlox/sampler/kernel/capture.{machine}.bpf.o", "ab") as file:
        file.write(b"\0")
    status, said = run(copy, "check")
    assert status != 0 and "make bpf" in said
