"""Threads that have ended, as the fellows of their process show: programs or actors alike, each with a thread of the same function, but for one."""

from __future__ import annotations

from typing import NamedTuple

from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.thread_scores import executes
from ray_rl_debug.analyze.view import View


class LostThread(NamedTuple):
    function: str
    """In which the threads of the fellows began."""
    fellows: tuple[Seen, ...]
    """Who waits in that thread for this process, or has such a thread."""


def lost_thread(view: View, one: Seen) -> LostThread | None:
    """The thread that a process has no more: its fellows, whose main threads stand where its own does, wait in theirs at a common semaphore."""
    waiters = [pair for semaphore in one.node.semaphores if any(u.pid == one.process.pid for u in semaphore.uses) for pair in semaphore.waiters]
    found: dict[str, dict[str, Seen]] = {}
    main = _main(one)
    for pid, tid in waiters if main is not None else ():
        fellow = view.seen.get(view.by_node_pid.get((one.node.name, pid), ""))
        thread = next((t for t in fellow.threads if t.tid == tid and not t.is_main and t.place.path), None) if fellow is not None else None
        if fellow is None or thread is None or fellow is one or not _stand_alike(main, _main(fellow)):
            continue
        begins = thread.place.path[-1][:2]
        if not any(t.place.path and t.place.path[-1][:2] == begins for t in one.threads):
            found.setdefault(begins[0], {})[fellow.key] = fellow
    function = next(iter(found), None)
    return LostThread(function, tuple(found[function].values())) if function is not None else None


LOST_CALLER = "calls of a thread that has ended"
"""What the wait for an actor is called that made the awaited calls by a thread which it has no more."""
_FELLOWS = 2


def lost_caller(view: View, one: Seen) -> LostThread | None:
    """The thread that an idle actor has no more: all others of its class have one of their own code that runs no call of Ray."""
    i = one.identity
    fellows = [
        o for o in view if o is not one and o.process.kind == "ray-worker" and (o.identity.class_name, o.identity.job_id) == (i.class_name, i.job_id)
    ]
    seen = {t.tid for t in one.threads}
    unread = not one.threads or any(t.tid not in seen for sample in one.process.samples for t in sample.threads)
    if i.class_name is None or not one.is_idle or unread or len(fellows) < _FELLOWS:
        return None
    begun = [_begins(o) for o in fellows]
    common = set.intersection(*begun) - {t.place.path[-1][:2] for t in one.threads if t.place.path}
    function = min((name for name, _ in common), default=None)
    return LostThread(function, tuple(fellows)) if function is not None else None


def _begins(one: Seen) -> set[tuple[str, str]]:
    """Where the threads of a process began that its own code has started."""
    return {t.place.path[-1][:2] for t in one.threads if t.place.path and not t.is_main and not executes(t.sample, t.frames)}


def _main(one: Seen) -> SeenThread | None:
    return next((t for t in one.threads if t.is_main and t.place.path), None)


def _stand_alike(one: SeenThread | None, other: SeenThread | None) -> bool:
    return one is not None and other is not None and one.place.path == other.place.path
