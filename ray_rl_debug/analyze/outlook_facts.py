"""What the rows of the table of outlooks look at: one activity, its waits, and those that wait for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ray_rl_debug.analyze.call_ages import CallAge, call_age
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.pauses import is_asleep, is_half_read, kernel_was_read, lacks_stack
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.rank_counters import Joined
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View

EXACT = frozenset(Why) - {
    Why.ASSUMED, Why.SOCKET, Why.AWAITED_SOCKET, Why.AWAITED_CHILD, Why.PIPE, Why.CHILD, Why.DATALOADER, Why.CHILD_QUEUE, Why.MESSAGE, Why.WEIGHTS,
}  # fmt: skip
"""Waits whose end is known to be the whole story. In the others (an answer, a child) work is hidden, and how long such calls take tells more."""

LOOKS = frozenset({Why.POLL, Why.TRIED_LOCK, Why.BUILD_LOCK})
"""Waits of one that looks again and again."""
ENDS = frozenset({Why.CHILD, Why.AWAITED_CHILD, Why.PIPE, Why.STARTS})
"""Waits for the end of a program, for what it writes or reads, or for what it starts."""
FOR_ITS_END = frozenset({Why.CHILD, Why.AWAITED_CHILD, Why.CALL})
"""Waits for the end of what somebody does as a whole, and not for one of its answers."""


class Facts(NamedTuple):
    """What the rows look at."""

    view: View
    one: Seen
    waits: Sequence[Edge]
    """What it waits for."""
    joined: Joined
    """What the counters say."""
    asked: Sequence[Edge]
    """The waits of others that end here."""
    asked_for: frozenset[Why]
    """The kinds of these; most rows ask for no more."""

    @property
    def call(self) -> CallAge:
        """Its running call; few rows ask for it."""
        return call_age(self.view, self.one)

    @property
    def stands_still(self) -> bool:
        return self.one.motion is Motion.FROZEN and not is_asleep(self.view, self.one)

    @property
    def lacks_kernel(self) -> bool:
        """Is its side in the kernel missing, where the kernel told of others? It may be in a pause, or wait for whom nobody knows."""
        if not self.one.threads:
            return not self.one.process.threads and kernel_was_read(self.view)
        return is_half_read(self.view, self.one)

    @property
    def lacks_stack(self) -> bool:
        """Is it a Python of which no stack was read, where stacks of others were?"""
        return lacks_stack(self.view, self.one)


def facts_of(view: View, one: Seen, waits: Sequence[Edge], joined: Joined, asked: Sequence[Edge]) -> Facts:
    """The facts about one activity."""
    kinds = _ONE[asked[0].why] if len(asked) == 1 else frozenset([e.why for e in asked])
    return Facts(view, one, waits, joined, asked, kinds)


_ONE = {why: frozenset({why}) for why in Why}
"""Most are waited for by one other, if at all."""
