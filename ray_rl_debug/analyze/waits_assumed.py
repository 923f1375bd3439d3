"""Waits of processes of which only stacks are known: for a call, a child, a queue or a connection, and nothing tells whose.

Any process nearer to the work may be the one: a driver waits for actors, a launcher for its children, a client for a server, and none of them
for one that waits as far out as itself. So these waits make no ring. They are never more than *possible*.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from ray_rl_debug.analyze.by_hand import is_stacks_alone
from ray_rl_debug.analyze.data_loaders import runs_loader_worker
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.ended import ended
from ray_rl_debug.analyze.frameworks import HANDSHAKES, spot_of
from ray_rl_debug.analyze.frameworks.table import Spot
from ray_rl_debug.analyze.handlers import waiting_thread
from ray_rl_debug.analyze.identity import is_of_several
from ray_rl_debug.analyze.kinds_of_places import WAITS_FOR_RANKS, Kind
from ray_rl_debug.analyze.library_places import answers_request
from ray_rl_debug.analyze.main_activity import moves_data
from ray_rl_debug.analyze.places import Place
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.stacks import Once
from ray_rl_debug.analyze.timed_waits import wakes_by_itself
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.worlds import World
from ray_rl_debug.model.report import Certainty

DISTANCE = {
    Kind.RAY_GET: 3, Kind.RAY_WAIT: 3, Kind.CHILD: 2, Kind.DATALOADER: 2, Kind.MP_QUEUE: 2, Kind.CHANNEL: 1, Kind.SOCKET: 1,
}  # fmt: skip
"""How far from the work a process is that waits so."""


def assumed_edges(view: View, worlds: Sequence[World], known: Sequence[Edge]) -> Iterator[Edge]:
    """From each process for whose wait nothing is known to those that it may mean; nothing where more than stacks is known."""
    if not view.by_hand:
        return
    sources = {e.source for e in known}
    found = [*known]
    for edge in (
        *_to_each_other(view, sources),
        *_at_handshakes(view),
        *_to_the_ended(worlds, sources),
        *_to_the_only_one(view, sources, known),
        *_to_the_one_outside(view, worlds, known),
    ):
        sources.add(edge.source)
        found.append(edge)
    yield from found[len(known) :]
    for level in sorted(set(DISTANCE.values())):
        # who waits nearer to the work is asked first: nobody waits for one that waits for it
        reached = Once(_Reach(found).of)
        assumed = [e for one in view if distance(one) == level and one.key not in sources for e in _outward(view, one, reached)]
        found += assumed
        yield from assumed


def _outward(view: View, one: Seen, reached: Once[str, frozenset[str]]) -> Iterator[Edge]:
    if ended(one) is not None or not is_stacks_alone(one.process) or one.is_stopped:
        return
    nearer = [s for s in view if s is not one and s.threads and not s.is_idle and _is_nearer(s, one)]
    # who waits for this one itself is not the one that it waits for
    nearer = [s for s in nearer if one.key not in reached[s.key]]
    loaders = [s for s in nearer if one.kind is Kind.DATALOADER and s.telling is not None and s.telling.stack.once(runs_loader_worker)]
    if loaders:
        nearer = loaders
    elif one.kind in (Kind.RAY_GET, Kind.RAY_WAIT):
        nearer = [s for s in nearer if s.process.kind == "ray-worker"] or nearer
    else:
        nearer = [s for s in nearer if s.node is one.node] or nearer
    for other in _one_of_each(nearer):
        evidence = f"the stacks do not tell for whom it waits; {other.identity.label} {other.does()}"
        op = one.place.op if one.place is not None else ""
        why = Why.DATALOADER if loaders else Why.ASSUMED
        yield Edge(source=one.key, target=other.key, why=why, op=op, evidence=evidence, certainty=Certainty.POSSIBLE)


def _is_nearer(other: Seen, one: Seen) -> bool:
    """Is it nearer to the work? Of two clients that one which asks while it answers a request."""
    if distance(other) == distance(one) == DISTANCE[Kind.SOCKET]:
        return _answers(other) and not _answers(one)
    return distance(other) < distance(one)


def _answers(one: Seen) -> bool:
    return one.telling is not None and answers_request(one.telling.frames)


_MOST = 64


def _one_of_each(targets: Sequence[Seen]) -> list[Seen]:
    """Some of each place: any of them may be meant, and what holds for one at a place holds for all there."""
    number: dict[object, int] = defaultdict(int)
    turns = []
    for order, one in enumerate(targets):
        at = one.telling.stack if one.telling is not None else None
        number[at] += 1
        turns.append((number[at], order))
    return [targets[order] for _, order in sorted(turns)[:_MOST]]


class _Reach:
    """Who is waited for, directly or not, along known waits."""

    def __init__(self, known: Sequence[Edge]) -> None:
        self._ahead: dict[str, list[str]] = defaultdict(list)
        for edge in known:
            self._ahead[edge.source].append(edge.target)

    def of(self, key: str) -> frozenset[str]:
        found, pending = {key}, [key]
        while pending:
            for target in self._ahead.get(pending.pop(), ()):
                if target not in found:
                    found.add(target)
                    pending.append(target)
        return frozenset(found)


def _to_the_only_one(view: View, sources: Collection[str], known: Sequence[Edge]) -> Iterator[Edge]:
    """From idle processes to the only one that is not: it has the work, and if the run hangs, they wait for what it should hand on.

    Not from a rank that it waits for itself, as one that rests while the other is in a collective.
    """
    busy = [s for s in view if s.threads and not s.is_idle]
    if len(busy) != 1 or distance(busy[0]) or busy[0].motion is Motion.MOVING:
        return
    thread = busy[0].telling
    if thread is not None and wakes_by_itself(busy[0].process.python, thread.frames):
        return  # the turn of a loop, which looks for work as the others do
    if thread is not None and thread.place.kind is Kind.FUTURE and busy[0].followed is None:
        return  # who completes the future is not shown: it may be one of these
    asked = {e.target for e in known if e.source == busy[0].key}
    shown = sum(1 for s in view if s.threads)
    for one in view:
        if one.threads and one.is_idle and one.key not in sources and one.key not in asked:
            evidence = f"of {shown} processes with stacks only {busy[0].identity.label} is not idle"
            yield Edge(source=one.key, target=busy[0].key, why=Why.ASSUMED, op="its work", evidence=evidence, certainty=Certainty.POSSIBLE)


def _to_the_one_outside(view: View, worlds: Sequence[World], known: Sequence[Edge]) -> Iterator[Edge]:
    """From ranks that wait for each other to the only process beside them that works: whoever gives both stacks gives them for that."""
    waiting = [m for w in worlds for m in w.members if m.kind in WAITS_FOR_RANKS and m.threads]
    inside = {m.key for w in worlds for m in w.members if len(w.members) > 1 or m.kind in WAITS_FOR_RANKS}
    others = [s for s in view if s.threads and not s.is_idle and s.key not in inside]
    if not waiting or len(others) != 1 or others[0].motion is Motion.MOVING:
        return
    one = others[0]
    waits_outside = one.identity.rank is not None and one.kind not in WAITS_FOR_RANKS and all(is_of_several(m.process.title) for m in waiting)
    if (distance(one) or one.kind is not Kind.CODE) and not waits_outside:
        return
    if one.identity.part is not None or ended(one) is not None or one.process.kind == "driver":
        return
    to_shown = {e.source for e in known if e.target in view.seen}
    for rank in waiting:
        if rank.key not in to_shown:
            evidence = f"of the processes that were shown only {one.identity.label} works: it {one.does()}"
            op = rank.place.op if rank.place is not None else ""
            yield Edge(source=rank.key, target=one.key, why=Why.ASSUMED, op=op, evidence=evidence, certainty=Certainty.POSSIBLE)


def _to_each_other(view: View, sources: Collection[str]) -> Iterator[Edge]:
    """Between two processes of which somebody says so, where each of them waits for something outside of itself."""
    two = [s for s in view if s.threads and not s.is_idle]
    told = next((r.text for s in two for r in s.process.remarks if r.kind == "mutual"), None)
    if told is None or len(two) != 2 or not all(distance(s) or _exchanges(s) for s in two) or any(s.key in sources for s in two):
        return
    for one, other in (two, two[::-1]):
        why = Why.CALL if one.kind in (Kind.RAY_GET, Kind.RAY_WAIT) else Why.SOCKET
        op = one.place.op if one.place is not None else ""
        yield Edge(source=one.key, target=other.key, why=why, op=op, evidence=f"its writer says: {told[:120]}", certainty=Certainty.POSSIBLE)


HANDSHAKE = "the first messages of the engine"
"""Operation of the wait of a front end and a core of an engine for each other."""


def _at_handshakes(view: View) -> Iterator[Edge]:
    """Between a front end that waits for its cores to start, and cores that have greeted it and wait for the answer."""
    for sides in HANDSHAKES:
        fronts, cores = ([s for s in view if s.place is not None and _passes(s.place, spots)] for spots in sides)
        for one, other in ((a, b) for front in fronts for core in cores for a, b in ((front, core), (core, front))):
            evidence = f"{other.identity.label} {other.does()}, for the other side"
            yield Edge(source=one.key, target=other.key, why=Why.COLLECTIVE, op=HANDSHAKE, evidence=evidence, certainty=Certainty.POSSIBLE)


def _passes(place: Place, spots: tuple[Spot, ...]) -> bool:
    return any(spot_of(spots, function, file) is not None for function, file, _ in place.path)


def _exchanges(one: Seen) -> bool:
    """Does it send or receive in a function of its own, as that one's name says?"""
    return one.telling is not None and moves_data(one.telling)


def _to_the_ended(worlds: Sequence[World], sources: Collection[str]) -> Iterator[Edge]:
    """From the ranks of a world, wherever they stand, to one that ended with an error: a run needs all of its ranks."""
    for world in worlds:
        gone = [(m, said) for m in world.members if (said := ended(m)) is not None]
        for one in world.members if gone else ():
            if one.key not in sources and ended(one) is None and not one.is_idle:
                end, said = gone[0]
                evidence = f"{end.identity.label} ended with an error: {said.text[:80]}"
                yield Edge(source=one.key, target=end.key, why=Why.ASSUMED, op="its ranks", evidence=evidence, certainty=Certainty.POSSIBLE)


def distance(one: Seen) -> int:
    """0 for one that waits for nobody outside, as far as its stack tells."""
    thread = waiting_thread(one)
    return DISTANCE.get(thread.place.kind, 0) if thread is not None else 0
