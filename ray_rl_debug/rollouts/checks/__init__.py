"""Does a batch hold what a trainer needs? One check per file."""

from __future__ import annotations

from types import ModuleType

import msgspec

from ray_rl_debug.rollouts.answers import Found, State
from ray_rl_debug.rollouts.batches import Batch
from ray_rl_debug.rollouts.checks import keys, logprobs, masks, numbers, rewards, shapes, tokens, versions
from ray_rl_debug.rollouts.checks.limits import Limits

SCHEMA = "rayrl-debug/rollout-check/1"
CHECKS: tuple[ModuleType, ...] = (keys, shapes, numbers, masks, logprobs, versions, tokens, rewards)
"""In the order in which they are told."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One field of the batch, measured."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    low: float | None
    high: float | None
    """Smallest and largest finite value."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """The whole result; ``--json`` prints it."""

    schema: str = SCHEMA
    file: str
    kind: str
    size: int | None
    state: State
    """``agree``: nothing wrong was found."""
    findings: tuple[Found, ...]
    fields: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    """What could not be judged, and what it needs."""


def check_batch(batch: Batch, limits: Limits, file: str) -> Checked:
    """All checks of one batch."""
    found = tuple(one for module in CHECKS for one in module.check(batch, limits))
    needs = {
        "tokens outside of the vocabulary: give --tokenizer": limits.vocabulary,
        "padding and ends of answers: give --tokenizer": limits.ends,
        "staleness: give --max-staleness": limits.staleness if "versions" in batch.fields else 0,
    }
    return Checked(
        file=file,
        kind=batch.kind,
        size=batch.size,
        state=State.DIFFER if found else State.AGREE if batch.fields else State.UNKNOWN,
        findings=found,
        fields=tuple(_row(batch, name) for name in sorted(batch.fields)),
        notes=batch.notes,
        not_checked=tuple(text for text, value in needs.items() if value is None),
    )


def _row(batch: Batch, name: str) -> Row:
    field = batch.fields[name]
    low = min((v for row in field.rows for v in row if abs(v) < float("inf")), default=None)
    high = max((v for row in field.rows for v in row if abs(v) < float("inf")), default=None)
    return Row(name=name, shape=field.shape, dtype=field.dtype, low=low, high=high)


__all__ = ["CHECKS", "Checked", "Limits", "check_batch"]
