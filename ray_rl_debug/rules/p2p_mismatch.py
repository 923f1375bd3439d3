"""RRD105 point-to-point mismatch

Story
    Pipeline neighbours do not agree who sends: both receive first, or one sends a micro-batch less and goes on to a
    collective.

Evidence
    The rank that each recv or send names, from torch's own locals, and where that rank is.

Remedy
    Pair sends and receives; check micro-batch counts and shapes.

Not this when
    The named rank is busy or blocked in its own code: then that is the root. Only *possible* if the peer was not dumped.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.nodes import NodeKind, kind_of
from ray_rl_debug.analyze.roots import Root
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.waits_flight import name_group
from ray_rl_debug.model.report import Cause, Certainty, Evidence
from ray_rl_debug.rules.counter_evidence import flight_troubles, group_evidence, nodes_of, whos
from ray_rl_debug.rules.scene import Found, Scene, listed, make_finding, stack_evidence

ID = "RRD105"
NAME = "point-to-point mismatch"
CAUSE = Cause.P2P_MISMATCH


def detect(scene: Scene) -> Iterator[Found]:
    """Cycles that contain a recv or send: who does not send what is waited for."""
    yield from _by_dumps(scene)
    yield from _unanswered(scene)
    for root, members, edges in scene.cycles():
        p2p = {m.key for m in members if m.kind is Kind.P2P}
        directed = [e for e in edges if e.source in p2p and e.why is Why.P2P]
        if not directed:
            yield from _unpaired(scene, root, members, [e for e in edges if e.source in p2p and e.why is Why.RECEIVERS])
            continue
        culprits = _culprits(directed, p2p)
        if not p2p.intersection(culprits) and _most_have_met(scene, root):
            # most are in collectives without it: the one that receives may as well be the one that went another way
            culprits = sorted({*culprits, *(e.source for e in directed if e.target in culprits)})
        who = [scene.view.seen[k] for k in culprits]
        waiters = [m for m in members if m.key not in culprits]
        # whose peer is not known may wait for somebody else than these
        is_known = p2p <= {e.source for e in directed} and all(e.certainty is not Certainty.POSSIBLE for e in directed)
        sure = Certainty.LIKELY if is_known else Certainty.POSSIBLE
        # containers all have a pid 1: there the machine tells them apart
        names = [w.identity.label for w in who] if len({w.identity.label for w in who}) == len(who) else [w.where() for w in who]
        labels = listed(names)
        said = (
            f"{labels} wait for each other: " + "; ".join(f"{name} {w.does()}" for name, w in zip(names[:2], who, strict=False))
            if len(who) > 1
            else f"{labels} does not answer a {directed[0].words}: it {who[0].does()}"
        )
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            sure,
            said,
            who=[w.who() for w in who],
            evidence=[
                *(stack_evidence(w) for w in who[:3]),
                *_of_edges(scene, directed),
            ],
            remedy=[
                "pair every send with a recv in the same order on both stages; of two neighbours one must send first",
                "check the number of micro-batches and the shapes that each stage expects",
                f"{len(waiters)} other rank{'s wait' if len(waiters) > 1 else ' waits'} only because of this"
                if waiters
                else "no other rank is involved",
            ],
            phase=who[0].phase,
        )
        yield Found(finding=finding, explains=frozenset(root.nodes))


def _most_have_met(scene: Scene, root: Root) -> bool:
    """Are more ranks of a ring, and of those that wait for it, in collectives than in sends and receives, and are they all of their world?"""
    ranks = {n for n in (*root.nodes, *root.waiters) if n in scene.view.seen and scene.view.seen[n].kind in (Kind.COLLECTIVE, Kind.P2P)}
    world = next((w for w in scene.worlds if root.nodes[0] in {m.key for m in w.members}), None)
    meet = sum(scene.view.seen[n].kind is Kind.COLLECTIVE for n in ranks)
    return world is not None and world.size == len(world.members) == len(ranks) and meet > len(ranks) - meet


def _of_edges(scene: Scene, edges: list[Edge]) -> list[Evidence]:
    """What is known of the partner of each."""
    return [Evidence(kind="collective", where=scene.who(e.source).label, text=e.evidence) for e in edges[:4]]


def _unpaired(scene: Scene, root: Root, members: list[Seen], edges: list[Edge]) -> Iterator[Found]:
    """Ranks in sends and receives that do not tell their peers, while all others wait in a collective: the smaller side went another way."""
    pair = [m for m in members if m.key in {e.source for e in edges}]
    meet = [m for m in members if m not in pair]
    if not pair or not meet:
        return
    who = [*pair, *meet] if len(pair) == len(meet) else min(pair, meet, key=len)
    labels = listed([m.identity.label for m in pair])
    finding = make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.LIKELY if all(e.certainty is not Certainty.POSSIBLE for e in edges) else Certainty.POSSIBLE,
        f"{labels} {pair[0].does() if len(pair) == 1 else pair[0].they()}, and nobody is left to pair: {meet[0].identity.label} {meet[0].does()}",
        who=[w.who() for w in who],
        evidence=[
            *(stack_evidence(w) for w in (*pair[:2], meet[0])),
            *_of_edges(scene, edges),
        ],
        remedy=["check the number of micro-batches that each stage expects: one side makes a send or recv more than the other"],
        phase=who[0].phase,
    )
    yield Found(finding=finding, explains=frozenset(root.nodes))


def _unanswered(scene: Scene) -> Iterator[Found]:
    """Sends and receives of ranks whose peers nobody dumped."""
    for root in scene.graph.roots:
        node = root.nodes[0]
        waiters = [scene.view.seen[e.source] for e in scene.graph.into([node]) if e.why is Why.P2P and e.source in scene.view.seen]
        if kind_of(node) is not NodeKind.ABSENT or not waiters:
            continue
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.POSSIBLE,
            f"{waiters[0].where()} {waiters[0].does()}, and its peer was not dumped: it does not answer, or the two do not pair up",
            who=[w.who() for w in waiters],
            evidence=[stack_evidence(w) for w in waiters[:3]],
            remedy=[
                "dump the rank at the other end, and compare which sends and receives each of the two has made",
                "the first send or recv between two ranks sets up a communicator of its own: both must get there",
            ],
            phase=waiters[0].phase,
        )
        yield Found(finding=finding, explains=frozenset([*root.nodes, *(w.key for w in waiters)]))


def _culprits(directed: list[Edge], p2p: set[str]) -> list[str]:
    """The end of the chain of receives when it leaves point-to-point calls, else the ring itself."""
    ends = sorted({e.target for e in directed if e.target not in p2p})
    if ends:
        return ends
    following = {e.source: e.target for e in directed}
    node = next(iter(sorted(following)))
    path: list[str] = []
    while node in following and node not in path:
        path.append(node)
        node = following[node]
    return sorted(path[path.index(node) :]) if node in path else sorted(p2p)


def _by_dumps(scene: Scene) -> Iterator[Found]:
    """Flight Recorder: a ring of sends and receives, or a partner that waits in a collective instead."""
    for world, group in flight_troubles(scene, ("p2p",)):
        ring = set(group.culprits) <= set(group.waiting)
        if not ring and not group.elsewhere:
            continue
        labels = listed([world.label(r) for r in group.culprits], 4)
        doing = "wait for each other" if ring else f"went on to a collective, and nobody answers {group.op}"
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            world.certainty(group),
            f"{labels} {doing} in {name_group(group)}",
            who=whos(scene, world, group.culprits),
            evidence=group_evidence(world, group),
            remedy=[
                "pair every send with a recv in the same order on both stages; of two neighbours one must send first",
                "check the number of micro-batches and the shapes that each stage expects",
            ],
        )
        yield Found(finding=finding, explains=nodes_of(world, group.culprits))
