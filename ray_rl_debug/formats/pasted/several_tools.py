"""One process that several tools show one after the other: py-spy and then gdb; torch's own frames of an exception and then faulthandler."""

from __future__ import annotations

from ray_rl_debug.formats.dump import DumpThread, Said
from ray_rl_debug.formats.pasted.events import Frames
from ray_rl_debug.formats.pasted.partial import Partial

_RAISED = "c10::Error::Error("
"""Innermost frame of a stack that torch prints with an exception of its C++ code."""
_ERROR = "c10::Error: "
OF_PYTHON = ("py-spy", "faulthandler", "text", "traceback", "pystack")


def is_of_another_tool(dump: Partial, frames: Frames) -> bool:
    """Are these frames of gdb's, and was this process shown by a tool that knows Python's frames alone?"""
    return frames.source == "gdb" and frames.native and frames.number == 0 and dump.source in OF_PYTHON and bool(dump.threads) and not dump.native


def main_of(dump: Partial) -> DumpThread:
    """The thread that gdb shows first."""
    return next((t for t in dump.threads if t.name == "MainThread"), dump.threads[0])


def note_raised(dump: Partial, number: int, frames: Frames) -> None:
    """Is it the stack of an exception of torch's? Then that is said of the process."""
    if frames.places[0][0].startswith(_RAISED):
        dump.said.append((number, Said(kind="failed", text=f"{_ERROR}an exception in torch's C++ code, and where it was raised")))


def has_raised(dump: Partial) -> bool:
    """Is an exception of torch's all that was said of this process?"""
    return dump.source == "native" and any(s.text.startswith(_ERROR) for _, s in dump.said)


def number_as_gdb_counts(dump: Partial, frames: Frames) -> None:
    """``Thread 1:`` over frames of gdb's has gdb's own number, and not the kernel's."""
    thread = dump.threads[-1] if dump.threads else None
    if frames.source != "gdb" or not frames.native or dump.source != "py-spy" or thread is None or len(thread.frames) != 1:
        return
    if dump.pid is None and thread.tid is not None and thread.tid < _LEAST_TID:
        dump.source, thread.tid = "gdb", None


_LEAST_TID = 300
"""Threads have lower numbers in containers only, and gdb shows them with those of the kernel."""
