"""tools/get-pythons.sh: a machine without the core set fails the run by name, everything else is only reported."""
import os
import pathlib
import subprocess

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "get-pythons.sh"
CORE = {"debian-3.9": "echo 3.9.2 -", "pyenv-3.10": "echo 3.10.1 -", "pyenv-3.11": "echo 3.11.1 -", "pyenv-3.12": "echo 3.12.1 -", "trixie-3.13": "echo 3.13.5 -",
        "sid-3.14": "echo 3.14.1 -", "3.13t": "echo 3.13.5 t", "standalone-3.12.3": "echo 3.12.3 -"}


def bring(folder, interpreters):
    """Runs it where only these and the system's own exist. They are stand-ins that print their version."""
    (folder / "bin").mkdir()
    for name, answer in interpreters.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{answer}\n")
        (folder / "bin" / name).chmod(0o755)
    # Without an argument it would fetch; this one does not exist.
    done = subprocess.run([SCRIPT, "nothing-of-the-kind"], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PHLOX_PYTHONS_DIR": str(folder), "PYENV_ROOT": str(folder / "none")})
    assert "could not be had: nothing-of-the-kind" in done.stderr
    return done, {line.split("\t")[0]: line.split("\t")[1:] for line in (folder / "pythons.list").read_text().splitlines()}


def test_the_whole_core_set_is_enough(tmp_path):
    done, listed = bring(tmp_path, CORE)
    assert done.returncode == 0, done.stderr
    assert set(CORE) <= set(listed)
    assert listed["3.13t"] == [str(tmp_path / "bin" / "3.13t"), "3.13t", "3.13.5", "t"]


def test_what_is_missing_of_the_core_set_fails_by_name(tmp_path):
    done, _ = bring(tmp_path, {name: answer for name, answer in CORE.items() if name not in ("3.13t", "standalone-3.12.3")})
    assert done.returncode == 1
    said = [line.rsplit(" ", 1)[1] for line in done.stderr.splitlines() if "missing from the core set" in line]
    assert said == ["3.13t", "standalone"]


def test_what_does_not_start_is_named_and_not_listed(tmp_path):
    done, listed = bring(tmp_path, {**CORE, "broken-3.9": "exit 127"})
    assert "broken-3.9 does not start" in done.stderr
    assert "broken-3.9" not in listed
