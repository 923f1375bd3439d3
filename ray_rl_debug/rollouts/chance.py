"""Are sampled tokens drawn from the distribution that the reference has at their places?

A token drawn from a distribution has, on average, minus its entropy as log-probability. Each token is drawn after the ones before it are known, so
the excesses over that average are differences of a martingale: their sum over its standard deviation is close to normal, however the contexts
resemble each other. Tokens that are more probable than chance come from a cut (top-k, top-p, min-p) or a lower temperature, less probable ones from
a higher one, or from penalties.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import fmean

import msgspec

from ray_rl_debug.rollouts.answers import Answer, Pair, Trial

MIN_DRAWN = 200
"""Tokens from which the sum is close to normal: single tokens are far from it."""
SURE = 5.0
"""Standard deviations: a normal value is beyond them once in two million."""
CLEAR = 0.03
"""Nats a token: less than this is left to differences of the numbers themselves."""


class Excess(msgspec.Struct, frozen=True, kw_only=True):
    """How much more probable the drawn tokens are than chance makes them."""

    tokens: int
    mean: float
    """Nats a token; above 0: more probable."""
    deviations: float
    """Of the sum, in standard deviations."""
    plain: float | None
    """The same at temperature 1, where another one was asked for."""
    rarest: int
    """Rank of the rarest token taken; 1 is the most probable."""

    @property
    def is_sure(self) -> bool:
        return abs(self.deviations) > SURE and abs(self.mean) > CLEAR


def measure(trial: Trial) -> Excess | None:
    """Of all sampled tokens; None for greedy answers, unknown temperatures and too few tokens."""
    if not trial.temperature:
        return None
    drawn = [chance for pair in _different(trial) for chance in (pair.score.chances if pair.score is not None else ())]
    if len(drawn) < MIN_DRAWN:
        return None
    plain = [(c.plain_excess, c.plain_variance) for c in drawn if c.plain_excess is not None and c.plain_variance is not None]
    return Excess(
        tokens=len(drawn),
        mean=fmean(c.excess for c in drawn),
        deviations=_deviations([(c.excess, c.variance) for c in drawn]),
        plain=_deviations(plain) if len(plain) == len(drawn) else None,
        rarest=max(c.rank for c in drawn),
    )


def _different(trial: Trial) -> Iterator[Pair]:
    """Each answer once: a server that keeps answers gives the same one to several samples."""
    seen: set[tuple[object, object]] = set()
    for pair in trial.pairs:
        what = _what(pair.engine)
        if what not in seen:
            seen.add(what)
            yield pair


def _what(answer: Answer) -> tuple[object, object]:
    return answer.prompt_ids, answer.ids


def _deviations(rows: list[tuple[float, float]]) -> float:
    spread = math.sqrt(sum(variance for _, variance in rows))
    return sum(excess for excess, _ in rows) / spread if spread > 0 else 0.0
