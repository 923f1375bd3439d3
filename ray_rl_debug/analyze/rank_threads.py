"""Ranks that meet others in more than one thread: the training in one, what is written or sent behind it in another.

A rank is seen by one thread, and may have joined a collective with another one. Whose counterpart of that thread stands elsewhere has not
joined, but what keeps it is that thread, whose own waits are not followed: such an edge is *possible*.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.places import WAITS_FOR_RANKS, Place
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.report import Certainty

Site = tuple[str, tuple[tuple[str, str, int | None], ...]]
"""A collective and the own path that leads to it: ranks at equal sites are in the same call."""


class Beside:
    """What the threads of some ranks are in, beside the thread by which each of them is seen."""

    def __init__(self, members: Sequence[Seen]) -> None:
        self._inside: dict[Site, set[str]] = defaultdict(set)
        for one in members:
            for thread in others(one) if len(one.threads) > 1 else ():
                if thread.place.kind in WAITS_FOR_RANKS:
                    self._inside[(thread.place.op, thread.place.path)].add(one.key)

    def has_joined(self, other: Seen, site: Site) -> bool:
        """Is a thread of it in this call, although it is seen elsewhere?"""
        return other.key in self._inside.get(site, ())

    def certainty(self, one: Seen, other: Seen, sure: Certainty) -> Certainty:
        """Of an edge between two ranks: how sure it is that what `other` is seen in keeps it from where `one` is."""
        counterpart = _counterpart(one, other)
        return sure if counterpart is None or counterpart is other.followed else Certainty.POSSIBLE


def others(one: Seen) -> list[SeenThread]:
    """The threads of a process that do something of their own, without the one by which it is seen."""
    return [t for t in one.threads if t is not one.telling and t.score > 0 and t.place.path]


def _counterpart(one: Seen, other: Seen) -> SeenThread | None:
    """The thread of `other` that runs the same function as the one by which `one` is seen, where `other` is seen by another one."""
    if one.place is None or not one.place.path or (other.place is not None and _begin(other.place) == _begin(one.place)):
        return None
    return next((t for t in others(other) if _begin(t.place) == _begin(one.place)), None)


def _begin(place: Place) -> tuple[str, str] | None:
    return place.path[-1][:2] if place.path else None
