"""Threads that have ended, as the fellows of their process show: programs alike, each with a thread of the same function, but for one."""

from __future__ import annotations

from typing import NamedTuple

from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View


class LostThread(NamedTuple):
    function: str
    """In which the threads of the fellows began."""
    fellows: tuple[Seen, ...]
    """Who waits in that thread for this process."""


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


def _main(one: Seen) -> SeenThread | None:
    return next((t for t in one.threads if t.is_main and t.place.path), None)


def _stand_alike(one: SeenThread | None, other: SeenThread | None) -> bool:
    return one is not None and other is not None and one.place.path == other.place.path
