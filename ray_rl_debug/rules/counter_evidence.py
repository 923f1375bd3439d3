"""What Flight Recorder and NCCL RAS add to a finding, for the rules about collectives: evidence, certainty and the troubles they show."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ray_rl_debug.analyze.flight import GroupResult
from ray_rl_debug.analyze.waits_flight import FlightWorld, bare, name_group, say
from ray_rl_debug.analyze.waits_ras import RasWorld
from ray_rl_debug.model.report import Certainty, Evidence, Who
from ray_rl_debug.rules.scene import Scene, waits


def flight_troubles(scene: Scene, kinds: Iterable[str]) -> Iterator[tuple[FlightWorld, GroupResult]]:
    """Groups where trouble of these kinds begins."""
    wanted = frozenset(kinds)
    for world in scene.joined.flight:
        for group in world.result.roots:
            if group.kind in wanted:
                yield world, group


def nodes_of(world: FlightWorld, ranks: Iterable[int]) -> frozenset[str]:
    """Their processes, as nodes of the graph."""
    return frozenset(key for rank in ranks if (key := world.key(rank)) is not None)


def whos(scene: Scene, world: FlightWorld, ranks: Iterable[int]) -> list[Who]:
    return [scene.who(key) for rank in ranks if (key := world.key(rank)) is not None]


def group_evidence(world: FlightWorld, group: GroupResult) -> list[Evidence]:
    """The culprits' lines, then who waits, since when and where in the code."""
    where = f"Flight Recorder, {name_group(group)}"
    found = [Evidence(kind="collective", where=world.label(r), text=say(world, group, r)) for r in group.culprits[:4]]
    if group.votes:
        text = "; ".join(f"{what}: rank {_ranks(side)}" for what, side in group.votes[:4])
        found.append(Evidence(kind="collective", where=where, text=text))
    age = world.age_s(group)
    waited = f" for {age:.0f} s when the dumps were taken" if age is not None else ""
    waiting = f"{waits(len(group.waiting), 'rank')} in {bare(group.op)} number {group.seq}{waited}: {_ranks(group.waiting)}"
    found.append(Evidence(kind="collective", where=where, text=waiting))
    if group.unknown:
        text = f"no dump, or older entries overwritten: rank {_ranks(group.unknown)}"
        found.append(Evidence(kind="collective", where=where, text=text))
    return found


def counted(scene: Scene, key: str) -> tuple[Certainty | None, list[Evidence]]:
    """What the counters say against one process: the surest of it, and the evidence."""
    sure: Certainty | None = None
    found: list[Evidence] = []
    for world in scene.joined.flight:
        for group in world.result.roots:
            if any(world.key(r) == key for r in group.culprits):
                sure = _surer(sure, world.certainty(group))
                found += group_evidence(world, group)
    for one in scene.joined.ras:
        ranks = ras_culprits(one)
        mine = [r for r in ranks if one.members.get(r) == key]
        if mine:
            sure = _surer(sure, one.certainty)
            found += ras_evidence(one, mine)
    return sure, found


def ras_culprits(world: RasWorld) -> tuple[int, ...]:
    result = world.result
    return () if not result.is_trouble else result.lost if result.kind == "lost" else result.behind


def ras_evidence(world: RasWorld, ranks: Iterable[int]) -> list[Evidence]:
    span = f" in {world.result.polls} polls over {world.window_s:.0f} s" if world.result.polls > 1 else " in one poll"
    return [Evidence(kind="collective", where=f"rank {r} of {world.name}", text=f"{world.result.text(r)}{span}") for r in list(ranks)[:4]]


def even_evidence(scene: Scene, keys: Collection[str]) -> list[Evidence]:
    """Of processes that stand together: that NCCL counts the same of each, and counted no more in the window."""
    found = []
    for world in scene.joined.ras:
        result = world.result
        if result.kind != "even" or result.polls < 2 or not set(world.members.values()) <= set(keys):
            continue
        counts = next((r.counts for r in result.communicator.ranks), {})
        told = ", ".join(f"{n} {op}" for op, n in counts.items() if n) or "nothing"
        text = f"all {len(world.members)} ranks launched {told}, and none more in {world.window_s:.0f} s"
        found.append(Evidence(kind="collective", where=world.name, text=text))
    return found[:2]


def _surer(a: Certainty | None, b: Certainty) -> Certainty:
    order = (Certainty.PROVEN, Certainty.LIKELY, Certainty.POSSIBLE)
    return b if a is None else order[min(order.index(a), order.index(b))]


def _ranks(ranks: Iterable[int]) -> str:
    """``0-2, 5``."""
    spans: list[list[int]] = []
    for rank in sorted(ranks):
        if spans and spans[-1][1] == rank - 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans[:12])
