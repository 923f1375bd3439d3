"""Where debuggers stop a thread and wait for a person: known by file and function, whatever the system call below."""

from __future__ import annotations

from collections.abc import Sequence

from ray_rl_debug.analyze.library_frames import short_name
from ray_rl_debug.model.snapshot import Frame

_STOPS = (
    ("pdb.py", "interaction", "pdb"),  # and all that build on it, such as torch.distributed.breakpoint
    ("ray/util/rpdb.py", "listen", "Ray's debugger"),
    ("pydevd/pydevd.py", "block_until_configuration_done", "debugpy"),
    ("pydevd/pydevd.py", "_do_wait_suspend", "debugpy"),
)
"""End of the file's path, function, and the debugger's name: CPython 3.11, Ray 2.60, debugpy 1.8."""


def debugger_of(frames: Sequence[Frame]) -> str | None:
    """The debugger in which a stack waits for a person; None when it is in none."""
    for frame in frames:
        for file, function, name in _STOPS:
            if short_name(frame.function) == function and (frame.file == file or frame.file.endswith(f"/{file}")):
                return name
    return None
