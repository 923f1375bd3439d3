"""RRD106 start-up deadlock

Story
    Start-up, rendezvous or group creation that not every rank enters: one loads slowly, skips a new_group, or was never
    started.

Evidence
    Ranks in init_process_group or new_group, and where the absent ones are.

Remedy
    Create every group on every rank in the same order; see what keeps the absent rank.

Not this when
    The absent rank is dead (then it died), or its loading moves.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.places import Kind
from ray_rl_debug.analyze.view import Seen
from ray_rl_debug.detectors.scene import Found, Scene, judge, make_finding, proc_evidence, stack_evidence, waiter_evidence
from ray_rl_debug.report import Cause, Certainty, Finding

ID = "RRD106"
NAME = "start-up deadlock"
CAUSE = Cause.INIT_DEADLOCK


_INIT = (Kind.RENDEZVOUS, Kind.NEW_GROUP)


def detect(scene: Scene) -> Iterator[Found]:
    """Roots that other ranks wait for in a rendezvous or in the creation of a group."""
    for root, one in scene.process_roots():
        waiters = [w for w in scene.waiting_ranks(one) if w.kind in _INIT]
        if not waiters or one.is_stopped:
            continue
        verdict = judge(scene, one)
        if verdict.certainty is None:
            continue
        yield Found(finding=_finding([one], waiters, verdict.certainty, verdict.reason), explains=frozenset(root.nodes))
    for root, members, _ in scene.cycles():
        waiting = [m for m in members if m.kind in _INIT]
        rest = [m for m in members if m.kind not in _INIT]
        if waiting and rest and all(r.kind is Kind.COLLECTIVE for r in rest):
            reason = "they are past what the others still create"
            yield Found(finding=_finding(rest, waiting, Certainty.LIKELY, reason), explains=frozenset(root.nodes))
    for root in scene.graph.roots:
        node = root.nodes[0]
        ranks = [w for w in (scene.view.seen.get(e.source) for e in scene.graph.into([node])) if w is not None and w.kind in _INIT]
        if node.startswith(("rank:", "node:")) and ranks:
            yield Found(finding=_unseen(scene, node, ranks), explains=frozenset([node]))


def _finding(absent: list[Seen], waiters: list[Seen], certainty: Certainty, reason: str) -> Finding:
    op = waiters[0].place.op if waiters[0].place else "init_process_group"
    labels = ", ".join(a.identity.label for a in absent[:4])
    return make_finding(
        ID,
        NAME,
        CAUSE,
        certainty,
        f"{labels} {'has' if len(absent) == 1 else 'have'} not entered {op}: {absent[0].at()}; {len(waiters)} ranks wait there",
        who=[a.who() for a in absent],
        evidence=[*(stack_evidence(a) for a in absent[:3]), *waiter_evidence(waiters), proc_evidence(absent[0], reason)],
        remedy=[
            "every rank of the job must create every group, in the same order, member or not",
            "see what keeps this rank: model loading, a download, a lock, a build of kernels",
        ],
        phase="init",
    )


def _unseen(scene: Scene, node: str, ranks: list[Seen]) -> Finding:
    who = scene.who(node)
    return make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.POSSIBLE,
        f"{who.label} was not seen; {len(ranks)} ranks wait for it in {ranks[0].at()}",
        who=[who],
        evidence=waiter_evidence(ranks),
        remedy=["check that this rank was started: WORLD_SIZE, the scheduler's queue, the node's log"],
        phase="init",
    )
