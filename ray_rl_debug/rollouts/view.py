"""What the rules read: the trial, the numbers of its tokens, and how large the differences are beside pure rounding."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Iterator, Sequence
from statistics import StatisticsError, correlation, fmean

import msgspec

from ray_rl_debug.rollouts.alignment import before, spell
from ray_rl_debug.rollouts.answers import Trial
from ray_rl_debug.rollouts.context import Context, measure
from ray_rl_debug.rollouts.differences import ALARM, NORMAL, Distance, Place, distance, places

EXACT = 1e-3
"""Nats: two programs that both compute in float32 stay below this; each rounding to bfloat16 costs more."""
SAME_SHARE = 0.1
"""Below this share of what rounding costs, both sides compute in the same precision."""
ROUNDING_TIMES = 3.0
"""Another program rounds elsewhere: its differences have the same size, not the same values. More than this many times is something else."""
SMALL = 0.05
"""Nats, where rounding could not be measured: bfloat16 keeps 8 bits, so a logit of 16 is off by up to 0.03, the difference of two by 0.05."""
MIN_TOKENS = 20
_COARSE = re.compile(r"(?:fp|nvfp|mxfp|int|float|uint)_?[48](?!\d)", re.IGNORECASE)
"""Names of precisions with four or eight bits: ``fp8_e4m3``, ``fp8``, ``int8``, ``nvfp4``."""


class Size(str, enum.Enum):
    """How large the differences of log-probabilities are."""

    SAME = "same"
    ROUNDING = "rounding"
    LARGER = "larger"
    UNTOLD = "untold"
    """Too few tokens, or nothing to measure it by."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    trial: Trial
    places: tuple[Place, ...]
    """Tokens with both log-probabilities; after temperature where the engine's are."""
    distance: Distance | None
    is_scaled: bool
    """The engine's log-probabilities are those after division by the sampling temperature."""
    noise: float | None
    """Mean difference in nats that another precision alone makes in the reference; None: not measured."""
    likeness: float | None
    """Correlation of the engine's differences with those of the other precision; None: not measured."""
    size: Size
    context: Context = Context()
    """Whether the differences hang on the tokens before."""

    @property
    def has_coarse_cache(self) -> bool:
        """Does the engine itself say that it keeps keys and values in four or eight bits?"""
        return _COARSE.match(self.trial.cache_dtype or "") is not None

    def name(self, place: Place) -> str:
        """A token with its place: ``'7' (25) after '…3 + 4 =' (prompt 3, token 12 of the answer)``."""
        pair = self.trial.pairs[place.pair]
        pieces = self.trial.pieces
        if place.token is not None and pair.engine.ids is not None:
            row = (*(pair.engine.prompt_ids or ()), *pair.engine.ids[: place.at])
            token, where = spell(place.token, pieces), before(row, len(row), pieces)
        else:
            row_of_text = pair.engine.pieces or ()
            token, where = repr(row_of_text[place.at]) if place.at < len(row_of_text) else "a token", ""
        return f"{token} {where}".rstrip() + f" (prompt {pair.engine.key}, token {place.at + 1} of the answer)"


def build(trial: Trial) -> View:
    found = places(trial)
    found, is_scaled = _after_temperature(found, trial.temperature)
    far = distance([p.engine for p in found], [p.reference for p in found])
    noise, likeness = _rounding(found)
    size = _size(far, noise)
    context = measure(found, trial.alone)
    return View(trial=trial, places=found, distance=far, is_scaled=is_scaled, noise=noise, likeness=likeness, size=size, context=context)


def _after_temperature(found: tuple[Place, ...], temperature: float | None) -> tuple[tuple[Place, ...], bool]:
    """The places with the reference after temperature, if the engine's numbers fit that clearly better."""
    if temperature in (None, 0.0, 1.0) or not found or any(p.scaled is None for p in found):
        return found, False
    plain = fmean(abs(p.gap) for p in found)
    scaled = fmean(abs(p.engine - p.scaled) for p in found if p.scaled is not None)
    if plain < EXACT or scaled > plain / 2:
        return found, False
    assert temperature
    # Logits that are off by d are off by d / temperature after the division.
    moved = [
        msgspec.structs.replace(
            p, reference=p.scaled, rounded=None if p.rounded is None or p.scaled is None else p.scaled + (p.rounded - p.reference) / temperature
        )
        for p in found
    ]
    return tuple(moved), True


def _rounding(found: Sequence[Place]) -> tuple[float | None, float | None]:
    known = [(p.gap, p.rounded - p.reference) for p in found if p.rounded is not None]
    if len(known) < MIN_TOKENS:
        return None, None
    noise = fmean(abs(r) for _, r in known)
    try:
        return noise, correlation([g for g, _ in known], [r for _, r in known])
    except StatisticsError:
        return noise, None


def _size(far: Distance | None, noise: float | None) -> Size:
    if far is None or far.tokens < MIN_TOKENS or not math.isfinite(far.logprob_diff_mean):
        return Size.UNTOLD
    mean = far.logprob_diff_mean
    if noise is not None:
        if mean <= max(SAME_SHARE * noise, EXACT / 10):
            return Size.SAME
        return Size.ROUNDING if mean <= ROUNDING_TIMES * noise else Size.LARGER
    if mean < EXACT:
        return Size.SAME
    if mean < SMALL and far.probs_diff_mean < NORMAL:
        return Size.ROUNDING
    return Size.LARGER if mean > ROUNDING_TIMES * SMALL or far.probs_diff_mean > ALARM else Size.UNTOLD


def worst(view: View, count: int = 3) -> list[Place]:
    """The tokens whose probabilities differ most."""
    return sorted(view.places, key=lambda p: (-p.probability_gap, p.pair, p.at))[:count]


def growth(view: View) -> tuple[float, float] | None:
    """Mean difference in nats in the first and in the last quarter of the answers; None for short answers."""
    ends: tuple[list[float], list[float]] = ([], [])
    lengths: dict[int, int] = {}
    for p in view.places:
        lengths[p.pair] = max(lengths.get(p.pair, 0), p.at + 1)
    for p in view.places:
        length = lengths[p.pair]
        if length >= 8:
            if p.at < length / 4:
                ends[0].append(abs(p.gap))
            elif p.at >= 3 * length / 4:
                ends[1].append(abs(p.gap))
    return (fmean(ends[0]), fmean(ends[1])) if min(map(len, ends)) >= MIN_TOKENS else None


def numbers(view: View) -> Iterator[str]:
    """How large the differences are, where the largest are, and whether they grow along an answer."""
    far = view.distance
    if far is None:
        return
    mean = f"mean difference {far.logprob_diff_mean:.2g} nats over {far.tokens} tokens"
    yield mean if view.noise is None else f"{mean}; {view.trial.rounding} instead of {view.trial.precision} makes {view.noise:.2g}"
    if view.has_coarse_cache:
        yield f"the engine says that it keeps its key-value cache in {view.trial.cache_dtype}"
    if view.likeness is not None:
        yield f"correlation with the differences of {view.trial.rounding}: {view.likeness:.2f}"
    for place in worst(view):
        yield f"{view.name(place)}: probability {math.exp(place.engine):.3f} in the engine, {math.exp(place.reference):.3f} in the reference"
    ends = growth(view)
    if ends is not None and ends[1] > 3 * ends[0]:
        yield f"it grows along the answer, from {ends[0]:.2g} to {ends[1]:.2g} nats: look at attention, positions and the key-value cache"
