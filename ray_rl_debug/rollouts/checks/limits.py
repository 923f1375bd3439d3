"""What the checks of a batch are told from outside."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that a batch itself does not hold. *None*: not known, and not judged."""

    vocabulary: int | None = None
    """Tokens of the model."""
    pad: int | None = None
    ends: tuple[int, ...] | None = None
    """Tokens that end an answer."""
    staleness: int | None = None
    """AReaL's ``max_head_offpolicyness``: most versions that a token may be behind the newest one."""
    group_size: int | None = None
    """Answers per prompt that follow each other."""
    no_end: float = 0.05
    """AReaL's guide: a larger share of answers without an end token is too much."""
