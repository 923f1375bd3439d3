"""RRD106 start-up deadlock

Story
    Start-up, rendezvous or group creation that not every rank enters: one loads slowly, skips a new_group, or was never
    started. Or its members do not agree on its size.

Evidence
    Ranks in init_process_group or new_group, and where the absent ones are; rank and size as each member holds them.

Remedy
    Create every group on every rank in the same order; find what holds the absent rank up.

Not this when
    The absent rank is dead (then see RRD107), or its loading makes progress.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.nodes import NodeKind, kind_of
from ray_rl_debug.analyze.places import STORE_KEY
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.solve import Outlook
from ray_rl_debug.analyze.waits_assumed import HANDSHAKE
from ray_rl_debug.analyze.waits_launchers import OTHER_NODES
from ray_rl_debug.analyze.waits_sizes import Disagreement, find_disagreements
from ray_rl_debug.model.report import Cause, Certainty, Evidence, Finding
from ray_rl_debug.rules.placed_ranks import is_minority
from ray_rl_debug.rules.scene import Found, Scene, listed, make_finding, proc_evidence, stack_evidence, waiter_evidence, waits

ID = "RRD106"
NAME = "start-up deadlock"
CAUSE = Cause.INIT_DEADLOCK


_INIT = (Kind.RENDEZVOUS, Kind.NEW_GROUP)


def detect(scene: Scene) -> Iterator[Found]:
    """Roots that other ranks wait for in a rendezvous or in the creation of a group; ranks that do not agree how many they are."""
    disagreements = find_disagreements(scene.view)
    odd = {claim.one.key for found in disagreements for claim in found.odd}
    for found in disagreements:
        yield Found(finding=_sizes(found), explains=frozenset(claim.one.key for claim in found.odd))
    for root, one in scene.process_roots():
        if one.key in odd:
            continue
        waiters = [w for w in scene.waiting_ranks(one) if w.kind in _INIT]
        if not waiters or one.is_stopped:
            continue
        yield Found(finding=_finding([one], waiters, Certainty.LIKELY, scene.reason(one)), explains=frozenset(root.nodes))
    for root, members, edges in scene.cycles():
        if edges and all(e.op == HANDSHAKE for e in edges):
            yield Found(finding=_handshake(members), explains=frozenset(root.nodes))
            continue
        waiting = [m for m in members if _sets_up(m)]
        rest = [m for m in members if not _sets_up(m)]
        if waiting and rest and all(r.kind is Kind.COLLECTIVE for r in rest):
            few, many = (rest, waiting) if len(rest) <= len(waiting) else (waiting, rest)
            reason = (
                "they have already passed the group that the others still create"
                if few is rest
                else "they still create a group, and the others went on without it"
            )
            sure = Certainty.LIKELY if is_minority(scene, few, many) else Certainty.POSSIBLE
            yield Found(finding=_finding(few, many, sure, reason), explains=frozenset(root.nodes))
    for root in scene.graph.roots:
        node = root.nodes[0]
        if node != OTHER_NODES and kind_of(node) not in (NodeKind.RANK, NodeKind.MACHINE, NodeKind.ABSENT):
            continue
        ranks = [w for w in (scene.view.seen.get(e.source) for e in scene.graph.into([node])) if w is not None and w.kind in _INIT]
        if node == OTHER_NODES:
            yield Found(finding=_launchers(scene, ranks), explains=frozenset([node]))
        elif ranks:
            yield Found(finding=_unseen(scene, node, ranks), explains=frozenset([node]))


def _sets_up(one: Seen) -> bool:
    """Does it wait while a group is made? A key of the store is read at any time."""
    return one.kind in _INIT and (one.place is None or one.place.op != STORE_KEY)


def _finding(absent: list[Seen], waiters: list[Seen], certainty: Certainty, reason: str) -> Finding:
    op = waiters[0].place.op if waiters[0].place else "init_process_group"
    labels = listed([a.identity.label for a in absent], 4)
    first = "it" if len(absent) == 1 else absent[0].identity.label
    return make_finding(
        ID,
        NAME,
        CAUSE,
        certainty,
        f"{labels} {'has' if len(absent) == 1 else 'have'} not entered {op}: {first} {absent[0].does()}; {waits(len(waiters), 'rank')} there",
        who=[a.who() for a in absent],
        evidence=[*(stack_evidence(a) for a in absent[:3]), *waiter_evidence(waiters), proc_evidence(absent[0], reason)],
        remedy=[
            "every rank of the job must create every group, in the same order, member or not",
            "find what holds this rank up: model loading, a download, a lock, a build of kernels",
        ],
        phase=_phase(waiters[0]),
    )


def _sizes(found: Disagreement) -> Finding:
    numbers = (Evidence(kind="stack", where=c.one.where(), text=f"rank {c.rank} of {c.size}, by torch's own variables") for c in found.claims[:8])
    return make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.LIKELY,
        f"the ranks of one process group do not agree {'where they meet' if found.is_of_places else 'how many they are'}: {found.text()}; "
        "it can never be complete",
        who=[c.one.who() for c in found.odd],
        evidence=[*numbers, *(stack_evidence(c.one) for c in found.odd[:2])],
        remedy=[
            "compute size, address and port in one place and hand them to every member",
            "compare the size with the number of processes that are really asked to join: engines times their tensor parallel size, plus the trainer",
        ],
        phase=_phase(found.odd[0].one),
    )


def _phase(rank: Seen) -> str:
    """Groups are made at the start, and once more for the weights."""
    return "weight_sync" if rank.phase == "weight_sync" else "init"


def _launchers(scene: Scene, waiting: list[Seen]) -> Finding:
    told = scene.graph.into([OTHER_NODES])[0].evidence
    return make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.LIKELY,
        f"{waiting[0].where()} is in the rendezvous of the nodes, and starts no rank before the others come: {told}",
        who=[scene.who(OTHER_NODES)],
        evidence=[stack_evidence(w) for w in waiting[:3]],
        remedy=[
            "start the launcher on every node, with the same --rdzv-id, --rdzv-endpoint and --nnodes",
            "try from each node whether the endpoint answers: nc -vz HOST PORT",
        ],
        phase="init",
    )


def _handshake(sides: list[Seen]) -> Finding:
    """The front end and a core of an engine, each at its end of a connection on which nothing arrives."""
    said = ", and ".join(f"{one.identity.label} {one.does()}" for one in sides)
    return make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.POSSIBLE,
        f"the two sides of an engine's start wait for each other's message: {said}",
        who=[one.who() for one in sides],
        evidence=[stack_evidence(one) for one in sides[:4]],
        remedy=[
            "compare the address and port of the handshake on both sides, and try the one from the other's machine: nc -vz HOST PORT",
            "see whether both were told the same number of cores, and run the same version",
        ],
        phase="init",
    )


def _unseen(scene: Scene, node: str, ranks: list[Seen]) -> Finding:
    who = scene.who(node)
    nobody_comes = scene.graph.hope(node) is Outlook.STANDS
    return make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.LIKELY,
        f"{waits(len(ranks), 'rank')} in {ranks[0].inside()}; whoever has not come is among {who.label}"
        if kind_of(node) is NodeKind.ABSENT
        else f"{who.label} was not seen; {waits(len(ranks), 'rank')} for it in {ranks[0].inside()}",
        who=[who],
        evidence=[*waiter_evidence(ranks), *(_NOBODY_COMES if nobody_comes else ())],
        remedy=["check that this rank was started: WORLD_SIZE, the scheduler's queue, the node's log"],
        phase="init",
    )


_NOBODY_COMES = (Evidence(kind="task", where="Ray's tables", text="no actor or placement group of the job is pending; the drivers only wait"),)
