"""RRD232 the shapes do not fit

Story
    Fields of one batch have different numbers of trajectories or tokens, so masks and log-probabilities belong to other tokens.

Evidence
    The shape of each field that does not fit, beside the one it must have.

Remedy
    Pad all fields of a trajectory together; slice responses from input_ids, not by a length of your own.

Not this when
    Rows of a list have different lengths: those are padded later.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts.answers import Cause, Found
from ray_rl_debug.rollouts.batches import Batch
from ray_rl_debug.rollouts.checks.limits import Limits

ID = "RRD232"
NAME = "the shapes do not fit"
CAUSE = Cause.BATCH
LIKE_INPUT = ("attention_mask", "position_ids", "loss_mask", "versions", "logprobs", "prox_logp")
LIKE_RESPONSE = ("response_mask", "rollout_log_probs", "old_log_probs", "ref_log_prob", "token_level_scores", "token_level_rewards", "advantages")


def check(batch: Batch, limits: Limits) -> Iterator[Found]:
    """Fields with another number of trajectories or places than the one they go with."""
    told = [*_counts(batch), *_lengths(batch, "input_ids", LIKE_INPUT), *_lengths(batch, "responses", LIKE_RESPONSE), *_sum(batch)]
    if told:
        yield Found(
            id=ID,
            name=NAME,
            cause=CAUSE,
            certainty=Certainty.PROVEN,
            summary=f"fields of the batch do not fit each other: {told[0]}",
            evidence=tuple(told[:8]),
            remedy=("pad and cut all fields of a trajectory together; slice responses from input_ids",),
        )


def _counts(batch: Batch) -> Iterator[str]:
    sizes = {name: len(f.rows) for name, f in batch.fields.items()}
    if len(set(sizes.values())) > 1:
        common = max(set(sizes.values()), key=list(sizes.values()).count)
        yield from (f"{name} has {n} trajectories, the others {common}" for name, n in sizes.items() if n != common)


def _lengths(batch: Batch, base: str, names: tuple[str, ...]) -> Iterator[str]:
    whole = batch.fields.get(base)
    if whole is None:
        return
    for name in names:
        field = batch.fields.get(name)
        if field is None or len(field.rows) != len(whole.rows):
            continue  # another number of trajectories is told as such
        # position_ids of multimodal models have three or four rows per trajectory
        times = (1, 3, 4) if name == "position_ids" else (1,)
        for n, (row, like) in enumerate(zip(field.rows, whole.rows, strict=True)):
            if len(row) not in [t * len(like) for t in times]:
                yield f"{name} has {len(row)} places in trajectory {n}, {base} has {len(like)}"
                break


def _sum(batch: Batch) -> Iterator[str]:
    parts = [batch.fields.get(n) for n in ("prompts", "responses", "input_ids")]
    if all(p is not None for p in parts):
        prompt, response, whole = (p.rows[0] if p is not None and p.rows else () for p in parts)
        if len(prompt) + len(response) != len(whole):
            yield f"prompts ({len(prompt)}) and responses ({len(response)}) make {len(prompt) + len(response)} places, input_ids has {len(whole)}"
