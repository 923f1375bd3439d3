"""RRD401 ring of Ray calls

Story
    Actors or tasks wait for each other's results in a ring; each is busy waiting, so none can answer. The smallest ring is
    an actor that waits for a call to itself. Or a rank calls one that waits in a collective, which in the end waits for
    the caller. Or a generator is held back until its caller reads on, who waits for something else.

Evidence
    The ObjectRefs each one waits for, and the queue each call stands in.

Remedy
    Break the ring: asynchronous calls, more concurrency, results passed forward.

Not this when
    One of them also waits for something outside the ring, or answers in another thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ray_rl_debug.analyze.edges import RAY_CALLS, Edge, Why
from ray_rl_debug.analyze.seen import Seen, describe_place
from ray_rl_debug.analyze.solve import DOUBT
from ray_rl_debug.analyze.waits_ranks import is_waiting
from ray_rl_debug.model.report import Cause, Certainty, Evidence, Finding
from ray_rl_debug.rules.scene import Found, Scene, listed, make_finding, stack_evidence

ID = "RRD401"
NAME = "ring of Ray calls"
CAUSE = Cause.RAY_GET_CYCLE

_SHOWN = 6
"""Waits that the evidence tells."""
_CALLS = RAY_CALLS | {Why.AWAITED_SOCKET, Why.AWAITED_CHILD, Why.MESSAGE, Why.DEAD_MEANWHILE, Why.INSIDE}

_BY_RAY = RAY_CALLS | {Why.DEAD_MEANWHILE}
"""A ring without any of these is none of Ray's."""


def detect(scene: Scene) -> Iterator[Found]:
    """Cycles of Ray waits alone, and those that close over collectives."""
    for root, members, edges in scene.cycles():
        calls = [e for e in edges if e.why in _CALLS]
        if members and len(calls) == len(edges) and any(e.why in _BY_RAY for e in edges):
            yield Found(finding=_finding(scene, members, calls), explains=frozenset(root.nodes))
        elif calls and _closes_over_collectives(scene, members, calls, edges):
            yield Found(
                finding=_over_collectives(scene, members, calls, edges), explains=frozenset(root.nodes), rests_on=frozenset(m.key for m in members)
            )


def _finding(scene: Scene, members: list[Seen], calls: list[Edge]) -> Finding:
    ring = " → ".join(_names(_in_turn(members, calls)))
    keepers = {m.key: m.name for m in members if _only_keeps(m, calls)}
    callers = {e.target for e in calls if e.source in keepers}
    # who only waits for such a place is its victim; whoever should make the further call is not
    awaited = ({m.key for m in members} & callers) - keepers.keys() or {m.key for m in members} - keepers.keys()
    # what further calls have to bring is the middle of the matter: it is told first
    told = dict.fromkeys((scene.who(e.source).label, e.evidence) for e in sorted(calls, key=lambda e: e.source not in keepers))
    summary = f"calls wait for each other in a ring: {ring}{_kept(keepers.values())}"
    return make_finding(
        ID,
        NAME,
        CAUSE,
        max((e.certainty for e in calls), key=lambda c: DOUBT[c]),
        summary if len(members) > 1 else f"{members[0].where()} waits for a call to itself: {ring}",
        who=[m.who() for m in {m.process_key: m for m in members if m.key in awaited}.values()],
        evidence=[Evidence(kind="task", where=where, text=text) for where, text in [*told][:_SHOWN]],
        remedy=_of_keepers(keepers.values()) if keepers else _OF_CALLS,
        phase=members[0].phase,
    )


_OF_CALLS = [
    "make one of the calls asynchronous, or give the actor max_concurrency > 1 so that it can answer while it waits",
    "pass results forward instead of calling back",
]


def _of_keepers(names: Iterable[str]) -> list[str]:
    return [
        f"find who should make that further call of {' or '.join(sorted(set(names)))}, and why it waits itself",
        "give the wait a time limit (asyncio.wait_for)",
    ]


def _kept(names: Iterable[str]) -> str:
    """What the places of the ring are that wait for nothing but further calls."""
    shown = sorted(set(names))
    return f"; {listed(shown)} only keep{'s' if len(shown) == 1 else ''} what further calls bring" if shown else ""


def _in_turn(members: list[Seen], calls: list[Edge]) -> list[Seen]:
    """One way round, from a member back to itself, as short as the first waits of each allow."""
    by_key = {m.key: m for m in members}
    following: dict[str, str] = {}
    for edge in calls:
        if edge.target in by_key and (edge.target != edge.source or len(members) == 1):
            following.setdefault(edge.source, edge.target)
    path, key = list[str](), members[0].key
    while key in following and key not in path:
        path.append(key)
        key = following[key]
    return [by_key[k] for k in [*path[path.index(key) :], key]] if key in path else [*members, members[0]]


def _only_keeps(one: Seen, calls: list[Edge]) -> bool:
    """Does it wait for nothing but further calls? Then it is the place where others wait for each other."""
    own = [e for e in calls if e.source == one.key]
    return one.lane_of is None and one.is_idle and bool(own) and all(e.why is Why.INSIDE for e in own)


def _names(ring: Sequence[Seen]) -> list[str]:
    """Of a lane with its method, of a thread with its name: parts of one actor may wait for each other. Of several that share a name each with its
    process.
    """
    names = {m.key: m.part_name for m in ring}
    shared = {name for name, count in Counter(names.values()).items() if count > 1}
    return [f"{names[m.key]} (pid {m.identity.pid})" if names[m.key] in shared else names[m.key] for m in ring]


def _closes_over_collectives(scene: Scene, members: list[Seen], calls: list[Edge], edges: list[Edge]) -> bool:
    """Do all calls of the ring stand in a queue behind calls that wait in collectives, and is there nothing else in it?

    A call that runs may be answered: by another thread than the one in the collective.
    """
    ranks = [scene.view.seen.get(e.source) for e in edges if e not in calls]
    return all(e.why is Why.QUEUED_CALL for e in calls) and all(one is not None and is_waiting(one) for one in ranks)


def _over_collectives(scene: Scene, members: list[Seen], calls: list[Edge], edges: list[Edge]) -> Finding:
    callers = [scene.view.seen[key] for key in dict.fromkeys(e.source for e in calls)]
    waits = [e for e in edges if e not in calls]
    first = scene.view.seen[calls[0].target]
    return make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.LIKELY,
        f"{callers[0].where()} {callers[0].at()} for a call to {first.name}, which {describe_place(first.place) if first.place else 'waits'} "
        "for ranks that wait for the caller",
        who=[one.who() for one in callers],
        evidence=[
            *(stack_evidence(one) for one in callers[:3]),
            *(Evidence(kind="task", where=scene.who(e.source).label, text=e.evidence) for e in calls[:3]),
            *(Evidence(kind="collective", where=scene.who(e.source).label, text=f"{e.words}: {e.evidence}") for e in waits[:3]),
        ],
        remedy=[
            "do not call a rank of a world from within a step: it can answer only after its collective",
            "pass what is needed as an argument of the step",
        ],
        phase=callers[0].phase,
    )
