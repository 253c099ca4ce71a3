"""docs/stories.md is replayed: every command runs with its status, and prints what the story says."""
import os
import re
import shutil
import subprocess

import pytest
from cli_support import PHLOX, ROOT

pytestmark = pytest.mark.live

STORY = ROOT / "docs" / "stories.md"


def commands():
    """The commands of the page with the output it shows."""
    for block in re.findall(r"```console\n(.*?)```", STORY.read_text(), re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def replay(folder, seconds):
    """The outputs of all commands; `seconds` for the programs, or as the page has it."""
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:/usr/bin:/bin"}
    outputs = {}
    for command, _ in commands():
        words = re.sub(r"(web_worker|waiting)\.py", rf"\g<0> {seconds}", command) if seconds and "record" in command else command
        done = subprocess.run(words, shell=True, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240)
        assert done.returncode == (3 if "--fail-if" in command else 0), f"{command}\n{done.stdout}"
        outputs[command] = done.stdout
    return outputs


@pytest.fixture(scope="module")
def replayed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stories")
    for name in ("web_worker.py", "waiting.py"):
        shutil.copy(ROOT / "examples" / name, folder)
    (folder / "bin").mkdir()
    os.symlink(PHLOX, folder / "bin" / "phlox")
    # Three seconds hold enough for a difference that is no noise, unless others have the CPUs: a worker that gets a fifth of one has
    # served too few pages in them, and diff rightly says so. Then it records for longer, as a person would.
    for seconds in (None, 12, 30):
        outputs = replay(folder, seconds)
        if "shrank" in difference_of(outputs):
            break
        print(f"too few samples to tell the two workers apart, once more:\n{difference_of(outputs)}")
    return folder, outputs


def difference_of(outputs):
    (difference,) = [output for command, output in outputs.items() if command.endswith("before.phlox after.phlox")]
    return difference


def output_of(outputs, *parts):
    (found,) = [output for command, output in outputs.items() if all(part in command for part in parts)]
    return found


def test_the_web_workers_lookup_is_found_and_its_fix_confirmed(replayed):
    folder, outputs = replayed
    hot = output_of(outputs, "phlox report --state gil-holds").split("Hot functions")[1]
    assert "find_product" in hot.splitlines()[2]
    assert "for product in PRODUCTS" in output_of(outputs, "--source --state")
    assert re.search(r"shrank +find_product", difference_of(outputs)), difference_of(outputs)
    assert "find_product" in (folder / "before.svg").read_text()
    assert "find_product" in (folder / "diff.svg").read_text()
    assert "beyond the limit" in output_of(outputs, "--fail-if")


def test_the_waiting_is_found_with_its_lock(replayed):
    _, outputs = replayed
    rows = output_of(outputs, "Where threads wait").splitlines()
    share, *_, where = rows[2].split()
    assert "futex" in rows[2] and "stock_of" in rows[2] and where.endswith("waiting.py:19")
    assert float(share) > 60
    assert re.search(r"[678]\d\.\d %.* 19 +with cache_lock:", output_of(outputs, "def stock_of"))
