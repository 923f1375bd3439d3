"""RRD301 weight sync mismatch

Story
    Trainer ranks and some engines are in the weight update; one engine still generates, is idle, or thinks the update
    is over.

Evidence
    Ranks under update_weights, an absent rank outside it, its queued call. A rank that sends weights over a socket to which
    nobody is connected, while the engine that should receive them waits for its next piece of work. In stacks alone: a
    trainer in a group of the engine's library while all of the engine that was dumped rests; or an engine in the broadcast of an
    update, beside processes none of which sends.

Remedy
    Pause and drain the engine before the update.

Not this when
    The absent rank is itself inside the update, in its own code, or the group is still being made.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.engines import Engine, rests
from ray_rl_debug.analyze.frameworks import GROUPS_FOLDERS
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.report import Cause, Certainty, Evidence, Who
from ray_rl_debug.rules.known_error import lines_of
from ray_rl_debug.rules.scene import Found, Scene, make_finding, proc_evidence, stack_evidence, waiter_evidence, waits

ID = "RRD301"
NAME = "weight sync mismatch"
CAUSE = Cause.WEIGHT_SYNC_MISMATCH


_NOT_ASKED = [
    "send the update to every engine: nobody called this one (the list of engines is older than this engine, an off-by-one, a skipped branch)",
    "compare the size of the update group with the number of engines that are called",
]
_BUSY = [
    "abort or drain the rollouts of this engine before the update (pause, then update, then resume)",
    "let the generation loop look at its stop flag between steps, and bound the length of a request",
]


def detect(scene: Scene) -> Iterator[Found]:
    """Roots outside a weight update that ranks inside it wait for; senders whose receiver has given up."""
    yield from _unreceived(scene)
    if scene.view.by_hand:
        yield from _at_rest(scene)
        yield from _alone(scene)
        yield from _unsent(scene)
    for root, one in scene.process_roots():
        waiters = scene.waiting_ranks(one)
        syncing = [w for w in waiters if w.phase == "weight_sync" and w.kind not in (Kind.RENDEZVOUS, Kind.NEW_GROUP)]
        if not syncing or len(syncing) < len(waiters) or one.phase == "weight_sync" or one.is_stopped:
            continue
        queued = next((e for e in scene.graph.into([one.key]) if e.why is Why.QUEUED_CALL), None)
        evidence = [stack_evidence(one), *waiter_evidence(syncing)]
        if queued is not None:
            evidence.append(Evidence(kind="task", where=queued.source, text=queued.evidence))
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.LIKELY,
            f"{one.where()} has not joined the weight update: it {one.does()}; {waits(len(syncing), 'rank')} for it",
            who=[one.who()],
            evidence=evidence,
            remedy=_NOT_ASKED if one.is_idle and queued is None else _BUSY,
            phase="weight_sync",
        )
        yield Found(finding=finding, explains=frozenset(root.nodes))


def _at_rest(scene: Scene) -> Iterator[Found]:
    """Of files: a trainer in a group with an engine, of which every process that was dumped waits for its next piece of work."""
    parts = [s for s in scene.view if s.identity.part is not None and s.threads]
    if not parts or not all(s.is_idle for s in parts):
        return
    for one in scene.view:
        frames = one.telling.frames if one.telling is not None else ()
        is_partner = any(f"/{folder}" in f"/{f.file}" for f in frames for folder in GROUPS_FOLDERS)
        # torch's own broadcast of an update's weights: its group is not in the stack
        sends = one.phase == "weight_sync" and one.telling is not None and one.telling.place.op == "broadcast"
        if one.identity.part is not None or one.kind not in (Kind.COLLECTIVE, Kind.P2P) or not (is_partner or sends):
            continue
        group = "in a group with the engine" if is_partner else "in an update of weights"
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.POSSIBLE,
            f"{one.where()} {one.does()}, {group}; {parts[0].where()} is idle: it has not joined, or its side has failed",
            who=[s.who() for s in parts[:4]],
            evidence=[stack_evidence(one), stack_evidence(parts[0])],
            remedy=[
                "look in the engine's log for the request of the update, and for an error behind it: the trainer does not learn of it",
                *_NOT_ASKED[1:],
            ],
            phase="weight_sync",
        )
        yield Found(finding=finding, explains=frozenset([one.key, *(s.key for s in parts)]))


def _alone(scene: Scene) -> Iterator[Found]:
    """Of files: only a trainer was dumped, and it sends weights by the library of an engine, of which no process was."""
    if any(_runs_engine(s) for s in scene.view if not _sends_by_engine(s)):
        return
    senders = [s for s in scene.view if _sends_by_engine(s)]
    if not senders or any(s.kind in (Kind.COLLECTIVE, Kind.P2P) for s in scene.view if s not in senders):
        return
    one = senders[0]
    finding = make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.POSSIBLE,
        f"{one.where()} {one.does()}, in a group with the engine, of which no process was dumped: its side has not joined, or has failed",
        who=[Who(label="the engine that should take the weights")],
        evidence=[stack_evidence(one)],
        remedy=["dump the engine's processes, and look in its log for the request of the update and an error behind it", *_NOT_ASKED[1:]],
        phase="weight_sync",
    )
    yield Found(finding=finding, explains=frozenset(s.key for s in senders))


def _sends_by_engine(one: Seen) -> bool:
    """Is it in a collective of an engine's library that a program of another kind has called?"""
    frames = one.telling.frames if one.telling is not None else ()
    at = [i for i, f in enumerate(frames) if any(f"/{folder}" in f"/{f.file}" for folder in GROUPS_FOLDERS)]
    outside = frames[at[-1] + 1 :] if at else ()
    return (
        one.identity.part is None
        and one.kind is Kind.COLLECTIVE
        and one.telling is not None
        and one.telling.place.op in _SENDS
        and bool(outside)
        and not any(f.file.startswith(_ENGINES) for f in outside)
    )


