"""Waits with a time limit, told by the line of Python's own code: ``Condition.wait`` has one line for them and one for waits without."""

from __future__ import annotations

from collections.abc import Sequence

from ray_rl_debug.model.snapshot import Frame

_TIMED = {"3.8": (306,), "3.9": (316,), "3.10": (324,), "3.11": (324, 331), "3.12": (359,), "3.13": (363,)}
"""Of ``waiter.acquire(True, timeout)`` in threading.py; read from the sources of 3.8.18, 3.9.18, 3.10.13, 3.11.2, 3.11.7, 3.12.1 and 3.13.0."""


def wakes_by_itself(python: str | None, frames: Sequence[Frame]) -> bool:
    """Does the innermost frame wait for an event or a condition with a time limit? Only where Python's version (``3.12``) is known."""
    if python is None or not frames:
        return False
    frame, lines = frames[0], _TIMED.get(".".join(python.split(".")[:2]), ())
    return frame.line in lines and frame.function.rpartition(".")[2] == "wait" and frame.file.endswith("threading.py")
