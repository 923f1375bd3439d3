"""Servers that listen in one thread and answer in others: which of them may have a request, and what they do with it."""

from __future__ import annotations

from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.pauses import wakes_soon
from ray_rl_debug.analyze.places import IDLE_KINDS
from ray_rl_debug.analyze.seen import Seen


def handlers(server: Seen) -> list[SeenThread]:
    """Of a server whose telling thread only listens: threads of its program that may have the request, the most telling first."""
    told = server.followed or server.telling
    if told is None or not told.listens:
        return []
    return [t for t in server.threads if t.place.path and not t.listens and t.place.kind not in IDLE_KINDS]


def pausing_giver(feeder: Seen) -> SeenThread | None:
    """Of a process that waits for its workers: another thread of its program that pauses, and may have their next piece when it wakes."""
    told = feeder.followed or feeder.telling
    others = [t for t in feeder.threads if t is not told and t.place.path and not t.is_apart and t.place.kind is Kind.SLEEP]
    return next((t for t in others if t.kernel is not None and wakes_soon(t.kernel)), None)


def pausing_handler(server: Seen) -> SeenThread | None:
    """A handler that sleeps, and whose clock wakes it within the time that answers take."""
    return next((t for t in handlers(server) if t.place.kind is Kind.SLEEP and t.kernel is not None and wakes_soon(t.kernel)), None)
