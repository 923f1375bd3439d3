"""Files of torch's debug server: the answers of all ranks one below the other, each under ``=== Rank 3: host:port ===``."""

from __future__ import annotations

import re

_HEAD = re.compile(r"^=== Rank (\d{1,6}): .* ===\s*$", re.MULTILINE)
_STAMP = re.compile(r"_\d{8}_\d{6}$")


_WORDS = b"=== Rank "


def split_ranks(text: bytes) -> list[tuple[int, str]]:
    """Rank and text of each section; empty when the text has no such heads."""
    if _WORDS not in text:
        return []
    parts = _HEAD.split(text.decode("utf-8", "replace"))
    return [(int(rank), body) for rank, body in zip(parts[1::2], parts[2::2], strict=False)]


def without_stamp(stem: str) -> str:
    """``stacks_20260921_101500`` → ``stacks``: the same ranks at another moment."""
    return _STAMP.sub("", stem)
