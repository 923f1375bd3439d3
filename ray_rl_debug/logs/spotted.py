"""A failure that was found in a log, not yet told."""

from __future__ import annotations

import msgspec

from ray_rl_debug.logs.heads import Head
from ray_rl_debug.logs.tracebacks import Block
from ray_rl_debug.model.snapshot.log_book import LogWriter
from ray_rl_debug.signatures import Signature

Key = tuple[object, ...]


class Spotted(msgspec.Struct, frozen=True):
    """A failure that was found, not yet told: most are repeated, and telling costs more than finding."""

    key: Key
    """Equal for equal failures of one writer."""
    kind: str
    head: Head
    text: str
    start: int
    end: int
    """Of its last line."""
    writer: LogWriter
    signature: Signature | None = None
    block: Block | None = None
    before: Head | None = None
    """Of a traceback the record that it belongs to, where that names a level."""
    taken: tuple[int, ...] = ()
    """Where its lines begin."""
