"""Processes whose threads have the very locks that they wait for: nobody outside of the ring can end it, whatever else of them works."""

from __future__ import annotations

from ray_rl_debug.analyze.held_locks import lock_ring, wanted
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.outlook_facts import Facts
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen


def ring_of_threads(one: Seen) -> tuple[SeenThread, ...]:
    """The threads of the ring to which the waiting of its telling thread leads, where it stands still; empty where there is none."""
    if one.motion is not Motion.FROZEN or one.telling is None or one.is_stopped:
        return ()
    return lock_ring(one.telling, one.threads) or (lock_ring(one.followed, one.threads) if one.followed is not None else ())


def locks_in_ring(f: Facts) -> str | None:
    """A row of the table of outlooks."""
    ring = ring_of_threads(f.one)
    if not ring:
        return None
    names = [lock[1] for thread in ring if (lock := wanted(thread)) is not None]
    return f"it waits for the lock {names[0]}, which it has itself" if len(ring) == 1 else f"its threads have the locks {', '.join(names)} in a ring"
