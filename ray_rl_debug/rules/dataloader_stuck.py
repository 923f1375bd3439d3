"""RRD505 DataLoader stuck

Story
    A rank polls its DataLoader's queue; the worker process reads from a hung mount, waits for a lock it inherited,
    or is dead.

Evidence
    _try_get_data on the rank, and the stack of the worker.

Remedy
    Look at what the worker reads; set a timeout; try num_workers=0.

Not this when
    The worker waits for indexes (idle by design), or moves between samples. Only *possible* while it sleeps at one line
    and no earlier call shows how long an item takes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.library_places import iterates_over_data
from ray_rl_debug.analyze.pauses import sleeps
from ray_rl_debug.analyze.progress import is_awake
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.report import Cause, Certainty, Finding
from ray_rl_debug.rules.scene import Found, Scene, judge, make_finding, proc_evidence, stack_evidence, weaker

ID = "RRD505"
NAME = "DataLoader stuck"
CAUSE = Cause.DATALOADER_STUCK


def detect(scene: Scene) -> Iterator[Found]:
    """Processes that wait for DataLoader workers, with the worker that keeps them waiting."""
    for root, one in scene.process_roots():
        loaders = [e for e in scene.graph.into([one.key]) if e.why is Why.DATALOADER and e.source in scene.view.seen]
        owner = scene.view.seen[loaders[0].source] if loaders else one
        if owner is one and _waits_for_data(scene, one):
            yield Found(finding=_unfed(scene, one), explains=frozenset(root.nodes))
        if owner.kind is not Kind.DATALOADER:
            continue
        verdict = judge(scene, owner)
        if verdict.certainty is None or (owner is not one and _naps(one)):
            continue
        certainty = weaker(verdict.certainty, Certainty.LIKELY)
        if owner is not one and sleeps(one) and scene.usual_s(owner) is None:  # an item that takes its time, for all that is known
            certainty = weaker(certainty, judge(scene, one).certainty or certainty)
        stuck = (
            f"; its worker {f'pid {one.process.pid}' if one.process.pid else one.identity.label} {one.at()}"
            if owner is not one
            else "; no worker process was seen working"
        )
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            certainty,
            f"{owner.where()} waits for its DataLoader{stuck}",
            who=[owner.who()] if owner is one else [owner.who(), one.who()],
            evidence=[stack_evidence(owner)] if owner is one else [stack_evidence(owner), stack_evidence(one)],
            remedy=[
                "look at what the worker reads: a hung mount, a lock taken before the fork, a dead queue",
                "give the DataLoader a timeout; run with num_workers=0 to see its error",
            ],
            phase=owner.phase,
        )
        yield Found(finding=finding, explains=frozenset([*root.nodes, owner.key]))


def _waits_for_data(scene: Scene, one: Seen) -> bool:
    """Of files: does it wait, in an iterator over a data set, for what a thread or child that was not shown should load?"""
    thread = one.telling
    if not scene.view.by_hand or thread is None or one.followed is not None or thread.place.own is None:
        return False
    alone = not any(t.score > 0 for t in one.threads if t is not thread)
    return alone and thread.place.kind in _FED and iterates_over_data(thread.frames[thread.place.own])


_FED = frozenset({Kind.QUEUE, Kind.EVENT, Kind.MP_QUEUE, Kind.FUTURE})


def _unfed(scene: Scene, one: Seen) -> Finding:
    return make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.POSSIBLE,
        f"{one.where()} {one.does()}: it waits for its next piece of data, and whoever loads it was not dumped",
        who=[one.who()],
        evidence=[stack_evidence(one), proc_evidence(one, scene.reason(one))],
        remedy=[
            "dump all threads and children of it: the one that loads is in a read, at a lock, or gone",
            "run with no loading in the background (num_workers=0): the error or the slow read then shows in this stack",
        ],
        phase="data",
    )


def _naps(one: Seen) -> bool:
    """Sleeps again and again, for moments: it prepares item after item."""
    return one.place is not None and one.place.timed and is_awake(one.process, one.telling.kernel if one.telling else None)
