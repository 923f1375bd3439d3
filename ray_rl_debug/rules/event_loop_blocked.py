"""RRD202 event loop blocked

Story
    One coroutine makes a synchronous call (requests, a lock, ray.get); the loop stands still and with it every
    other episode of the process.

Evidence
    The loop's thread is inside own code below run_forever in every sample, not in select.

Remedy
    Make the call asynchronous or move it to a thread, with a time limit.

Not this when
    The loop's thread is in select or epoll (idle), or its stack moves.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.kinds_of_places import THREAD_WAITS, Kind
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.seen import Seen, as_verb, describe_place
from ray_rl_debug.analyze.solve import Outlook
from ray_rl_debug.model.report import Cause, Certainty, Evidence
from ray_rl_debug.model.snapshot import AsyncTask
from ray_rl_debug.rules.scene import Found, Scene, make_finding, proc_evidence, stack_evidence

ID = "RRD202"
NAME = "event loop blocked"
CAUSE = Cause.EVENT_LOOP_BLOCKED


def detect(scene: Scene) -> Iterator[Found]:
    """Roots whose event loop's thread is inside a synchronous call."""
    for root, one in (*scene.process_roots(), *scene.lonely("driver")):
        thread = blocked_loop_thread(one)
        if thread is None or one.is_stopped:
            continue
        yield from _found(scene, one, frozenset(root.nodes))
    for edge in scene.graph.of(Why.SOCKET, Why.CHILD):  # the blocked call may wait for somebody: the loop is blocked all the same
        blocked = scene.view.seen.get(edge.source)
        if blocked is not None and blocked.place is not None and blocked.place.on_loop and blocked.place.path:
            ends = [r for r in scene.graph.roots if edge.target in r.nodes and len(scene.graph.into([edge.target])) == 1]
            for root in ends:
                yield from _found(scene, blocked, frozenset([blocked.key, *root.nodes]))


def blocked_loop_thread(one: Seen) -> SeenThread | None:
    """The thread that runs an event loop and is inside a call of the program's own that does not await.

    It need not be the telling thread: AReaL's trainer waits on its main thread for an executor whose loop has a thread of its own.
    """
    if one.telling is not None and one.telling.place.on_loop and one.telling.place.path:
        return one.telling
    if one.kind not in THREAD_WAITS:
        return None
    return next((t for t in one.threads if t.place.on_loop and t.place.path and t.place.kind in _SYNCHRONOUS), None)


_SYNCHRONOUS = frozenset({Kind.SOCKET, Kind.FILE, Kind.FLOCK, Kind.CHILD, Kind.RAY_GET, Kind.LOCK, Kind.EVENT, Kind.FUTURE, Kind.JOIN, Kind.SLEEP})


def _found(scene: Scene, one: Seen, explains: frozenset[str]) -> Iterator[Found]:
    if one.is_at_work and scene.hope(one) is not Outlook.STANDS:
        return  # a loop that is busy with its coroutines is not blocked by one
    thread = blocked_loop_thread(one) or one.telling
    waiting = [t for t in one.process.async_tasks or () if thread is None or t.tid in (None, thread.tid)]
    others = f"; {len(waiting)} of its coroutines cannot run" if waiting else ""
    finding = make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.LIKELY,
        f"the event loop of {one.where()} is blocked: it {as_verb(describe_place(thread.place)) if thread else one.does()}{others}",
        who=[one.who()],
        evidence=[stack_evidence(one, thread=thread), proc_evidence(one, scene.reason(one)), *_tasks(one, waiting)],
        remedy=[
            "make the call asynchronous, or run it with loop.run_in_executor / asyncio.to_thread, with a time limit",
            "until then: restart this actor; every episode on its loop is lost",
        ],
        phase=one.phase,
    )
    yield Found(finding=finding, explains=explains, by_own_facts=True)


def _tasks(one: Seen, tasks: list[AsyncTask]) -> list[Evidence]:
    """The task that the loop executes, and since when its timers wait: no turn of the loop has come since the oldest of them was due."""
    found = []
    running = [t for t in tasks if t.awaited is not None and t.awaited.kind == "running" and t.stable is not False]
    if running:
        found.append(f"the loop executes task {running[0].name} ({running[0].chain[0].function})")
    late = [-t.awaited.due_s for t in tasks if t.awaited is not None and t.awaited.due_s is not None and t.awaited.due_s < 0]
    if late:
        found.append(f"{len(late)} of its timers are overdue, the oldest by {max(late):.1f} s")
    return [Evidence(kind="await", where=one.where(), text="; ".join(found))] if found else []
