"""What counters say of the ranks, beside their stacks: Flight Recorder dumps and NCCL RAS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ray_rl_debug.analyze.edges import Edge
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_flight import FlightWorld, covered, find_flight, flight_edges
from ray_rl_debug.analyze.waits_ras import RasWorld, find_ras, ras_edges
from ray_rl_debug.model.report import Certainty


class Joined(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of all worlds."""

    flight: tuple[FlightWorld, ...] = ()
    ras: tuple[RasWorld, ...] = ()
    advanced: frozenset[str] = frozenset()
    """Processes whose collectives went on during the window: whatever their stacks show, they do not hang."""
    still: Mapping[str, Certainty] = {}
    """Nodes of the graph whose counters stand still in a collective, and how sure that is."""


def find_joined(view: View) -> Joined:
    """The counters of a view; pure."""
    flight, ras = find_flight(view), find_ras(view)
    advanced = {key for w in flight if w.result.moving and (w.is_live or not view.has_stacks) for key in w.members.values()}
    advanced |= {key for w in ras if w.result.kind == "moving" for key in w.members.values()}
    return Joined(flight=flight, ras=ras, advanced=frozenset(advanced), still=dict(_still(flight, ras)))


def with_launches(view: View) -> View:
    """The view in which ranks move that launched collectives during the window, whatever their stacks show.

    A rank of CUDA stands at one line most of the time: where it needs a result. A step of a tenth of a second is over before the next look.
    """
    launched: dict[str, int] = {}
    for world in find_ras(view):
        for rank, more in world.result.launched.items():
            key = world.members.get(rank)
            if key is not None and key in view.seen and view.seen[key].motion is not Motion.MOVING:
                launched[key] = max(more, launched.get(key, 0))
    if not launched:
        return view
    seen = {
        key: msgspec.structs.replace(one, motion=Motion.MOVING, motion_reason=_launched(launched[key])) if key in launched else one
        for key, one in view.seen.items()
    }
    return msgspec.structs.replace(view, seen=seen, processes=tuple(seen[one.key] for one in view.processes), known={})


def _launched(count: int) -> str:
    return f"launched {count} collective{'' if count == 1 else 's'} during the window, as NCCL counts them"


def _still(flight: Sequence[FlightWorld], ras: Sequence[RasWorld]) -> Iterator[tuple[str, Certainty]]:
    for one in ras:
        ranks = (*one.result.lost, *one.result.behind, *one.result.ahead) if one.result.is_trouble else ()
        yield from ((one.members[r], one.certainty) for r in ranks if r in one.members)
    for world in flight:
        for group in world.result.roots:
            ranks = () if group.undecided else (*group.waiting, *group.culprits, *(r for _, side in group.votes for r in side))
            yield from ((key, world.certainty(group)) for r in ranks if (key := world.key(r)) is not None)


def joined_edges(view: View, joined: Joined, by_stacks: Sequence[Edge]) -> list[Edge]:
    """Edges between ranks: by dumps where there are some, by stacks for the rest, by RAS beside them."""
    exact = {key for world in joined.flight for key in covered(world, view)}
    # a recv that names its peer is exact by itself; that its rank has not enqueued a collective does not end its wait
    named = {one.key for one in view.at(Kind.P2P) if one.place is not None and one.place.peer is not None}
    kept = [e for e in by_stacks if e.source not in exact or e.source in named]
    return [*flight_edges(view, joined.flight), *ras_edges(view, joined.ras), *kept]
