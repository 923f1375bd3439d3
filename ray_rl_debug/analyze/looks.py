"""Threads that pause and look again until something has come, and at what, as the source of their loop tells.

Who looks at variables alone can only be let go on by another thread of its process, or by a process that shares the memory in which they are.
"""

from __future__ import annotations

from ray_rl_debug.analyze.kernel_calls import kernel_call
from ray_rl_debug.analyze.kinds_of_places import IDLE_KINDS
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.pauses import sleeps
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View

_SEGMENTS = "/dev/shm/"
_SEMAPHORES = "/dev/shm/sem."


def looks_at(thread: SeenThread) -> tuple[str, ...] | None:
    """What the condition of the loop calls in which a thread looks again and again; empty where it looks at variables alone, None in no such loop."""
    return thread.frames[0].looks if thread.frames and thread.place.own == 0 else None


def looks_at_variables(view: View, one: Seen) -> bool:
    """Do all its threads of own code look at variables, so that none of them changes what another looks at?

    Each other thread must rest in a lock: one at a connection may be told something from outside.
    """
    if one.motion is Motion.MOVING or one.is_stopped:
        return False
    own = []
    for thread in one.threads:
        if thread.place.path and thread.place.kind not in IDLE_KINDS:
            if looks_at(thread) != ():
                return False
            own.append(thread)
    if not own:
        return False
    tids = {t.tid for t in own}
    if not all(_stays(one, t) for t in own):
        return False
    return all(t.tid in tids or kernel_call(t) == "futex" for t in one.process.threads) and not _has_help(view, one)


def _stays(one: Seen, thread: SeenThread) -> bool:
    """Was the thread met in the same functions at each look?"""
    met = [t.stack for sample in one.process.samples for t in sample.threads if t.tid == thread.tid]
    paths = {tuple((one.node.frames[i].function, one.node.frames[i].file) for i in one.node.stacks[stack]) for stack in set(met)}
    return len(met) == len(one.process.samples) > 1 and len(paths) == 1


def _has_help(view: View, one: Seen) -> bool:
    """Does a process of its family do something, or pause? Memory that has no name is shared with children unseen."""
    parent = view.by_node_pid.get((one.node.name, one.process.ppid or 0))
    family = {s.key: s for s in (*view.children(one), *(view.children(view.seen[parent]) if parent is not None else ()))}
    return any(s.key != one.key and (s.is_at_work or sleeps(s)) for s in family.values()) and not shared_with(view, one)


def shared_with(view: View, one: Seen) -> list[Seen]:
    """Other processes that hold a segment of shared memory which it holds."""
    own = _segments(one)
    return [other for other in view if own and other.node is one.node and other.process is not one.process and own & _segments(other)]


def _segments(one: Seen) -> set[tuple[str | None, int]]:
    files = (f for f in one.process.files or () if f.path.startswith(_SEGMENTS) and not f.path.startswith(_SEMAPHORES))
    return {(f.device, f.inode) for f in files if f.inode is not None}


def is_fellow(one: Seen, other: Seen) -> bool:
    """Does another process look at the same in the same functions?"""
    if one.telling is None or other.telling is None or looks_at(one.telling) is None or looks_at(other.telling) != looks_at(one.telling):
        return False
    return [p[:2] for p in one.telling.place.path] == [p[:2] for p in other.telling.place.path]
