"""Processes that the companion has seen alive and that are gone: a look that is taken later cannot see them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from ray_rl_debug.model.snapshot import EndedProcess, Snapshot
from ray_rl_debug.watch.beats import Seen

KEPT_S = 600.0
"""Who is missed is missed at once; an older end belongs to another step of the run."""
MOST = 400


class Departed:
    """The last processes that have left, with the node and the time (clock of the companion)."""

    def __init__(self) -> None:
        self._gone: deque[tuple[float, Seen]] = deque(maxlen=MOST)

    def note(self, gone: Iterable[Seen], at_s: float) -> None:
        self._gone.extend((at_s, one) for one in gone)

    def told_in(self, snapshot: Snapshot, now_s: float) -> Snapshot:
        """The snapshot with those whose parents live on, as processes that have ended."""
        recent = [one for at_s, one in self._gone if now_s - at_s <= KEPT_S]
        if not recent:
            return snapshot
        nodes = []
        for node in snapshot.nodes:
            living = {p.pid for p in node.processes}
            told = {e.pid for e in node.ended} | living
            more = tuple(_ended(one) for one in recent if one.node == node.name and one.known.ppid in living and one.known.pid not in told)
            nodes.append(msgspec.structs.replace(node, ended=(*node.ended, *more)) if more else node)
        return msgspec.structs.replace(snapshot, nodes=tuple(nodes))


def _ended(one: Seen) -> EndedProcess:
    return EndedProcess(pid=one.known.pid, ppid=one.known.ppid, title=one.title, kind=one.known.kind)
