"""Equal text held once: the rows of Ray's tables name the same nodes, workers and jobs tens of thousands of times."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import repeat
from operator import attrgetter

import msgspec
from msgspec.structs import force_setattr

from ray_rl_debug.model.snapshot import Fact


def hold_equal_text_once(*tables: Sequence[Fact]) -> None:
    """Equal text in the rows of all these tables becomes one object. The rows of each are of one kind, and nobody else has seen them yet."""
    held: dict[object, object] = {}
    for rows in tables:
        for name in _text_fields(rows):
            values = list(map(attrgetter(name), rows))
            deque(map(force_setattr, rows, repeat(name), map(held.setdefault, values, values)), maxlen=0)


def _text_fields(rows: Sequence[Fact]) -> list[str]:
    """Fields that hold text or nothing."""
    if not rows:
        return []
    texts = (msgspec.inspect.StrType, msgspec.inspect.NoneType)
    kind = msgspec.inspect.type_info(type(rows[0]))
    assert isinstance(kind, msgspec.inspect.StructType)
    return [f.name for f in kind.fields if all(isinstance(t, texts) for t in getattr(f.type, "types", (f.type,)))]
