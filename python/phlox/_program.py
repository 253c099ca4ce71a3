"""The program that does the work: where it is, and running it."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from typing import Optional, Sequence

from ._errors import NotInstalled, PhloxError


def find_program() -> str:
    """$PHLOX_BIN; next to this interpreter, where pip puts it; on the PATH."""
    places = [os.environ.get("PHLOX_BIN")]
    places += [os.path.join(folder, "phlox") for folder in (
        sysconfig.get_path("scripts"), os.path.dirname(sys.executable), sysconfig.get_path("scripts", f"{os.name}_user")) if folder]
    places.append(shutil.which("phlox"))
    for place in places:
        if place and os.access(place, os.X_OK) and os.path.isfile(place):
            return place
    raise NotInstalled("there is no program phlox here", "pip install phlox, or name it in $PHLOX_BIN")


def environment() -> dict[str, str]:
    """The environment for phlox next to a program: without the libraries that the program is to take (LD_LIBRARY_PATH, LD_PRELOAD). With an older SQLite among them
    phlox would not start."""
    return {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "LD_PRELOAD")}


def run(arguments: Sequence[str], text_from_stdout: bool = False) -> str:
    """To its end. -> what it printed."""
    done = subprocess.run([find_program(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE if text_from_stdout else None,
                          stderr=subprocess.PIPE, encoding="utf-8", errors="replace", env=environment())
    if done.returncode != 0:
        raise PhloxError.from_output(done.stderr, done.returncode)
    printed: Optional[str] = done.stdout
    return printed or ""
