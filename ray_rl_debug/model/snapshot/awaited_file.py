"""A file that somebody waits for to go away."""

from __future__ import annotations

from ray_rl_debug.model.snapshot.fact import Fact


class AwaitedFile(Fact, frozen=True, kw_only=True):
    """A lock file: whoever has the lock made it, keeps it open, and removes it at the end. The kernel lists no such lock."""

    path: str
    """As those who wait see it."""
    waiters: tuple[int, ...]
    """Processes of this node that look again and again whether it is still there."""
    made_time_s: float | None = None
    """Unix time of its last write; such files are written once or never. None: on a network mount, where it is never touched."""
    holders: tuple[int, ...] = ()
    """Processes of this node that hold it open."""
    unread: int | None = None
    """Processes that may have made it and whose open files may not be read: 0 means that `holders` are all. None: not asked."""
    mount: str | None = None
    """``type source`` of the network mount on which it lies: its maker may be on another machine."""
