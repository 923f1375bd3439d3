"""Processes that look alike are one: what holds for all that stand at one stack in one way is asked once, however many they are.

A cluster has very many processes and few shapes. A pass over all processes to find the few that matter costs more than what is then done about
them, so whoever looks for some asks for their shape.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.nodes import NodeKind, kind_of
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.stacks import Stack


class Shape(NamedTuple):
    """What processes, lanes and threads that look alike have in common."""

    process: str
    """The kind of the process: ``ray-worker``, ``driver``."""
    kind: Kind | None
    """Of the place of the telling thread; None without stacks."""
    kinds: frozenset[Kind]
    """Of the places of all threads."""
    stack: Stack | None
    """Of the telling thread."""
    motion: Motion
    has_coroutines: bool
    is_stopped: bool
    has_ended: bool
    is_ranked: bool
    """Has it a rank?"""
    part: NodeKind | None = None
    """Of a part of a process what it is, a lane or a thread; None: a process as a whole."""

    def stands_in(self, kinds: frozenset[Kind]) -> bool:
        """Does any of its threads stand in one of these kinds of places?"""
        return self.kind in kinds or not self.kinds.isdisjoint(kinds)


class Shapes:
    """Everybody by shape."""

    def __init__(self, everybody: Iterable[Seen]) -> None:
        self._everybody = tuple(everybody)
        found: defaultdict[Shape, list[int]] = defaultdict(list)
        for number, one in enumerate(self._everybody):
            found[_shape(one)].append(number)
        self._numbers = dict(found)

    def like(self, test: Callable[[Shape], object]) -> list[Seen]:
        """Those whose shape passes the test, in their order."""
        groups = [numbers for shape, numbers in self._numbers.items() if test(shape)]
        numbers = groups[0] if len(groups) == 1 else sorted(itertools.chain.from_iterable(groups))
        everybody = self._everybody
        return [everybody[n] for n in numbers]

    def any(self, test: Callable[[Shape], object]) -> bool:
        """Has anybody such a shape?"""
        return any(test(shape) for shape in self._numbers)


def has_coroutines(shape: Shape) -> bool:
    """Has it any?"""
    return shape.has_coroutines


def _shape(one: Seen) -> Shape:
    process, telling = one.process, one.telling
    return Shape(
        process.kind,
        one.kind,
        one.kinds,
        telling.stack if telling is not None else None,
        one.motion,
        bool(process.async_tasks),
        one.is_stopped,
        one.has_ended,
        one.identity.rank is not None,
        kind_of(one.key) if one.lane_of is not None else None,
    )
