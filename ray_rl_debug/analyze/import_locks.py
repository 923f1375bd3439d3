"""The lock that Python holds while it runs a module for the first time.

Whoever imports the module meanwhile, or something out of it, waits for the thread that runs it.
"""

from __future__ import annotations

from ray_rl_debug.analyze.kinds_of_places import IDLE_KINDS, THREAD_WAITS, Kind
from ray_rl_debug.analyze.library_frames import short_name
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen

_FILE = "<frozen importlib._bootstrap>"
_RUNS = frozenset({"_load_unlocked"})
_WAITS = frozenset({"_lock_unlock_module", "_ModuleLockManager.__enter__"})


def imports_in_ring(one: Seen) -> SeenThread | None:
    """The thread that waits for a module which the telling thread runs, where that one waits for threads of its own, and all of them stand so."""
    telling = one.telling
    if telling is None or telling.place.kind not in THREAD_WAITS - {Kind.LOCK} or one.motion is not Motion.FROZEN or not _is_in(telling, _RUNS):
        return None
    others = [t for t in one.threads if t is not telling and t.place.path and t.place.kind not in IDLE_KINDS]
    return others[0] if others and all(t.place.kind is Kind.LOCK and _is_in(t, _WAITS) for t in others) else None


def _is_in(thread: SeenThread, functions: frozenset[str]) -> bool:
    return any(f.file == _FILE and (f.function in functions or short_name(f.function) in functions) for f in thread.frames)
