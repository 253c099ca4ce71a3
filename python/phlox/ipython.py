"""%load_ext phlox, then %%phlox: runs a cell and shows its flame graph beneath.

    %%phlox [--native] [--rate HZ] [--output NAME.phlox] [options of `phlox export`: --by line, --state running, ...]

The recorder is a separate process. The picture is interactive where the front end shows HTML; the recording is `_phlox` afterwards.
"""
from __future__ import annotations

import argparse
import html
import importlib
import re
import shlex
from typing import Any, List, Tuple

from ._errors import PhloxError
from ._recorder import profile
from ._recording import Recording

NAME = "_phlox"  # of the variable that holds the last recording


def _parsed(line: str) -> Tuple[argparse.Namespace, List[str]]:
    parser = argparse.ArgumentParser(prog="%%phlox", add_help=False, allow_abbrev=False)
    parser.add_argument("--native", action="store_true")
    parser.add_argument("-r", "--rate")
    parser.add_argument("-o", "--output")
    return parser.parse_known_args(shlex.split(line))


class Picture:
    """A flame graph for a notebook: in a frame of its own, so that its script touches nothing else of the page."""

    def __init__(self, recording: Recording, options: List[str]) -> None:
        self.recording = recording
        self.svg = recording.exported("svg", *options)

    def _repr_html_(self) -> str:
        height = re.search(r'<svg[^>]*\sheight="(\d+)', self.svg)
        page = f"<!DOCTYPE html><meta charset='utf-8'><body style='margin:0'>{self.svg[self.svg.index('<svg'):]}"
        return (f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts" style="width:100%;height:{int(height.group(1)) + 24 if height else 600}px;'
                'border:0"></iframe>')

    def __repr__(self) -> str:
        return f"<flame graph of {self.recording.path}>"


def register(shell: Any) -> None:
    def phlox(line: str, cell: str) -> None:
        """%%phlox [--native] [--rate HZ] [--output NAME.phlox] [options of `phlox export`: --by line, --state running, ...]

        Runs the cell and shows its flame graph beneath. The recording is `_phlox`: print(_phlox.report()), _phlox.pandas().
        """
        arguments, options = _parsed(line)
        profiled = profile(arguments.output, rate=arguments.rate, native=arguments.native)
        try:
            with profiled:
                shell.run_cell(cell)
            shell.user_ns[NAME] = profiled.recording  # also where there is no picture by these options
            picture = Picture(profiled.recording, options)
        except PhloxError as error:
            raise _usage(error) from None
        importlib.import_module("IPython.display").display(picture)

    shell.register_magic_function(phlox, magic_kind="cell", magic_name="phlox")


def _usage(error: PhloxError) -> Exception:
    """Shown in one line and without a traceback through this package."""
    made: Exception = importlib.import_module("IPython.core.error").UsageError(str(error))
    return made
