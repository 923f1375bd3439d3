"""Processes that wait for each other in a ring by other means than Ray calls and collectives. Two rules take their share of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ray_rl_debug.analyze.edges import RAY_CALLS, Edge, Why
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.pauses import lacks_stack, starved_loops
from ray_rl_debug.analyze.roots import Root
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.solve import Wait
from ray_rl_debug.analyze.waiting import as_waits
from ray_rl_debug.analyze.waits_ranks import is_waiting
from ray_rl_debug.analyze.waits_semaphores import MEETING
from ray_rl_debug.model.report import Cause, Certainty, Evidence
from ray_rl_debug.rules.scene import Found, Scene, make_finding, stack_evidence

_SHOWN = 3
"""Members of a ring whose places the summary tells."""
_OF_PIPES = frozenset({Why.CHILD, Why.AWAITED_CHILD, Why.PIPE})
_WHICH = frozenset({Why.CHILD_QUEUE, Why.PIPE, Why.GIVERS, Why.POLL})
"""Waits for one of several of which it may not be known which; any other wait for several is for whoever of them is the first."""
_AWAITED = frozenset({Why.AWAITED_SOCKET, Why.AWAITED_CHILD})
_AT_CONNECTIONS = _AWAITED | {Why.SOCKET}
_OF_CALLS = RAY_CALLS | _AWAITED | {Why.DEAD_MEANWHILE}


_LOCKS = frozenset({Why.FILE_LOCK, Why.TRIED_LOCK, Why.SEMAPHORE, Why.GIVERS})
_OF_MESSAGES = _AT_CONNECTIONS | {Why.MESSAGE, Why.CHILD_QUEUE}


class Ring(msgspec.Struct, frozen=True, kw_only=True):
    """Members that all stand still, and the edges that close the ring."""

    root: Root
    members: tuple[Seen, ...]
    edges: tuple[Edge, ...]
    certainty: Certainty
    needed: frozenset[str]
    """Members without whom there would be no ring: whoever is one of several that might end a wait may not be the one."""

    @property
    def accused(self) -> tuple[Seen, ...]:
        """Those that wait for something of their own, and no rank that only waits in a collective, unless it does so inside of a file lock.

        Of a barrier whoever has not come is accused, though it may rest, and not those who wait there. Who has work left that its own pool of
        threads has no room for is accused alone.
        """
        if starved := tuple(m for m in self.members if starved_loops(m)):
            return starved
        if any(is_waiting(m) for m in self.members):
            keys = _holders(self.edges)
            holders = tuple(m for m in self.members if m.key in keys)
            return holders if any(is_waiting(m) for m in holders) else tuple(m for m in self.members if not is_waiting(m) and not m.is_idle)
        met = {e.source for e in self.edges if e.op == MEETING}
        absent = {e.target for e in self.edges if e.op == MEETING} - met
        awake = tuple(m for m in self.members if (m.key in absent or not m.is_idle) and not (absent and m.key in met))
        awake = tuple(m for m in awake or self.members if m.key in self.needed) or awake or self.members
        return tuple(m for m in awake if m.threads) or awake

    @property
    def is_of_pipes(self) -> bool:
        """Do a process and its children wait for each other's end, input or output, with no lock between them?"""
        return all(e.why in _OF_PIPES for e in self.edges)


def remedy_of(ring: Ring) -> list[str]:
    """What to do of a ring, by what its members wait for."""
    whys = {e.why for e in ring.edges}
    return [
        *(["take locks in the same order everywhere, and none while waiting for another process"] if whys & _LOCKS else []),
        *(["see which of them should send next: a message was lost, or was never sent"] if whys & _OF_MESSAGES else []),
        *(["close the pipe ends that a process does not use"] if Why.PIPE in whys else []),
        "give waits a time limit",
    ]


def _is_doubtful_tie(edges: Sequence[Edge]) -> bool:
    """Do ranks alone wait for each other, and may some have met after all? The rules of collectives tell both sides."""
    return all(e.why in (Why.COLLECTIVE, Why.P2P) for e in edges) and any(e.certainty is Certainty.POSSIBLE for e in edges)


def rings(scene: Scene) -> Iterator[Ring]:
    """Rings of locks on files, pipes, children and sockets, as sure as their weakest part."""
    for root, members, edges in scene.cycles():
        if len(members) < 2 or len(members) < len(root.nodes):
            continue
        holders = _holders(edges)
        free = [m for m in members if m.key not in holders]
        if free and all(is_waiting(m) for m in free):
            continue  # a ring of ranks: other rules'
        # by coroutines, and no call of Ray among them; a coroutine and a thread that both read may do so by design if nobody waits for them
        awaited = all(e.why in _AWAITED for e in edges) or (_is_asked(root, members) and all(e.why in _AT_CONNECTIONS for e in edges))
        awaited = awaited or all(e.why in _OF_PIPES for e in edges)
        if any(e.why in _OF_CALLS and not awaited for e in edges) or _is_doubtful_tie(edges):
            continue
        certainty = Certainty.PROVEN if all(e.certainty is Certainty.PROVEN for e in edges) else Certainty.LIKELY
        if any(e.why in _AWAITED for e in edges) and not all(e.why in _AWAITED for e in edges):
            certainty = Certainty.LIKELY
        if any(_has_hands_free(m) or lacks_stack(scene.view, m) or _is_half_read(m) for m in members) or any(
            e.certainty is Certainty.POSSIBLE or _holds_copies(scene, e) for e in edges
        ):
            certainty = Certainty.POSSIBLE
        needed = _needed(root, edges)
        if not needed and all(e.why is Why.POLL for e in edges):
            certainty = Certainty.POSSIBLE  # each looks for what any other might bring: whoever should may not have been seen
        yield Ring(root=root, members=tuple(members), edges=tuple(edges), certainty=certainty, needed=needed)


