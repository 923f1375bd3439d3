"""NCCL RAS, two or more polls: which ranks of a communicator lag behind the others, and which do not answer at all.

Counts say how many collectives of each kind a rank has launched. Equal counts say nothing; counts that grow between the polls clear everybody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ray_rl_debug.model.snapshot import RasCommunicator, RasRank


class RasResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the polls say of one communicator."""

    communicator: RasCommunicator
    """As in the last poll."""
    kind: str
    """``behind`` (some launched less), ``mismatch`` (each side launched what the other did not), ``lost`` (some do not answer), ``moving``,
    ``leaving`` (some are being torn down), ``even``, or ``unknown`` (one poll only, or nothing to compare)."""
    op: str | None = None
    behind: tuple[int, ...] = ()
    ahead: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    """Ranks that do not answer RAS."""
    polls: int = 1
    launched: Mapping[int, int] = {}
    """Collectives that each rank launched between the first poll and the last; without those that launched none."""

    @property
    def is_trouble(self) -> bool:
        return self.kind in ("behind", "mismatch", "lost")

    def rank(self, number: int) -> RasRank | None:
        """Its facts, wherever it is listed."""
        return next((r for r in (*self.communicator.ranks, *self.communicator.missing) if r.rank == number), None)

    def text(self, number: int) -> str:
        """``launched 640 AllGather, others 641`` of one rank."""
        one = self.rank(number)
        if one is None or number in self.lost:
            return f"does not answer RAS{f' ({one.status})' if one is not None and one.status else ''}"
        most = {op: max(r.counts.get(op, 0) for r in self.communicator.ranks) for op in one.counts}
        short = [f"{one.counts[op]} {op}, others {n}" for op, n in most.items() if n > one.counts[op]]
        return f"launched {'; '.join(short[:2])}" if short else "launched as much as the others"


def judge_communicators(polls: Sequence[Sequence[RasCommunicator]]) -> tuple[RasResult, ...]:
    """One result for each communicator of the last poll."""
    if not polls:
        return ()
    return tuple(_judge(one, [_find(earlier, one) for earlier in polls[:-1]], polls) for one in polls[-1])


def _find(poll: Sequence[RasCommunicator], wanted: RasCommunicator) -> RasCommunicator | None:
    return next((c for c in poll if c.hash == wanted.hash and c.size == wanted.size), None)


def _judge(one: RasCommunicator, earlier: Sequence[RasCommunicator | None], polls: Sequence[object]) -> RasResult:
    before = [c for c in earlier if c is not None]
    base = RasResult(communicator=one, kind="unknown", polls=len(before) + 1, lost=tuple(r.rank for r in one.missing))
    now = {r.rank: r.counts for r in one.ranks}
    if any(_has_moved({r.rank: r.counts for r in c.ranks}, now) for c in before):
        first = {r.rank: r.counts for r in before[0].ranks}
        launched = {rank: more for rank, counts in now.items() if (more := sum(counts.values()) - sum(first.get(rank, counts).values())) > 0}
        return msgspec.structs.replace(base, kind="moving", launched=launched)
    if any(r.status in ("abort", "finalize") for r in one.ranks):
        return msgspec.structs.replace(base, kind="leaving")
    ahead, behind, op = _sides(now)
    if one.missing:
        # Lost in one poll only is a slow answer.
        still = {r.rank for r in before[-1].missing} if before else set(base.lost)
        lost = tuple(r for r in base.lost if r in still)
        if lost:
            return msgspec.structs.replace(base, kind="lost", lost=lost, ahead=tuple(sorted(now)), op=op)
    if not now or (len(polls) > 1 and not before):
        return base
    both = set(ahead) & set(behind)
    if both:
        return msgspec.structs.replace(base, kind="mismatch", ahead=tuple(sorted(now)), behind=_minority(now), op=op)
    if behind:
        return msgspec.structs.replace(base, kind="behind", behind=tuple(sorted(behind)), ahead=tuple(sorted(ahead)), op=op)
    return msgspec.structs.replace(base, kind="even")


def _has_moved(before: Mapping[int, Mapping[str, int]], now: Mapping[int, Mapping[str, int]]) -> bool:
    return any(count != before[rank].get(op, count) for rank, counts in now.items() if rank in before for op, count in counts.items())


def _sides(now: Mapping[int, Mapping[str, int]]) -> tuple[set[int], set[int], str | None]:
    """Ranks that lead in some kind of collective, ranks that lag in some, and the first such kind."""
    ahead: set[int] = set()
    behind: set[int] = set()
    first: str | None = None
    for op in sorted({op for counts in now.values() for op in counts}):
        counts = {rank: c[op] for rank, c in now.items() if op in c}
        most = max(counts.values())
        lag = {rank for rank, n in counts.items() if n < most}
        if lag:
            first = first or op
            behind |= lag
            ahead |= counts.keys() - lag
    return ahead, behind, first


def _minority(now: Mapping[int, Mapping[str, int]]) -> tuple[int, ...]:
    """Ranks with counts unlike those of most; empty when no side is larger."""
    sides: dict[tuple[tuple[str, int], ...], list[int]] = {}
    for rank, counts in sorted(now.items()):
        sides.setdefault(tuple(sorted(counts.items())), []).append(rank)
    ordered = sorted(sides.values(), key=len)
    if len(ordered) < 2 or len(ordered[-1]) == len(ordered[-2]):
        return ()
    return tuple(sorted(rank for side in ordered[:-1] for rank in side))
