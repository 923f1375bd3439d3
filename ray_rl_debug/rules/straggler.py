"""RRD101 straggler

Story
    Most ranks of one world wait in a collective (or a driver in ray.get); one is busy or stuck in its own code.

Evidence
    The collective, the ranks that wait in it, and the innermost frames and the CPU time of the rank that has not come. From
    Flight Recorder dumps the number of the collective, from NCCL RAS the counts.

Remedy
    Read the stack of the absent rank first.

Not this when
    A better cause fits (I/O, a lock, a stop), the rank's stack moves, or its call is not overdue against earlier ones.
    Where NCCL's counts show it behind, it may wait for its own GPU: a kernel that does not end.
    Only *possible* for a quarter of an hour if it sleeps and its clock wakes it within five minutes, or if it computes: that may
    be a rare evaluation. A loop of one function is none where other ranks have been through the same and wait for this one.
    Only *possible* if it waits in ray.get for something that was not seen, and for the first seconds if the kernel does not
    show whether it only sleeps. Only *possible* for stacks from files, unless equal ones were taken some time apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from sys import modules

from ray_rl_debug.analyze.by_hand import stands_for
from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.ended import ended
from ray_rl_debug.analyze.handlers import lacks_setter
from ray_rl_debug.analyze.kinds_of_places import THREAD_WAITS, WAITS_FOR_RANKS, Kind
from ray_rl_debug.analyze.nodes import NodeKind, kind_of
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen, describe_place
from ray_rl_debug.analyze.waits_ray import calls_within
from ray_rl_debug.model.report import Cause, Certainty, Evidence
from ray_rl_debug.rules.at_gpu import REMEDY_GPU, at_own_gpu, waits_for_own_gpu
from ray_rl_debug.rules.counter_evidence import counted
from ray_rl_debug.rules.dead_actors import zombie_words
from ray_rl_debug.rules.scene import Found, Scene, make_finding, proc_evidence, stack_evidence, waiter_evidence, waits
from ray_rl_debug.rules.watchdog_evidence import found_in_accounts

ID = "RRD101"
NAME = "straggler"
RULE = modules[__name__]
_REMEDY_LOGS = (
    "read the log of this rank before the time-out: an exception, an early return, a longer step",
    "next time take its stack while the others wait: rayrl-debug watch does it before the watchdog ends the job",
)
_REMEDY_TIME = "give reward and tool code a time limit in a process of its own"
_REMEDY_OWN = ("read this stack first: a loop that does not end, a degenerate sample, a slow call", _REMEDY_TIME)
_REMEDY_UNSEEN = ("take the stacks of this rank: py-spy dump --pid, or rayrl-debug snapshot while it hangs", _REMEDY_TIME)
CAUSE = Cause.STRAGGLER


def _has_equals(scene: Scene, one: Seen) -> bool:
    """Do those who wait for `one` wait as much for others without a stack? Then nothing singles it out; nor where a file shows one that has ended."""
    if scene.view.by_hand and any(s.has_ended for s in scene.view):
        return True
    waiters = {e.source for e in scene.graph.into([one.key])}
    equals = [e for e in scene.graph.edges if e.source in waiters and e.target != one.key]
    return any(e.target in scene.view.seen and not scene.view.seen[e.target].threads for e in equals)


def _is_left_alone(scene: Scene, one: Seen) -> bool:
    """Is nobody left who could set the event that it waits for? In an actor of Ray a callback might, unless it is known that none is due."""
    return lacks_setter(one) and (
        one.process.kind != "ray-worker" or (one.core is not None and not one.core.owned and not calls_within(scene.view, one))
    )


def _ended_children(scene: Scene, one: Seen) -> list[Evidence]:
    """Of one that waits inside: its children that have ended, for whose answers a thread of it may have been there."""
    dead = [c for c in scene.view.children(one) if c.has_ended] if one.kind in THREAD_WAITS else []
    return [proc_evidence(c, f"a child of {one.identity.label}, and {zombie_words(c)}") for c in dead[:2]]


def _count(scene: Scene, waiters: Sequence[str]) -> int:
    """How many wait: a file may say of one stack that others have the same."""
    if not scene.view.by_hand:
        return len(waiters)
    return sum(stands_for(scene.view.seen[key].process) if key in scene.view.seen else 1 for key in waiters)


def _told(scene: Scene) -> Iterator[Found]:
    """Ranks, parts and machines of which a file says that they have not come, without their stacks."""
    for root in scene.graph.roots:
        node = root.nodes[0]
        told = [e for e in scene.graph.into([node]) if e.why is Why.TOLD and e.source in scene.view.seen]
        if kind_of(node) not in (NodeKind.RANK, NodeKind.NAMED) or not told:
            continue
        who = scene.who(node)
        waiters = [scene.view.seen[e.source] for e in told]
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.POSSIBLE,
            f"{who.label} {_is_elsewhere(waiters[0])}, as the file says; its stack is not shown"
            if not who.label.endswith("ranks")
            else f"{who.label} have not come to {waiters[0].where()}, which {waiters[0].does()}, as the file says; their stacks are not shown",
            who=[who],
            evidence=[
                *(Evidence(kind="log", where=who.label, text=text) for text in list(dict.fromkeys(e.evidence for e in told))[:2]),
                *waiter_evidence(waiters),
            ],
            remedy=["take its stacks: py-spy dump --pid", "read its log: an exception, an early return, a longer step"],
        )
        yield Found(finding=finding, explains=frozenset(root.nodes))


def _is_elsewhere(waiter: Seen) -> str:
    return f"is not in {waiter.inside()} with the others" if waiter.kind in WAITS_FOR_RANKS else "has not come"


def _runs_alone(scene: Scene) -> Iterator[Found]:
    """Of files: the only process at work, met once in code of its own, and awake: a loop that does not end, or a step that takes its time."""
    busy = [s for s in scene.view if s.threads and not s.is_idle] if scene.view.by_hand else []
    one = busy[0] if len(busy) == 1 else None
    thread = (one.followed or one.telling) if one is not None else None
    if one is None or thread is None or thread.place.kind is not Kind.CODE or not thread.sample.active:
        return
    if not thread.place.path and not thread.sample.owns_gil:
        return  # of a library's thread only the interpreter in its hands tells that it runs
    if one.is_stopped or one.motion is Motion.MOVING or ended(one) is not None or scene.graph.into([one.key]) or scene.graph.out(one.key):
        return
    in_thread = f"; its thread {thread.called} is {describe_place(thread.place)}" if thread is not one.telling else ""
    with_gil = " with the GIL" if thread.sample.owns_gil else ""
    finding = make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.POSSIBLE,
        f"{one.where()} {one.does()}{in_thread}{with_gil}, the only process at work that was dumped: a loop that does not end, "
        "or a step that takes its time",
        who=[one.who(thread=thread.name)],
        evidence=[stack_evidence(one, thread=thread), proc_evidence(one, scene.reason(one))],
        remedy=[
            "dump it again: the same innermost lines mean that it stands, others below the same outer ones that it goes round in a loop",
            *_REMEDY_LOOP,
        ],
        phase=one.phase,
    )
    yield Found(finding=finding, explains=frozenset([one.key]))


_REMEDY_LOOP = ("see what it is given there: one request, sample or file of unusual size",)


def detect(scene: Scene) -> Iterator[Found]:
    """Roots that others wait for and that no better rule explains."""
    yield from _told(scene)
    yield from _runs_alone(scene)
    yield from found_in_accounts(scene, RULE, ("missing", "number"), _REMEDY_LOGS)
    for root, one in scene.process_roots():
        told, counts = counted(scene, one.key)
        is_idle = one.is_idle and (bool(one.threads) or told is None)
        at_gpu = bool(one.threads) and waits_for_own_gpu(one, is_behind=bool(counts))
        if one.is_stopped or is_idle or (one.kind in WAITS_FOR_RANKS and not at_gpu) or not scene.graph.into([one.key]):
            continue
        ranks = scene.waiting_ranks(one)
        doing = f"is busy: it {one.does()}" if one.is_at_work else one.does()
        doing = at_own_gpu(one) if at_gpu else doing
        doing += ", and has no other thread that could set it" if _is_left_alone(scene, one) else ""
        if scene.view.by_hand and one.telling is not None and one.telling.sample.owns_gil:
            doing += " with the GIL"
        certainty = (
            Certainty.POSSIBLE if (one.kind in THREAD_WAITS and not _is_left_alone(scene, one)) or one.kind is Kind.MP_QUEUE else Certainty.LIKELY
        )
        if not one.threads:
            singled_out = [e for e in scene.graph.into([one.key]) if e.why is Why.SAME_CALL]
            if not counts and not singled_out and _has_equals(scene, one):
                continue
            doing = "is absent: " + counts[0].text if counts else doing
            certainty = told or (Certainty.LIKELY if singled_out else Certainty.POSSIBLE)
            counts += [Evidence(kind="proc", where=one.where(), text=e.evidence) for e in singled_out[:3]]
        if all(e.certainty is Certainty.POSSIBLE for e in scene.graph.into([one.key])):
            certainty = Certainty.POSSIBLE  # nothing but who waits for it speaks against it
        seen = [stack_evidence(one), proc_evidence(one, scene.reason(one))] if one.threads or not counts else []
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            certainty,
            f"{one.where()} {doing}; {waits(_count(scene, root.waiters))} for it",
            who=[one.who()],
            evidence=[*seen, *_ended_children(scene, one), *counts, *waiter_evidence(ranks)],
            remedy=REMEDY_GPU if at_gpu else _REMEDY_OWN if one.threads else _REMEDY_UNSEEN,
            phase=one.phase,
        )
        yield Found(finding=finding, explains=frozenset(root.nodes))
