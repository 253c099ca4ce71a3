"""Shows where a running Python program spends its time, without touching it.

    recording = phlox.record(pid=4711, duration=10)        # another program, while it runs
    with phlox.profile() as profile:                       # what stands in this block
        work()
    profile.recording.export("flame.svg")
    recording = phlox.load("app.phlox")                    # what `phlox record` wrote
    for span in recording.spans():
        ...

The work is done by the program `phlox`, which comes with this package: the recorder is a separate process.
"""
from ._errors import NotInstalled, PhloxError
from ._recorder import Recorder, profile, record
from ._recording import Event, Frame, Label, Module, Process, Recording, Span, Stack, Thread, load

__all__ = ["Event", "Frame", "Label", "Module", "NotInstalled", "PhloxError", "Process", "Recorder", "Recording", "Span", "Stack", "Thread",
           "load", "profile", "record", "load_ipython_extension"]


def load_ipython_extension(shell: object) -> None:
    """%load_ext phlox: the cell magic %%phlox."""
    from .ipython import register

    register(shell)
