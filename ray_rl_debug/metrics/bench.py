"""What every rule is given: the run, what its metrics mean, the thresholds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ray_rl_debug.metrics.model import Run, Series
from ray_rl_debug.metrics.quantities import Quantity, find

Known = TypeVar("Known")
RARE = 0.05
"""Part of the steps whose largest and smallest rewards may be outliers."""
SETTINGS = ("gpu", "gpu_type", "gpu_name", "engine", "engine_version", "ppo_n_minibatches", "max_head_offpolicyness", "behave_imp_weight_cap")
"""What rules ask for, by the last part of its key."""


class Bench:
    """One run, ready to be judged."""

    def __init__(self, run: Run, thresholds: Mapping[str, float], names: Mapping[str, str] | None = None) -> None:
        self.run = run
        self._thresholds = thresholds
        self._names = names or {}
        self._known: dict[str, Any] = {}

    def once(self, key: str, find: Callable[[], Known]) -> Known:
        """What several rules ask, found once."""
        if key not in self._known:
            self._known[key] = find()
        found: Known = self._known[key]
        return found

    def all(self, quantity: Quantity) -> tuple[Series, ...]:
        """The metrics that hold a quantity, those without any number left out."""
        found = (self.run.series[name] for name in find(quantity, self.run.series, self._names))
        return tuple(s for s in found if s.finite()[0])

    def one(self, quantity: Quantity) -> Series | None:
        """The best metric for a quantity."""
        return next(iter(self.all(quantity)), None)

    def threshold(self, name: str) -> float:
        return self._thresholds[name]

    def count(self, name: str) -> int:
        """A threshold that counts values."""
        return max(1, round(self._thresholds[name]))

    def setting(self, name: str) -> str | None:
        """A setting of the run by the last part of its key: ``ppo_n_minibatches`` finds ``actor.ppo_n_minibatches``."""
        for key, value in sorted(self.run.settings.items(), key=lambda pair: len(pair[0])):
            if last_part(key) == name:
                return value
        return None

    def number(self, name: str) -> float | None:
        """A setting that is a number."""
        try:
            return float(self.setting(name) or "")
        except ValueError:
            return None

    def reward_range(self) -> float:
        """What the reward can vary by: the largest reward of single samples less the smallest where they are told, else what the mean itself spans.

        Where rewards have no bounds, single samples are worth a hundred usual ones; so what one step in twenty exceeds does not count. Where that
        leaves nothing, rewards other than the usual one are rare, and all of them count. The mean of a flat reward spans only its noise; then its own
        size counts.
        """
        high, low = self.one(Quantity.REWARD_MAX), self.one(Quantity.REWARD_MIN)
        if high is not None and low is not None:
            tops, bottoms = sorted(high.finite()[1]), sorted(low.finite()[1], reverse=True)
            for spared in (RARE, 0.0):
                span = tops[-1 - int(spared * len(tops))] - bottoms[-1 - int(spared * len(bottoms))]
                if span > 0:
                    return span
        reward = self.one(Quantity.REWARD)
        values = sorted(reward.finite()[1]) if reward is not None else []
        if not values:
            return 1.0
        typical = abs(values[len(values) // 2])
        return max(values[-1] - values[0], typical) or 1.0


def last_part(key: str) -> str:
    """``actor.ppo_n_minibatches`` is ``ppo_n_minibatches``."""
    return re.split(r"[./]", key.lower())[-1]
