"""RRD235 log-probabilities out of range

Story
    Log-probabilities of sampled tokens are at most 0, and seldom below -20. Others are probabilities, perplexities, zeros that nobody filled in, or
    stand one place too far. Importance weights made from them are wrong for every token.

Evidence
    The first value out of range; the share of zeros; the difference between rollout and training where the batch has both.

Remedy
    Ask the engine for log-probabilities of the sampled tokens (verl: rollout.calculate_log_probs=True), natural logarithm, one per made token.

Not this when
    Greedy answers of a sure model: their log-probabilities are close to 0, but not exactly 0 throughout.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts.answers import Cause, Found
from ray_rl_debug.rollouts.batches import Batch
from ray_rl_debug.rollouts.checks.limits import Limits
from ray_rl_debug.rollouts.differences import ALARM, NORMAL, distance

ID = "RRD235"
NAME = "log-probabilities out of range"
CAUSE = Cause.BATCH
FIELDS = ("rollout_log_probs", "old_log_probs", "ref_log_prob", "logprobs", "prox_logp")
ABOVE = 1e-3
BELOW = -100.0
"""Nats; a sampled token with a probability below 1e-43 is no sampled token."""


def check(batch: Batch, limits: Limits) -> Iterator[Found]:
    """Values under the mask that no sampled token has; fields of zeros; rollout and training too far apart."""
    told = [*_range(batch), *_zeros(batch)]
    apart, is_apart = _apart(batch)
    if told or is_apart:
        yield Found(
            id=ID,
            name=NAME,
            cause=CAUSE,
            certainty=Certainty.PROVEN if told else Certainty.LIKELY,
            summary=f"log-probabilities of the batch are out of range: {told[0]}" if told else apart,
            evidence=tuple([*told, apart] if apart else told),
            remedy=(
                "ask the engine for the log-probabilities of its own tokens: natural logarithm, one per made token",
                "if only rollout and training are apart: rayrl-debug rollout compare FILE --reference FOLDER tells precision from weights",
            ),
        )


def _masked(batch: Batch, name: str) -> Iterator[tuple[int, int, float]]:
    field = batch.fields[name]
    mask = batch.fields.get("loss_mask" if name in ("logprobs", "prox_logp") else "response_mask")
    for n, row in enumerate(field.rows):
        flags = mask.rows[n] if mask is not None and n < len(mask.rows) and len(mask.rows[n]) == len(row) else None
        for at, value in enumerate(row):
            if flags is None or flags[at]:
                yield n, at, value


def _range(batch: Batch) -> Iterator[str]:
    for name in FIELDS:
        if name in batch.fields:
            wrong = [(n, at, v) for n, at, v in _masked(batch, name) if v > ABOVE or v < BELOW]
            if wrong:
                n, at, value = wrong[0]
                yield f"{name}: {len(wrong)} values above 0 or below {BELOW:g}, the first is {value:.4g} in trajectory {n}, place {at}"


def _zeros(batch: Batch) -> Iterator[str]:
    for name in FIELDS:
        if name in batch.fields:
            values = [v for _, _, v in _masked(batch, name)]
            if len(values) >= 8 and not any(values):
                yield f"{name} is 0 for all {len(values)} trained tokens: nobody filled it in"


def _apart(batch: Batch) -> tuple[str, bool]:
    for ours, theirs in (("rollout_log_probs", "old_log_probs"), ("logprobs", "prox_logp")):
        if ours in batch.fields and theirs in batch.fields:
            both = zip(_masked(batch, ours), _masked(batch, theirs), strict=False)
            pairs = [(a, b) for (_, _, a), (_, _, b) in both if BELOW < a <= ABOVE and BELOW < b <= ABOVE]
            far = distance([a for a, _ in pairs], [b for _, b in pairs])
            if far is not None:
                said = f"rollout_probs_diff_mean between {ours} and {theirs} is {far.probs_diff_mean:.3g} over {far.tokens} tokens"
                return f"{said} (normal < {NORMAL:g}, alarm > {ALARM:g}: verl's FAQ)", far.probs_diff_mean > ALARM
    return "", False