def _is_half_read(one: Seen) -> bool:
    """Is not known what one of its coroutines does: read once alone, or ready to go on while nothing tells why its loop does not?

    Whether its loop starves, and is to blame for all, that one may tell.
    """
    once = {t.stable is None for t in one.process.async_tasks or ()}
    ready = (t.awaited is None or (t.awaited.kind == "ready" and t.stable is True) for t in one.process.async_tasks or ())
    return len(once) > 1 or any(ready)


def _is_asked(root: Root, members: Sequence[Seen]) -> bool:
    """Does somebody else wait for them, or does a thread of theirs have a request in hand?"""
    return bool(root.waiters) or any(m.lane_of is not None and m.telling is not None and m.telling.answers for m in members)


def _needed(root: Root, edges: Sequence[Edge]) -> frozenset[str]:
    """Members for whom somebody waits and for nobody else, or without whom the others would be no ring."""
    waits = list(as_waits(edges))
    alone = {e.target for e in edges if e.why not in _WHICH} | {w.any_of[0] for w in waits if len(w.any_of) == 1}
    return frozenset(n for n in root.nodes if n in alone or not _is_ring({*root.nodes} - {n}, waits))


def _is_ring(nodes: set[str], waits: Sequence[Wait]) -> bool:
    """Does the way along these waits come back to where it was, by these nodes alone?"""
    left = set(nodes)
    while left:
        stay = {w.waiter for w in waits if w.waiter in left and left.intersection(w.any_of)}
        if stay == left:
            return True
        left = stay
    return False


def ring_found(scene: Scene, ring: Ring, id: str, name: str, cause: Cause, remedy: Sequence[str]) -> Found:
    """What a rule says of a ring."""
    members, accused = ring.members, ring.accused
    # threads of one process that stand alike are told once
    alike = {(m.process_key, m.lane_of is None, m.at()): m for m in members}.values()
    shown = [_in_ring(m, is_long=len(alike) <= _SHOWN) for m in alike]
    said = " → ".join([*shown, _in_ring(members[0], is_long=False)])
    finding = make_finding(
        id,
        name,
        cause,
        ring.certainty,
        f"processes wait for each other in a ring: {said}{_lacks_threads(accused)}",
        who=[m.who() for m in {m.process_key: m for m in accused}.values()],
        evidence=[
            *(stack_evidence(m) for m in members[:4]),
            *(Evidence(kind="proc", where=scene.who(e.source).label, text=e.evidence) for e in ring.edges[:4]),
        ],
        remedy=remedy,
        phase=members[0].phase,
    )
    return Found(finding=finding, explains=frozenset(ring.root.nodes), rests_on=frozenset(m.key for m in ring.members))


def _in_ring(one: Seen, *, is_long: bool) -> str:
    """``actor (pid 12: waits in f)``; a file may tell no pid."""
    told = ": ".join([*([f"pid {one.process.pid}"] if one.process.pid else []), *([_at(one)] if is_long else [])])
    name = one.name if one.lane_of is None else one.part_name
    return f"{name} ({told})" if told else name


def _lacks_threads(accused: Sequence[Seen]) -> str:
    starved = next((m for m in accused if starved_loops(m)), None)
    return f"; work of {starved.name} waits for a free thread of its pool" if starved is not None else ""


def _at(one: Seen) -> str:
    """Of a process whose loop is idle, where its coroutines wait."""
    return f"a coroutine waits at {one.ends[0].at}" if one.is_idle and one.ends else one.at()


def thread_at_own_lock(scene: Scene, edge: Edge) -> SeenThread | None:
    """Of a server that waits in the ring itself: its thread that stands at a lock, when nobody but the waiting thread can hold it."""
    server = scene.view.seen.get(edge.target)
    if server is None or edge.why not in (Why.SOCKET, Why.AWAITED_SOCKET):
        return None
    own = [t for t in server.threads if t is not server.telling and t.place.path and not t.listens]
    if any(t.place.kind is not Kind.LOCK or (t.kernel is not None and t.kernel.state != "S") for t in own):
        return None
    return own[0] if own else None


def _holders(edges: Sequence[Edge]) -> frozenset[str]:
    return frozenset(e.target for e in edges if e.why is Why.FILE_LOCK)


def _holds_copies(scene: Scene, edge: Edge) -> bool:
    """Does it wait at a pipe of which several hold the other end? Children inherit copies: one that is gone may have been the one to use it."""
    if edge.why is not Why.PIPE:
        return False
    ends = [scene.view.seen[key] for key in (edge.source, edge.target) if key in scene.view.seen]
    lost_one = any(c.has_ended for one in ends for c in scene.view.children(one))
    return lost_one or sum(e.why is Why.PIPE and e.evidence == edge.evidence for e in scene.graph.out(edge.source)) > 1


def _has_hands_free(one: Seen) -> bool:
    """Does another thread of its own code work, which may give back what the ring waits for?"""
    return any(t is not one.telling and t.score > 0 and t.place.path and t.place.kind is Kind.CODE for t in one.threads)
