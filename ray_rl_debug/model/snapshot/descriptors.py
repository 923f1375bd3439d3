"""How many descriptors a process holds, and how many more it may open."""

from __future__ import annotations

from ray_rl_debug.model.snapshot.fact import Fact


class Descriptors(Fact, frozen=True, kw_only=True):
    """All descriptors of a process, counted at the end of the window. Files and sockets of it are kept up to a bound only; these are all."""

    held: int
    limit: int | None = None
    """RLIMIT_NOFILE, soft: the kernel gives no number from here on. None: no limit, or not read."""
    hard_limit: int | None = None
    """Up to which the process, and its user with ``prlimit``, may raise the soft one."""
    free: int | None = None
    """Numbers below the limit that are not taken; 0: every accept, open, pipe and connect fails (EMFILE). None: no limit is known."""
    sockets: int = 0
    pipes: int = 0
    files: int = 0
    """What has a path: files, folders and devices."""
    others: int = 0
    """What the kernel alone has a name for: epoll, eventfd, timers and the like."""
    half_closed: int | None = None
    """TCP connections whose other end has gone and that were not closed here (``CLOSE_WAIT``). None: its table of sockets was not read."""
    renewed: int | None = None
    """How many of them were not there at the start of the window; 0: it has closed nothing and opened nothing. None: it had room then, or
    that was not read."""
