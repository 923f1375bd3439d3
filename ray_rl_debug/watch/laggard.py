"""One rank that is always the last to work while its peers rest: slow, not hung."""

from __future__ import annotations

from collections import Counter

from ray_rl_debug.watch.beats import Beat

ENOUGH_READINGS = 30
SHARE = 0.8
FORGET = 200
"""Counts are halved then: an hour ago is another run."""
REST_S = 3600.0
"""The same is not said again within an hour."""


class Laggards:
    """Counts, by role, who was found working alone."""

    def __init__(self) -> None:
        self._alone: dict[str, Counter[str]] = {}
        self._said: dict[str, float] = {}

    def feed(self, beat: Beat) -> str | None:
        """A sentence when one rank of a role stands out."""
        for role, who in beat.alone:
            counts = self._alone.setdefault(role, Counter())
            counts[who] += 1
            if counts.total() > FORGET:
                self._alone[role] = Counter({k: v // 2 for k, v in counts.items() if v > 1})
        for role, counts in self._alone.items():
            total = counts.total()
            if total < ENOUGH_READINGS:
                continue
            who, times = counts.most_common(1)[0]
            name = f"{role} {who}"
            if times >= SHARE * total and beat.at_s - self._said.get(name, float("-inf")) > REST_S:
                self._said[name] = beat.at_s
                return f"{name} is always last: it alone worked in {times} of {total} readings in which its peers rested"
        return None
