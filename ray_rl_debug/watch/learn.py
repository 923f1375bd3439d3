"""How long things usually last in a run, learned from the run itself."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ray_rl_debug.model.snapshot import TaskHistory

KEPT_GAPS = 64
"""Per call: how many of its last durations decide what is usual."""
WARM_UP_RATIO = 5.0
"""A first duration that is so many times all later ones was the warm-up (compilation, caches)."""
ENOUGH = 3
"""Durations that have to be known before any is unusual."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds."""

    floor_s: float = 10.0
    """A stall is never declared earlier."""
    ceiling_s: float = 1800.0
    """and never later."""
    first_s: float = 180.0
    """For a call that has not ended before."""
    look_s: float = 7.0
    """A closer look is never taken earlier."""
    look_again: float = 2.0
    """The next look at the same stall waits until it is so many times as old."""


class Gaps(msgspec.Struct):
    """Durations of one kind."""

    recent: list[float] = []
    count: int = 0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.recent = [*self.recent, round(max(0.0, seconds), 2)][-KEPT_GAPS:]
        rest = self.recent[1:]
        if len(rest) == ENOUGH and self.recent[0] > WARM_UP_RATIO * max(*rest, 1.0):
            self.recent = rest

    @property
    def longest_s(self) -> float:
        return max(self.recent, default=0.0)

    def look_s(self, limits: Limits) -> float:
        """From what age on a closer look is worth its cost."""
        return max(limits.look_s, min(limits.ceiling_s, 1.5 * self.longest_s))


class Learned(msgspec.Struct):
    """What a run has taught; kept on disk."""

    calls: dict[str, Gaps] = {}
    """By ``role.call``: how long it was seen in progress."""
    told: dict[str, Gaps] = {}
    """The same as Ray's table of finished tasks has it."""
    job: Gaps = msgspec.field(default_factory=Gaps)
    """Between two signs of progress of the whole job."""
    quiet: Gaps = msgspec.field(default_factory=Gaps)
    """How long nobody worked."""
    steps: Gaps = msgspec.field(default_factory=Gaps)
    """Between two step numbers in a log."""
    step: int | None = None

    def teach(self, history: Iterable[TaskHistory], *, had_hang: bool = False) -> None:
        """What Ray's table knows of finished calls; a reading every two seconds misses short ones.

        After a hang (`had_hang`) the calls that stand apart from all others are those that it interrupted: they never raise the bar.
        """
        for known in history:
            if not known.name.lower().startswith(("rayrldebug", "rayrl_debug")):  # our own agents
                longest_s = known.usual_s if had_hang and known.usual_s is not None else known.longest_s
                self.told[known.name] = Gaps(recent=[round(longest_s, 2)], count=known.count)

    def of_call(self, name: str, limits: Limits) -> Gaps | None:
        """What is known of a call: of what was seen and what Ray tells, the one that says more."""
        both = [g for g in (self.calls.get(name), self.told.get(name)) if g is not None]
        return min(both, key=lambda g: patience_s(g, limits), default=None)

    def knows(self, role: str) -> bool:
        """Were enough calls of a role seen to end?"""
        return any(n.startswith(f"{role}.") and g.count >= ENOUGH for known in (self.calls, self.told) for n, g in known.items())


def patience_s(gaps: Gaps | None, limits: Limits, *, is_hang_seen: bool = False) -> float:
    """How old a stall must be to be out of the ordinary: a multiple of the longest seen, smaller the more was seen.

    `is_hang_seen`: a closer look is sure that it is a hang. Then fewer durations are enough.
    """
    if gaps is None or gaps.count < ENOUGH:
        return min(limits.ceiling_s, max(limits.first_s, 3.0 * gaps.longest_s if gaps else 0.0))
    factor = 6.0 if gaps.count < 8 else 4.0 if gaps.count < 20 and not is_hang_seen else 2.5
    return min(limits.ceiling_s, max(limits.floor_s, factor * gaps.longest_s))


def usual_text(gaps: Gaps | None) -> str:
    """What is usual, in words."""
    if gaps is None or not gaps.recent:
        return "no earlier call has ended yet"
    return (
        f"the longest of the last {len(gaps.recent)} took {gaps.longest_s:.0f} s"
        if len(gaps.recent) > 1
        else f"the longest took {gaps.longest_s:.1f} s"
    )
