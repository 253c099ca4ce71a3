"""A program whose CPU is emulated. The kernel only has the emulator's registers, so its stacks are read from user space."""
import pathlib
import shutil
import subprocess

import pytest

from live_support import PHLOX, Recording

PROGRAM = pathlib.Path(__file__).with_name("programs") / "emulated.py"
EMULATORS = {"valgrind": ["valgrind", "-q", "--tool=none"], "qemu": ["qemu-x86_64-static"], "loader": ["/lib64/ld-linux-x86-64.so.2"]}


@pytest.mark.parametrize("name", EMULATORS)
def test_stacks_of_an_emulated_program(name, tmp_path):
    command = EMULATORS[name]
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}")
    path = tmp_path / "a.phlox"
    with subprocess.Popen([*command, "/usr/bin/python3", PROGRAM], stdout=subprocess.PIPE, text=True) as target:
        try:
            assert target.stdout.readline() == "ready\n"
            done = subprocess.run([PHLOX, "record", "-p", str(target.pid), "-d", "2", "-o", path], capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
        finally:
            target.kill()
    # Others are of no stack: the kernel's account of what ran between two samples.
    stacks = [(frames, samples) for frames, samples, _, _ in Recording(path).stacks() if frames != ["(ran between two samples)"]]
    right = sum(samples for frames, samples in stacks if frames[:2] == ["<module>", "outer"])
    assert right > 20 and right == sum(samples for _, samples in stacks), (done.stderr, stacks)
