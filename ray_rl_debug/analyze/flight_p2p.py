"""Sends and receives of the Flight Recorder, paired: an unfinished one without its partner names the partner."""

from __future__ import annotations

import re
from collections import Counter

import msgspec

from ray_rl_debug.analyze.flight_entries import GroupKey, Ranks, is_pending

_P2P = re.compile(r":(?P<what>send|recv) (?P<own>\d+)(?:->|<-)(?P<other>\d+)$")


class Unpaired(msgspec.Struct, frozen=True, kw_only=True):
    """Unfinished sends or receives that have no partner."""

    op: str
    seq: int
    culprits: tuple[int, ...]
    waiting: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]
    """Who waits for whom."""


def match_p2p(key: GroupKey, ranks: Ranks) -> Unpaired | None:
    """Pair the unfinished entries by their two ends; partners without a dump are not accused."""
    pending: Counter[tuple[str, int, int]] = Counter()
    first: dict[tuple[str, int, int], tuple[str, int]] = {}
    for rank, entries in ranks.p2p.items():
        for entry in entries:
            named = _P2P.search(entry.op)
            if named is None or not is_pending(entry) or int(named["other"]) >= len(key.members):
                continue
            # The names count ranks within the group.
            edge = (named["what"], rank, key.members[int(named["other"])])
            pending[edge] += 1
            first.setdefault(edge, (entry.op, entry.seq))
    lonely = {edge: count for edge, count in pending.items() if count > pending[(_partner(edge[0]), edge[2], edge[1])] and edge[2] in ranks.p2p}
    if not lonely:
        return None
    waiting = {edge[1] for edge in lonely}
    partners = {edge[2] for edge in lonely}
    # A partner that waits for somebody else is in the middle of the chain; when all do, they wait in a ring.
    op, seq = first[min(lonely, key=lambda edge: first[edge][1])]
    return Unpaired(
        op=op,
        seq=seq,
        culprits=tuple(sorted(partners - waiting or partners)),
        waiting=tuple(sorted(waiting)),
        pairs=tuple(sorted({(edge[1], edge[2]) for edge in lonely})),
    )


def _partner(what: str) -> str:
    return "recv" if what == "send" else "send"
