"""RRD503 lock deadlock

Story
    Threads of a process wait for each other's locks, for a lock whose owner is gone (a fork), or for a queue or thread
    that nobody serves.

Evidence
    All working threads of the process wait at locks, queues or joins, in every sample.

Remedy
    One order for locks; no fork with threads; time limits.

Not this when
    Another thread of the process works and may release it, or the wait is for another process.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.places import Kind
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.telling import SeenThread, waits_for_worker
from ray_rl_debug.analyze.view import Seen, describe_place
from ray_rl_debug.detectors.scene import Found, Scene, judge, make_finding, proc_evidence, stack_evidence
from ray_rl_debug.report import Cause, Certainty, Evidence, Finding

ID = "RRD503"
NAME = "lock deadlock"
CAUSE = Cause.LOCK_DEADLOCK


_LOCKS = frozenset({Kind.LOCK, Kind.QUEUE, Kind.JOIN, Kind.FUTURE, Kind.EVENT})


def detect(scene: Scene) -> Iterator[Found]:
    """Roots whose threads wait for each other, or for a lock, queue or thread that nobody serves."""
    for root, one in scene.process_roots():
        thread = one.telling
        if thread is None or one.is_stopped or thread.place.kind not in _LOCKS or not thread.place.path or one.motion is not Motion.FROZEN:
            continue
        if thread.place.kind is Kind.LOCK and not _asleep(thread):
            continue
        others = [t for t in one.threads if t is not thread and t.place.path and t.score > 0 and not waits_for_worker(thread, t)]
        if thread.place.kind is Kind.EVENT and not others and scene.waiting_ranks(one):
            continue  # an event that no thread of the process is about to set: a rank stuck in its own code, not in a cycle
        if any(t.place.kind not in _LOCKS for t in others):
            continue  # somebody in the process still works and may release it
        verdict = judge(scene, one)
        if verdict.certainty is None:
            continue
        parents = [scene.view.seen[e.source] for e in scene.graph.into([one.key]) if e.why == "waitpid" and e.source in scene.view.seen]
        yield Found(
            finding=_finding(one, others, parents, verdict.certainty, verdict.reason), explains=frozenset([*root.nodes, *(p.key for p in parents)])
        )


def _asleep(thread: SeenThread) -> bool:
    return thread.kernel is None or thread.kernel.state == "S"


def _finding(one: Seen, others: list[SeenThread], parents: list[Seen], certainty: Certainty, reason: str) -> Finding:
    if others:
        said = f"; its thread {others[0].name or others[0].tid} {describe_place(others[0].place)}"
    elif one.process.kind == "child" and parents:
        said = "; no other thread lives in it that could release it (a lock taken over a fork has no owner)"
    else:
        said = "; no other thread of it works that could release it"
    threads = [Evidence(kind="stack", where=f"{one.where()} thread {t.name or t.tid}", text=describe_place(t.place)) for t in others[:3]]
    return make_finding(
        ID,
        NAME,
        CAUSE,
        certainty,
        f"{one.where()} {one.at()}{said}",
        who=[*(p.who() for p in parents), one.who()],
        evidence=[stack_evidence(one), *threads, proc_evidence(one, reason)],
        remedy=[
            "take the locks in one order everywhere; never fork while threads hold locks (start method spawn)",
            "give joins, queue reads and acquires a time limit, and let the feeding thread report its death",
        ],
        phase=one.phase,
    )
