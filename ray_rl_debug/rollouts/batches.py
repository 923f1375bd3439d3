"""A batch of trajectories as a trainer saved it: plain rows, whatever container they came in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

Row = Sequence[float]
"""One trajectory's values of a field, one per place."""


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor of a batch."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    rows: tuple[Row, ...]
    """One per trajectory, flattened; the first dimension is the batch."""
    is_ragged: bool = False


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """A file of trajectories."""

    kind: str
    """``AReaL`` or ``verl``."""
    fields: Mapping[str, Field]
    others: Mapping[str, Sequence[Any]] = msgspec.field(default_factory=dict)
    """What is no tensor: texts and objects, one per trajectory, as plain data; *None* for what is not plain."""
    meta: Mapping[str, Any] = msgspec.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What could not be read, and why."""

    @property
    def size(self) -> int | None:
        """Trajectories; None for a batch without tensors."""
        return next((len(f.rows) for f in self.fields.values()), None)
