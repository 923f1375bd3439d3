"""RRD403 call queued behind an endless one

Story
    An actor runs a method that never returns (a serve loop); a call that somebody waits for stands in its queue. Or the call in its queue is the very
    one that should end the running method.

Evidence
    Ray's worker statistics: the running call, the queue, and who waits for what is in it.

Remedy
    More concurrency, a thread for the loop, or another actor.

Not this when
    The running call is itself blocked in I/O or on a lock, or ranks wait for it in a collective: then that is the
    cause.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.ending_calls import call_behind
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.report import Cause, Certainty, Evidence
from ray_rl_debug.rules.scene import Found, Scene, make_finding, proc_evidence, stack_evidence

ID = "RRD403"
NAME = "call queued behind an endless one"
CAUSE = Cause.RAY_QUEUED_CALL


def _has_nothing_to_do(one: Seen) -> bool:
    """An idle actor is in nobody's way, unless a call of it is under way that shows no frame: a generator whose consumer does not take more."""
    return one.is_idle and not (one.core and one.core.running_task_ids)


def detect(scene: Scene) -> Iterator[Found]:
    """Roots with calls queued behind their running one, when no rank waits for them otherwise."""
    yield from _ended_behind(scene)
    for root, one in scene.process_roots():
        queued = [e for e in scene.graph.into([one.key]) if e.why is Why.QUEUED_CALL]
        if not queued or scene.waiting_ranks(one) or one.is_stopped or _has_nothing_to_do(one):
            continue
        running = one.identity.method or (one.telling.place.op if one.telling else "a call")
        length = one.core.queue_length if one.core else None
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.LIKELY,
            f"{one.where()} runs {running} and does not return; somebody waits for {len(queued)} call{'s' if len(queued) > 1 else ''} in its queue",
            who=[one.who()],
            evidence=[
                *(Evidence(kind="task", where=scene.who(e.source).label, text=e.evidence) for e in queued[:3]),
                stack_evidence(one),
                proc_evidence(one, scene.reason(one) + (f"; {length} calls in its queue" if length else "")),
            ],
            remedy=[
                "run the endless loop in a thread or an async method, or give the actor concurrency groups (max_concurrency > 1)",
                "call a method on another actor for what must be answered while this one serves",
            ],
            phase=one.phase,
        )
        yield Found(finding=finding, explains=frozenset(root.nodes))


def _ended_behind(scene: Scene) -> Iterator[Found]:
    """Roots that go round until a call sets their flag, which stands behind them."""
    for root, one in scene.process_roots():
        behind = call_behind(scene.view, one)
        if behind is None:
            continue
        method = behind[0].name.rpartition(".")[2]
        task = scene.view.tasks.get(next(iter(one.core.running_task_ids), "")) if one.core is not None else None
        running = task.name.rpartition(".")[2] if task is not None else one.identity.method or "a call"
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.LIKELY,
            f"{one.where()} runs {running} until {method} is called; the call of {method} stands behind it in its queue",
            who=[one.who()],
            evidence=[Evidence(kind="task", where=one.where(), text=scene.reason(one)), stack_evidence(one)],
            remedy=[f"give {method} a concurrency group of its own, or the actor max_concurrency > 1", "let the loop end after a time as well"],
            phase=one.phase,
        )
        yield Found(finding=finding, explains=frozenset(root.nodes))
