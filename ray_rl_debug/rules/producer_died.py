"""RRD404 producer died

Story
    Somebody polls a queue, buffer or store for what a dead actor should have produced; nobody holds a pending ray.get
    that would fail. Or the actor lives and is idle, as its call has failed and nobody has asked for the result.

Evidence
    The poller's stack, and one of these. Ray's actor table says DEAD, or the child process that should deliver is a zombie. Ray
    starts the actor anew for each try of one call, and each try has ended with the process. A task fails in each of many tries.
    A process lacks a thread that its fellows have, or in which they wait for it. Ray's task events say that a call of an idle
    actor has failed since the last step.

Remedy
    Find why it died; check the producer's life while polling.

Not this when
    Other producers still deliver, the actor ended on purpose, or it was started anew a moment ago.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.lost_threads import LOST_CALLER, lost_caller, lost_thread
from ray_rl_debug.analyze.waits_calls import FAILED_CALL, failed_call, works_inside
from ray_rl_debug.model.report import Cause, Certainty, Evidence
from ray_rl_debug.rules.dead_actors import find_dead
from ray_rl_debug.rules.scene import Found, Scene, listed, make_finding, proc_evidence, stack_evidence, waits

ID = "RRD404"
NAME = "producer died"
CAUSE = Cause.PRODUCER_DIED

_REMEDY = [
    "look for its first error: the worker's log, dmesg (OOM killer), the node's memory",
    "let the waiting side check that its producer lives (ray.get on a health call, or a time limit)",
]


def detect(scene: Scene) -> Iterator[Found]:
    """Roots that are dead actors somebody polls or awaits, or processes whose thread has ended."""
    yield from find_dead(scene, ID, NAME, CAUSE, _REMEDY, engines=False)
    yield from _failed(scene)
    yield from _idle(scene)
    for root, one in scene.process_roots():
        into = scene.graph.into([one.key])
        lost = lost_thread(scene.view, one) if any(e.why in (Why.SEMAPHORE, Why.GIVERS) for e in into) else None
        calls = [e for e in into if e.op == LOST_CALLER]
        lost = lost_caller(scene.view, one) if lost is None and calls else lost
        if lost is None:
            continue
        said = f"in which {listed([f.identity.label for f in lost.fellows])} wait for it"
        said = f"as its fellows have, and {waits(len(root.waiters))} for calls from it" if calls else said
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.LIKELY,
            f"{one.where()} has no thread in {lost.function} any more, {said}",
            who=[one.who()],
            evidence=[
                *(Evidence(kind="task", where=one.where(), text=e.evidence) for e in calls[:1]),
                proc_evidence(one, f"{len(one.threads)} of its threads {'was' if len(one.threads) == 1 else 'were'} seen: it {one.does()}"),
                *(stack_evidence(f, thread=t) for f in lost.fellows[:3] for t in f.threads if t.place.path and t.place.path[-1][0] == lost.function),
            ],
            remedy=["look for the error of this thread in the output of its process: Python prints it and goes on", *_REMEDY[1:]],
            phase=one.phase,
        )
        yield Found(finding=finding, explains=frozenset(root.nodes))


def _failed(scene: Scene) -> Iterator[Found]:
    """Roots that are idle actors whose call has failed, where others wait for what such calls bring."""
    for root, one in scene.process_roots():
        task = failed_call(scene.view, one)
        into = [e for e in scene.graph.into([one.key]) if e.op == FAILED_CALL]
        if task is None or not into or not one.is_idle or one.is_stopped:
            continue
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            into[0].certainty,
            f"{one.where()} is idle: its call {task.name} has failed ({task.error}); {waits(len(root.waiters))} for what such calls bring",
            who=[one.who()],
            evidence=[Evidence(kind="task", where=scene.who(e.source).label, text=e.evidence) for e in into[:3]],
            remedy=[
                "find the error in the log of this worker, and ask for the result of such calls (ray.get, ray.wait), so that errors are seen",
                "let a producer send its end mark in a finally block",
            ],
            phase=one.phase,
        )
        yield Found(finding=finding, explains=frozenset(root.nodes))


def _idle(scene: Scene) -> Iterator[Found]:
    """Who has brought so far what another looks for, as Ray's history tells, and does nothing any more."""
    for root, one in scene.process_roots():
        into = [e for e in scene.graph.into([one.key]) if e.why is Why.POLL and e.certainty is not Certainty.POSSIBLE and e.source in scene.view.seen]
        runs = one.core is not None and bool(one.core.running_task_ids)
        if not into or not one.is_idle or one.is_at_work or one.is_stopped or runs or works_inside(one) or one.process.kind != "ray-worker":
            continue
        poller = scene.view.seen[into[0].source]
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.LIKELY,
            f"{one.where()} brought so far what {poller.where()} looks for, and does nothing any more: no call, thread or coroutine of it is left",
            who=[one.who()],
            evidence=[
                stack_evidence(poller),
                Evidence(kind="task", where=poller.where(), text=into[0].evidence),
                proc_evidence(one, scene.reason(one)),
            ],
            remedy=[
                "look in its log for the end of its thread: an error that nobody asked for, or the end of its data",
                "let the side that looks ask whether more can come",
            ],
            phase=poller.phase,
        )
        yield Found(finding=finding, explains=frozenset(root.nodes))
