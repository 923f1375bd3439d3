"""What the source tells of one line at which a thread or a coroutine stands. Names are all that is kept."""

from __future__ import annotations

import msgspec


class SourceLine(msgspec.Struct, frozen=True, kw_only=True):
    """None: not read, or not asked of such a line."""

    calls: tuple[str, ...] | None = None
    """Names called on it, then those of the calls that made the objects whose ``wait`` it calls; each once."""
    apart: bool | None = None
    """Of a line that sleeps: could the function around it hand nothing to the rest of the program?"""
    looks: tuple[str, ...] | None = None
    """Of a line that pauses in a loop until something has come: what the condition of the loop calls; empty where it looks at variables alone."""
    brings: bool | None = None
    """Of a line that waits for a condition, an event or a queue: does the function around it also bring what it waits for?"""
    takes: bool | None = None
    """Of a line that pauses: does it lie in a loop over what a coroutine is sent?"""
    goes_round: bool | None = None
    """Of the same: does it lie in a loop that nothing ends?"""
    ended_by: tuple[str, ...] | None = None
    """Of the same: methods that set the flag which alone ends its loop."""
    gives_up: bool | None = None
    """Of the same: does it lie in a loop that gives up after a time?"""
    requests_bring: bool | None = None
    """Of a line where a coroutine waits or looks again: does another request to the same server bring that?"""
    wants: str | None = None
    """Of a line that enters a ``with`` or calls ``acquire``: the lock, ``Buffer.lock`` or ``STATE``, where its name tells which one it is."""
    under: tuple[str, ...] | None = None
    """The locks, named so, of the ``with`` statements of its function that hold the line, outermost first."""