_SENDS = frozenset({"broadcast", "ncclBroadcast"})


def _unsent(scene: Scene) -> Iterator[Found]:
    """Of files: an engine in the broadcast of an update of weights, and beside it nobody who is in such a call."""
    syncing = [s for s in scene.view if s.phase == "weight_sync" and s.kind in (Kind.COLLECTIVE, Kind.P2P)]
    receivers = [s for s in syncing if s.telling is not None and s.telling.place.op == "broadcast" and _runs_engine(s)]
    others = [s for s in scene.view if s.threads and s not in receivers]
    if not receivers or not others or len(receivers) != len(syncing):
        return
    one, other = receivers[0], next((o for o in others if not o.is_idle), others[0])
    finding = make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.POSSIBLE,
        f"{one.where()} {one.does()}: it waits for weights, and no process that was dumped sends them; {other.where()} {other.does()}",
        who=[s.who() for s in receivers[:4]],
        evidence=[stack_evidence(one), stack_evidence(other)],
        remedy=["dump the rank that should send: it has failed, or was never told of this update", *_NOT_ASKED],
        phase="weight_sync",
    )
    yield Found(finding=finding, explains=frozenset(s.key for s in receivers))


def _runs_engine(one: Seen) -> bool:
    """Is it a part of an inference engine, or does such a part run in it?"""
    frames = one.telling.frames if one.telling is not None else ()
    return one.identity.part is not None or any(f.file.startswith(_ENGINES) for f in frames)


_ENGINES = tuple(sorted({f"{folder.partition('/')[0]}/" for folder in GROUPS_FOLDERS}))
"""The folders of the engines' libraries."""


def _unreceived(scene: Scene) -> Iterator[Found]:
    """Senders of weights to which no engine is connected, while the engine is at rest: its side of the update failed, or never began."""
    senders = {e.source for e in scene.graph.of(Why.WEIGHTS)}
    for one in scene.view if senders else ():
        edges = [e for e in scene.graph.out(one.key) if e.why is Why.WEIGHTS and e.target in scene.view.seen]
        receivers = [scene.view.seen[e.target] for e in edges]
        if not receivers or not all(rests(r) for r in receivers):
            continue
        served = [scene.view.seen[k] for e in scene.view.engines for k in e.servers if any(r.key in _parts(e) for r in receivers)]
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.LIKELY,
            f"{one.where()} sends weights, and {receivers[0].where()} receives none: it is idle, its side of the update failed or never began",
            who=[r.who() for r in receivers],
            evidence=[
                stack_evidence(one),
                Evidence(kind="socket", where=one.where(), text=edges[0].evidence),
                stack_evidence(receivers[0]),
                proc_evidence(one, scene.reason(one)),
                *(line for server in served for line in lines_of(server.process.log_lines, "vllm/worker-exception")),
            ],
            remedy=[
                "look for the first error of the update in the engine's log: the sender does not learn of it and waits forever",
                "give the transfer a time limit, and let a failed receiver answer with its error",
            ],
            phase="weight_sync",
        )
        yield Found(finding=finding, explains=frozenset(r.key for r in receivers), rests_on=frozenset([one.key]))


def _parts(engine: Engine) -> set[str]:
    return {*engine.cores, *engine.helpers, *(w for below in engine.workers.values() for w in below)}
