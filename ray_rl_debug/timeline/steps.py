"""Which training step a moment belongs to, told from phases alone: a step ends when its weights have gone to the rollout.

In asynchronous runs the step is therefore the weight version. Runs without a weight sync are divided by their updates.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence

import msgspec


class Run(msgspec.Struct, frozen=True, gc=False):
    """A process in one phase for a while."""

    start_ns: int
    end_ns: int | None
    phase: str


class Steps(msgspec.Struct, frozen=True):
    """The moments at which steps ended, in order."""

    ends_ns: tuple[int, ...] = ()

    def at(self, moment_ns: int) -> int:
        """The step's number, from 1."""
        return bisect.bisect_right(self.ends_ns, moment_ns) + 1


def find_steps(runs: Iterable[Run]) -> Steps:
    """The ends of all steps that ended."""
    ordered = sorted(runs, key=lambda r: r.start_ns)
    closing = "weight_sync" if any(r.phase == "weight_sync" for r in ordered) else "update"
    ends: list[int] = []
    closes_at: int | None = None
    updated = False
    for run in ordered:
        if closes_at is not None and run.start_ns >= closes_at and run.phase != closing:
            ends.append(closes_at)
            closes_at, updated = None, False
        updated = updated or run.phase == "update"
        if run.phase == closing and updated and run.end_ns is not None:
            closes_at = max(closes_at or 0, run.end_ns)
    if closes_at is not None:
        ends.append(closes_at)
    return Steps(tuple(ends))


def merge_runs(spans: Sequence[tuple[int, int | None, str]]) -> list[Run]:
    """Overlapping or touching spans of one phase of one process become one run: concurrent calls do not count twice."""
    runs: list[Run] = []
    for phase in sorted({p for _, _, p in spans}):
        start: int | None = None
        end: int | None = 0
        for a, b in sorted(((a, b) for a, b, p in spans if p == phase), key=lambda x: x[0]):
            if start is not None and end is not None and a > end:
                runs.append(Run(start, end, phase))
                start = None
            if start is None:
                start, end = a, b
            elif end is not None:
                end = None if b is None else max(end, b)
        if start is not None:
            runs.append(Run(start, end, phase))
    return sorted(runs, key=lambda r: r.start_ns)
