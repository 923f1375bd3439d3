"""RRD107 rank died

Story
    A rank was killed (out of memory, a node lost) or died and was restarted; the others wait in a rendezvous or
    collective for the process that is gone.

Evidence
    Ray's actor table says DEAD or counts restarts; the world is one rank short; a file holds the error with which a rank
    ended, or a tool found no such process.

Remedy
    Find the first death; restart the whole group.

Not this when
    Nobody waits for the dead actor, or Ray killed it because its handle went away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ray_rl_debug import signatures
from ray_rl_debug.analyze.deaths import how_dead, how_ended
from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.ended import ended
from ray_rl_debug.analyze.kinds_of_places import WAITS_FOR_RANKS, Kind
from ray_rl_debug.analyze.nodes import NodeKind, kind_of
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.waits_ranks import is_waiting, split_by_site
from ray_rl_debug.model.report import Cause, Certainty, Evidence, Finding
from ray_rl_debug.model.snapshot import LogLine, RayActor
from ray_rl_debug.rules.counter_evidence import ras_culprits, ras_evidence
from ray_rl_debug.rules.dead_actors import waits_as_rank
from ray_rl_debug.rules.scene import Found, Scene, make_finding, stack_evidence, waiter_evidence, waits

ID = "RRD107"
NAME = "rank died"
CAUSE = Cause.RANK_DIED
_RESTART = "restart the whole group: a group that lost a rank cannot go on"
_REMEDY = ("look for the first death: the worker's log, dmesg (OOM killer, Xid), the node's memory", _RESTART)


def detect(scene: Scene) -> Iterator[Found]:
    """Roots that are dead actors or missing ranks of a world."""
    for root in scene.graph.roots:
        node = root.nodes[0]
        actor = scene.actor(node)
        is_dead = actor is not None and actor.state in ("DEAD", "RESTARTING")
        if root.is_cycle or not (is_dead or kind_of(node) in (NodeKind.RANK, NodeKind.MACHINE)):
            continue
        waiting = [(e, scene.view.seen.get(e.source)) for e in scene.graph.into([node])]
        ranks = [w for e, w in waiting if w is not None and e.why is not Why.TOLD and (waits_as_rank(scene, w, node) or e.why is Why.SAME_CALL)]
        if not ranks:
            continue
        if actor is not None and is_dead:
            yield Found(finding=_dead(scene, actor, node, ranks), explains=frozenset([node]))
        elif not any(w.kind in (Kind.RENDEZVOUS, Kind.NEW_GROUP) for w in ranks) and not _is_only_one(scene, ranks) and not _differ(scene, ranks):
            dead = _dead_brother(scene, node, ranks)
            yield Found(finding=_missing(scene, node, ranks, dead), explains=frozenset([node, *([dead.key] if dead is not None else [])]))
    yield from _lost(scene)
    yield from _ended(scene)
    yield from _restarted(scene)
    yield from _failed(scene)
    yield from _defunct(scene)


def _is_only_one(scene: Scene, ranks: list[Seen]) -> bool:
    """Of files: was only this rank dumped of all? Then the others are missing because nobody looked at them."""
    return scene.view.by_hand and len(ranks) == 1 and not any(s.identity.world == ranks[0].identity.world and s is not ranks[0] for s in scene.view)


def _differ(scene: Scene, ranks: list[Seen]) -> bool:
    """Of files: do those that were dumped wait in different collectives? Then nobody needs a rank that was not dumped to explain them."""
    return scene.view.by_hand and len(split_by_site([r for r in ranks if is_waiting(r)])) > 1


def _dead(scene: Scene, actor: RayActor, node: str, ranks: list[Seen]) -> Finding:
    how = how_dead(actor)
    return make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.PROVEN if len(scene.worlds) == 1 and ranks[0].kind in WAITS_FOR_RANKS else Certainty.LIKELY,
        f"{scene.who(node).label} (pid {actor.pid}) is dead ({how}); {waits(len(ranks), 'rank')} for it in {ranks[0].inside()}",
        who=[scene.who(node)],
        evidence=[
            Evidence(kind="actor", where="Ray's actor table", text=f"{actor.class_name} {actor.state}: {actor.death or how}"),
            *waiter_evidence(ranks),
        ],
        remedy=_REMEDY,
        phase=ranks[0].phase,
    )


_DUMP_IT = "look for this rank: is its process alive, what is the last line of its log, what does py-spy dump say of it"


def _dead_brother(scene: Scene, node: str, ranks: list[Seen]) -> Seen | None:
    """The process that must have been the only missing rank: a dead child of the parent of all who wait, of their program; there is no other."""
    parents, programs = {r.process.ppid for r in ranks}, {r.process.comm for r in ranks}
    missing = [n for root in scene.graph.roots for n in root.nodes if kind_of(n) is NodeKind.RANK]
    if scene.view.by_hand or missing != [node] or len(parents) != 1 or parents == {None} or len(programs) != 1:
        return None
    dead = [s for s in scene.view if s.has_ended and s.process.ppid in parents and s.process.comm in programs]
    return dead[0] if len(dead) == 1 else None


def _missing(scene: Scene, node: str, ranks: list[Seen], dead: Seen | None) -> Finding:
    who = scene.who(node)
    if dead is not None:
        return make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.LIKELY,
            f"{dead.where()} has ended{how_ended(dead.process.exit_code)}; {waits(len(ranks), 'rank')} for {who.label}. It is most "
            f"likely that rank: no other child of their parent has ended",
            who=[dead.who()],
            evidence=[stack_evidence(dead), *waiter_evidence(ranks)],
            remedy=_REMEDY,
            phase=ranks[0].phase,
        )
    where = "did not answer" if kind_of(node) is NodeKind.MACHINE else "is in no file" if scene.view.by_hand else "was not seen on any node"
    return make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.POSSIBLE,
        f"{who.label} {where}; {waits(len(ranks), 'rank')} for it in {ranks[0].inside()}",
        who=[who],
        evidence=waiter_evidence(ranks),
        remedy=["look at that node and rank directly; take the snapshot again once it answers" if not scene.view.by_hand else _DUMP_IT],
        phase=ranks[0].phase,
    )


def _lost(scene: Scene) -> Iterator[Found]:
    """NCCL RAS has no answer from a rank that no node shows either, or whose process has ended."""
    for world in scene.joined.ras:
        gone = {key: r for r in ras_culprits(world) if world.result.kind == "lost" and _is_gone(scene, key := world.members.get(r, ""))}
        roots = [node for root in scene.graph.roots for node in root.nodes if node in gone]
        if not roots:
            continue
        ranks = [gone[node] for node in roots]
        dead = [scene.view.seen[node] for node in roots if node in scene.view.seen]
        left = f"; {len(world.result.ahead)} ranks are left" if world.result.ahead else ""
        ranks_of = f"rank {', '.join(map(str, ranks[:6]))} of {world.name}"
        said = f"{ranks_of} {world.result.text(ranks[0])}"
        if dead:
            said = f"{dead[0].where()}, {ranks_of}, has ended{how_ended(dead[0].process.exit_code)}"
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.PROVEN if len(dead) == len(roots) else world.certainty,
            f"{said}{left}",
            who=[scene.who(node) for node in roots],
            evidence=[*(stack_evidence(one) for one in dead[:3]), *ras_evidence(world, ranks)],
            remedy=_REMEDY,
        )
        yield Found(finding=finding, explains=frozenset(roots))


def _ended(scene: Scene) -> Iterator[Found]:
    """A rank that has ended and is still there: its parent has not taken note, or the kernel cannot end one of its threads."""
    for _, one in scene.process_roots():
        ranks = scene.waiting_ranks(one) if one.has_ended and one.identity.rank is not None else []
        if not ranks:
            continue
        kept = one.kept_by
        stays = f"; its thread {kept.tid} stays in the kernel, so its connections stay open" if kept is not None else ""
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.PROVEN,
            f"{one.where()} has ended{how_ended(one.process.exit_code)}{stays}; {waits(len(ranks), 'rank')} for it in {ranks[0].inside()}",
            who=[one.who()],
            evidence=[stack_evidence(one), *waiter_evidence(ranks)],
            remedy=[_KEPT, *_REMEDY] if kept is not None else _REMEDY,
            phase=ranks[0].phase,
        )
        yield Found(finding=finding, explains=frozenset([one.key]))


_KEPT = "cure the device, driver or file system that this thread waits for; no signal ends it, and sometimes only a restart of the machine does"


def _is_gone(scene: Scene, key: str) -> bool:
    one = scene.view.seen.get(key)
    return one.has_ended if one is not None else kind_of(key) is NodeKind.PID


_FATAL = "Fatal Python error"
"""After this line Python ends; after another error a program may go on."""


_ABORTED = f"{_FATAL}: Aborted"
_OF_THE_END = frozenset({"cpp-terminate", "python-aborted"})
"""Known lines that say no more than the end itself."""


def _tells_more(line: LogLine) -> bool:
    """Is it a known error that may be the reason of an end?"""
    signature = signatures.find(line.signature)
    return signature is None or signature.slug not in _OF_THE_END


def _failed(scene: Scene) -> Iterator[Found]:
    """Of files: a rank that reported an error and ended, while others wait in a collective."""
    knows_error = any(_tells_more(line) for n in scene.view.snapshot.nodes for line in n.log_lines)
    for one in scene.view if scene.view.by_hand else ():
        said = ended(one)
        waiting = [w for w in (scene.view.seen.get(e.source) for e in scene.graph.into([one.key])) if w is not None]
        if said is None or not (waiting or (said.text.startswith(_FATAL) and not knows_error)):
            continue  # an error that nobody waits for, or that is known, is a line of a log: another rule's
        # an abort has a reason of its own, which may be that of the hang
        sure = Certainty.LIKELY if waiting or not said.text.startswith(_ABORTED) else Certainty.POSSIBLE
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            sure,
            f"{one.where()} {'is gone' if said.kind == 'unread' else 'ended with an error'}: {said.text[:160]}"
            + (f"; {waits(len(waiting), 'rank')} for it" if waiting else ""),
            who=[one.who()],
            evidence=[
                Evidence(kind="log", where=one.where(), text=said.text[:300], source=f"{said.file}:{said.line}"),
                *([stack_evidence(one)] if one.threads else []),
                *waiter_evidence(waiting),
            ],
            remedy=[
                "read what this process printed before its end: it is the first failure",
                _RESTART,
            ],
        )
        yield Found(finding=finding, explains=frozenset([one.key]))


def _defunct(scene: Scene) -> Iterator[Found]:
    """Of listings: programs of Python that have ended, and whose parent has not taken note; all whose stacks stand beside them wait."""
    if not scene.view.by_hand:
        return
    gone = [s for s in scene.view if s.has_ended and _is_of_job(s) and s.process.kind != "ray-worker"]
    parents_of_gone = {s.process.ppid for s in gone}
    # A launcher that watches its children has nothing else to do, and has not seen yet that one ended.
    shown = [s for s in scene.view if s.threads and s.kind not in _WAITS_FOR_CHILDREN and not (s.is_idle and s.process.pid in parents_of_gone)]
    if shown:
        # A rank that waits for others waits for its brothers: children of one launcher.
        parents = {s.process.ppid for s in shown if s.kind in WAITS_FOR_RANKS} - {None}
        if len(parents) != 1 or not all(s.kind in WAITS_FOR_RANKS for s in shown):
            return
        gone = [s for s in gone if s.process.ppid in parents]
    living = [s for s in scene.view if not s.has_ended and (s.threads or _is_of_job(s))]
    if not gone or not living:
        return
    finding = make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.POSSIBLE,
        f"{gone[0].where()}{f' and {len(gone) - 1} more' if len(gone) > 1 else ''} {'has' if len(gone) == 1 else 'have'} ended (state Z) and nobody "
        f"has taken note; {len(living)} more {'lives' if len(living) == 1 else 'live'}, and may wait for what they should have done",
        who=[one.who() for one in gone[:8]],
        evidence=[stack_evidence(one) for one in gone[:3]],
        remedy=[
            "look why they ended: dmesg (out of memory), a full /dev/shm (df -h /dev/shm), the last lines of their log",
            "a child of a DataLoader: run with num_workers=0, or give the DataLoader a timeout, to see its error",
        ],
    )
    yield Found(finding=finding, explains=frozenset(one.key for one in gone))


def _is_of_job(one: Seen) -> bool:
    """Does a listing show a program of Python, or a part of an engine, whose title the kernel cuts?"""
    return "python" in one.process.title or one.identity.part is not None or _PART.match(one.process.title) is not None


_PART = re.compile(r"\[?(?:VLLM|sglang)::")


_WAITS_FOR_CHILDREN = frozenset({Kind.CHILD, Kind.DATALOADER, Kind.MP_QUEUE, Kind.QUEUE, Kind.EVENT, Kind.LOCK, Kind.JOIN, Kind.FUTURE})
"""What a process does whose own children, or whose brothers, have died."""


def _restarted(scene: Scene) -> Iterator[Found]:
    """A rank that Ray restarted: the new process knows nothing of the group the others wait in."""
    for _, one in scene.process_roots():
        if one.actor is None or one.actor.restarts == 0 or one.is_stopped or not (ranks := scene.waiting_ranks(one)):
            continue
        if not (one.is_idle or one.kind in (Kind.RENDEZVOUS, Kind.NEW_GROUP)):
            continue
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.LIKELY,
            f"{one.where()} died and was restarted ({one.actor.restarts}x); the other ranks wait for the process that is gone",
            who=[one.who()],
            evidence=[
                Evidence(kind="actor", where="Ray's actor table", text=f"{one.actor.class_name}: {one.actor.restarts} restarts"),
                *waiter_evidence(ranks),
            ],
            remedy=[
                "set max_restarts=0 for ranks: a restarted process cannot rejoin a process group",
                "look for the first death in the worker's log",
            ],
            phase=ranks[0].phase,
        )
        yield Found(finding=finding, explains=frozenset([one.key]))
