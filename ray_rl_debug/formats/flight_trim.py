"""A Flight Recorder's content cut down to what a comparison needs, so that a node's facts stay small."""

from __future__ import annotations

from collections import Counter

import msgspec

from ray_rl_debug.model.snapshot import FlightRecord

KEPT = 200
"""Of each group: a rank that is further behind than this is told by the last number it enqueued."""


def trim(record: FlightRecord, *, kept: int = KEPT) -> FlightRecord:
    """The last entries of each group; frames only of those that are not finished."""
    left = Counter(dict.fromkeys({(e.group, e.is_p2p) for e in record.entries}, kept))
    chosen = []
    for entry in reversed(record.entries):
        key = (entry.group, entry.is_p2p)
        unfinished = entry.state != "completed" and entry.retired is not True
        if left[key] <= 0 and not unfinished:
            continue
        left[key] -= 1
        chosen.append(entry if unfinished or not entry.frames else msgspec.structs.replace(entry, frames=()))
    chosen.reverse()
    cut = len(record.entries) - len(chosen)
    first = (record.first_record or 0) + cut if cut or record.first_record is not None else None
    return msgspec.structs.replace(record, entries=tuple(chosen), first_record=first)
