"""RRD234 the masks are wrong

Story
    A mask says which tokens the model read and which it made. A wrong one trains on prompts, padding or tool output, or on nothing.

Evidence
    The first trajectory in which a mask has other values than 0 and 1, holes, trained tokens that were not read, padding that is read, or nothing
    to train on.

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
    told = [*_values(batch), *_holes(batch), *_unread(batch), *_reads_padding(batch), *_empty(batch)]
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


def _reads_padding(batch: Batch) -> Iterator[str]:
    """What stands behind the last token to train on, and is one token again and again, is padding."""
    ids, attention = batch.fields.get("input_ids"), batch.fields.get("attention_mask")
    masks = [f for f in (batch.fields.get("response_mask"), batch.fields.get("loss_mask")) if f is not None]
    if ids is None or attention is None or not masks:
        return
    wrong = [n for n, rows in enumerate(zip(ids.rows, attention.rows, masks[0].rows, strict=False)) if _is_padding_read(*rows)]
    if wrong:
        yield f"attention_mask reads padding in {len(wrong)} trajectories, the first is {wrong[0]}: one token again and again behind the answer"


def _is_padding_read(tokens: Sequence[float], read: Sequence[float], trained: Sequence[float]) -> bool:
    last = next((at for at in range(len(trained) - 1, -1, -1) if trained[at]), None)
    behind = len(tokens) - len(trained) + last + 1 if last is not None else len(tokens)
    rest = tokens[behind:]
    return len(rest) >= _RUN and len(set(rest)) == 1 and len(read) == len(tokens) and all(read[behind:])


_RUN = 3


def _empty(batch: Batch) -> Iterator[str]:
    for name in ("response_mask", "loss_mask"):
        field = batch.fields.get(name)
        if field is None:
            continue
        empty = [n for n, row in enumerate(field.rows) if not any(row)]
        if empty:
            yield f"{len(empty)} of {len(field.rows)} trajectories have nothing to train on ({name} is all 0), the first is {empty[0]}"
