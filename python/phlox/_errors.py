"""What goes wrong, in the words of the program."""
from __future__ import annotations

import re
from typing import Optional


class PhloxError(Exception):
    """The program refused, or could not. `hint` says what helps; `status` is its exit status (docs/exit-status.md)."""

    def __init__(self, message: str, hint: str = "", status: Optional[int] = None) -> None:
        super().__init__(f"{message} (hint: {hint})" if hint else message)
        self.message, self.hint, self.status = message, hint, status

    @classmethod
    def from_output(cls, said: str, status: int) -> PhloxError:
        """Of what it said on standard error: warnings and notes go before the error."""
        message, hint = "", ""
        for line in said.splitlines():
            if line.startswith("hint: "):
                hint = line[len("hint: "):]
            elif (found := re.match(r"phlox: (?!warning: )(.*)", line)) is not None:
                message, hint = found.group(1), ""
        return cls(message or f"phlox ended with status {status}", hint, status)


class NotInstalled(PhloxError):
    """There is no program `phlox` here."""
