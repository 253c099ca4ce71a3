"""Help, manual page and completions: written from one description, and usable."""
import re
import shutil
import subprocess

import pytest
from cli_support import PHLOX, phlox

pytestmark = pytest.mark.smoke


def commands():
    overview = phlox("help").stdout
    listed = overview.split("Commands:\n")[1].split("\n\n")[0]
    return [line.split()[0] for line in listed.splitlines()]


def test_help_without_a_command_lists_them():
    assert {"record", "export"} <= set(commands())
    assert phlox("--help").stdout == phlox("help").stdout


def test_version():
    assert re.fullmatch(r"phlox \d+\.\d+\.\d+(-rc\d+)?\nfeatures: kernel capture (yes|no \(.+\)), instruction decoder yes, debuginfod yes, agent yes\n", phlox("--version").stdout)


def test_every_help_starts_with_examples():
    for command in commands():
        done = phlox(command, "--help")
        assert done.returncode == 0, done.stderr
        examples = done.stdout.split("\n\n")[0].splitlines()
        assert examples[0] == "Examples:"
        assert sum("phlox" in line or "pyflame" in line for line in examples[1:]) >= 1, command
        assert done.stdout == phlox("help", command).stdout or command == "pyflame"
        assert max(map(len, done.stdout.splitlines())) <= 132


def test_every_option_of_the_help_is_in_the_manual_page_and_the_completions():
    manual = phlox("man").stdout.replace("\\-", "-")
    completions = {shell: phlox("completions", shell).stdout for shell in ("bash", "zsh", "fish")}
    for command in commands():
        for option in re.findall(r"^  (?:-\w, )?--([\w-]+)", phlox("help", command).stdout, re.M):
            assert f"--{option}" in manual
            assert f"--{option}" in completions["bash"]
            assert f"--{option}" in completions["zsh"]
            assert f"-l {option}" in completions["fish"]


def test_the_manual_page_is_read_without_a_warning():
    if shutil.which("groff") is None:
        pytest.skip("no groff")
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=phlox("man").stdout, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    assert "--max-overhead" in re.sub(r"\x1b\[\d+m|.\x08", "", done.stdout)


def complete(line):
    """What bash offers after `line`."""
    words = line.split(" ")
    script = f"""{phlox("completions", "bash").stdout}
COMP_WORDS=({" ".join(repr(w) for w in words)}); COMP_CWORD={len(words) - 1}
_phlox; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()


def test_bash_completes_commands_options_and_values():
    assert complete("phlox rec") == ["record"]
    assert "--max-overhead" in complete("phlox record --m")
    assert complete("phlox record --mode p") == ["ptrace"]
    assert complete("phlox export a.phlox --weight c") == ["cpu"]
    assert complete("phlox completions f") == ["fish"]
    assert "true" in complete("phlox record -- tru")
