"""Message queues and semaphores of System V, which have numbers and no descriptors."""

from __future__ import annotations

from ray_rl_debug.model.snapshot.fact import Fact


class SystemV(Fact, frozen=True, kw_only=True):
    """A message queue or a set of semaphores at which a thread waits."""

    kind: str
    """``message`` or ``semaphore``."""
    number: int
    """What its users give as the first argument of their calls."""
    is_private: bool | None = None
    """Was it made without a key? Then only those use it whom its maker told the number."""
    users: tuple[int, ...] = ()
    """Who sent and received last, or changed one of the semaphores last."""
    ended: tuple[int, ...] = ()
    """Those of them that no longer lived when the table was read."""
