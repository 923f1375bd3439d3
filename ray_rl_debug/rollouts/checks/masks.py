"""RRD234 the masks are wrong

Story
    A mask says which tokens the model read and which it made. A wrong one trains on prompts, padding or tool output, or on nothing.

Evidence
    The first trajectory in which a mask has other values than 0 and 1, holes, trained tokens that were not read, or nothing to train on.

Remedy
    Build the masks where the tokens are made; pad prompts at the left and answers at the right.

Not this when
    The loss mask has holes: tool output between two turns is left out on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts.answers import Cause, Found
from ray_rl_debug.rollouts.batches import Batch
from ray_rl_debug.rollouts.checks.limits import Limits

ID = "RRD234"
NAME = "the masks are wrong"
CAUSE = Cause.BATCH
MASKS = ("attention_mask", "response_mask", "loss_mask")


def check(batch: Batch, limits: Limits) -> Iterator[Found]:
    """Masks that cannot be right, whatever was trained."""
    told = [*_values(batch), *_holes(batch), *_unread(batch), *_empty(batch)]
    if told:
        yield Found(
            id=ID,
            name=NAME,
            cause=CAUSE,
            certainty=Certainty.PROVEN,
            summary=f"masks of the batch are wrong: {told[0]}",
            evidence=tuple(told[:8]),
            remedy=("build masks where the tokens are made; prompts are padded at the left, answers at the right",),
        )


def _values(batch: Batch) -> Iterator[str]:
    for name in MASKS:
        field = batch.fields.get(name)
        for n, row in enumerate(field.rows if field else ()):
            odd = next((v for v in row if v not in (0, 1)), None)
            if odd is not None:
                yield f"{name} has the value {odd:g} in trajectory {n}"
                break


def _holes(batch: Batch) -> Iterator[str]:
    field = batch.fields.get("attention_mask")
    wrong = [n for n, row in enumerate(field.rows if field else ()) if _has_hole(row)]
    if wrong:
        yield f"attention_mask has holes in {len(wrong)} trajectories, the first is {wrong[0]}: padding stands between tokens"


def _has_hole(row: Sequence[float]) -> bool:
    read = [at for at, v in enumerate(row) if v]
    return bool(read) and read[-1] - read[0] + 1 != len(read)


def _unread(batch: Batch) -> Iterator[str]:
    attention = batch.fields.get("attention_mask")
    for name in ("response_mask", "loss_mask"):
        field = batch.fields.get(name)
        if attention is None or field is None or len(field.rows) != len(attention.rows):
            continue
        for n, (mask, read) in enumerate(zip(field.rows, attention.rows, strict=True)):
            tail = read[len(read) - len(mask) :]
            at = next((at for at, (m, r) in enumerate(zip(mask, tail, strict=False)) if m and not r), None)
            if at is not None:
                yield f"{name} trains on padding: trajectory {n}, place {at} of {name} is outside of attention_mask"
                break


def _empty(batch: Batch) -> Iterator[str]:
    for name in ("response_mask", "loss_mask"):
        field = batch.fields.get(name)
        if field is None:
            continue
        empty = [n for n, row in enumerate(field.rows) if not any(row)]
        if empty:
            yield f"{len(empty)} of {len(field.rows)} trajectories have nothing to train on ({name} is all 0), the first is {empty[0]}"
