"""Edges from NCCL RAS: ranks that launched more wait for those that launched less, and everybody for ranks that do not answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.nodes import NodeKind, node_of, node_of_pid
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.ras import RasResult, judge_communicators
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import RasCommunicator, RasRank

LONG_S = 20.0
"""Counts that stand for this long belong to a hang or to a very slow rank; over a shorter time to any rank at work."""


class RasWorld(msgspec.Struct, frozen=True, kw_only=True):
    """One communicator with its ranks' processes."""

    result: RasResult
    members: Mapping[int, str]
    """Rank of the communicator to process, or ``pid:NODE/PID`` for one that was not collected."""
    window_s: float

    @property
    def name(self) -> str:
        one = self.result.communicator
        return f"NCCL communicator {one.hash.split('/')[0]}" + (f" of {one.size} ranks" if one.size else "")

    @property
    def certainty(self) -> Certainty:
        if self.result.kind == "lost":
            return Certainty.LIKELY if any(r.status == "dead" for r in self.result.communicator.missing) else Certainty.POSSIBLE
        return Certainty.LIKELY if self.result.polls > 1 and self.window_s >= LONG_S else Certainty.POSSIBLE


def find_ras(view: View) -> tuple[RasWorld, ...]:
    """All communicators; every process of a job sees the same ones, so each is taken from the node that knows most of it."""
    best: dict[str, tuple[tuple[int, int], RasWorld]] = {}
    for node in view.snapshot.nodes:
        if not node.communicators:
            continue
        for result in judge_communicators(node.communicators):
            one = result.communicator
            rank = (len(one.ranks), result.polls)
            if one.hash not in best or best[one.hash][0] < rank:
                best[one.hash] = (rank, RasWorld(result=result, members=_members(view, one, node.name), window_s=node.window_s))
    return tuple(world for _, (_, world) in sorted(best.items()))


def _members(view: View, one: RasCommunicator, node: str) -> dict[int, str]:
    return {r.rank: key for r in (*one.ranks, *one.missing) if (key := _process(view, r, node)) is not None}


def _process(view: View, rank: RasRank, node: str) -> str | None:
    """By address or name of the node and pid; by pid alone where only one node has it."""
    if rank.pid is None:
        return None
    holders = [s for s in view if s.process.pid == rank.pid]
    named = [s for s in holders if rank.host in (s.node.ip, s.node.name)]
    if len(named) == 1 or (not named and len(holders) == 1):
        return (named or holders)[0].key
    return node_of_pid(rank.host or node, rank.pid)


def ras_edges(view: View, worlds: Sequence[RasWorld]) -> Iterator[Edge]:
    """Who waits for whom, by the counts."""
    for world in worlds:
        result = world.result
        if not result.is_trouble:
            continue
        aims = {r: world.members[r] for r in (result.lost if result.kind == "lost" else result.behind) if r in world.members}
        sources = [view.seen[k] for r in result.ahead if r not in aims and (k := world.members.get(r)) is not None and k in view.seen]
        # The text form names only the ranks in trouble: then the communicator as a whole waits.
        waiting = (
            [s.key for s in sources if not s.is_stopped and s.motion is not Motion.MOVING]
            if sources
            else [node_of(NodeKind.COMMUNICATOR, world.name)]
        )
        for source in waiting:
            for target, aim in aims.items():
                evidence = f"rank {target} of {world.name} {result.text(target)}"
                yield Edge(source=source, target=aim, why=Why.COLLECTIVE, op=result.op or "NCCL", evidence=evidence, certainty=Certainty.LIKELY)
