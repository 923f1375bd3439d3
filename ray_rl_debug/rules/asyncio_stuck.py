"""RRD201 coroutines stuck

Story
    Coroutines of an agent loop, rollout server or workflow executor await a semaphore, event, HTTP answer or future
    that never comes. Thread stacks show an idle loop.

Evidence
    The await chains of the process, grouped: where they wait, for what, who holds it. Without them, a running Ray call in
    a process whose threads are all idle.

Remedy
    Release permits in finally, give awaits a time limit.

Not this when
    The coroutine waits for another process of the job: then that one is the root. Coroutines that wait for the next
    request or piece of work are at rest, not stuck. Only *possible* where the coroutines could not be read, where a
    service outside the cluster has been quiet for less than a quarter of an hour, or while somebody may still make the
    call for which they wait.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ray_rl_debug.analyze.connections import has_last_word
from ray_rl_debug.analyze.coroutines import (
    HANDED,
    LOCKS,
    OUTSIDE,
    SERVES_RANK,
    End,
    is_apart,
    is_ray_call,
    is_write,
    rank,
    serves,
    ticks,
    waits_inside,
)
from ray_rl_debug.analyze.deaths import how_dead
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kinds_of_places import IDLE_KINDS, THREAD_WAITS, Kind
from ray_rl_debug.analyze.limits import ENOUGH_CALLS
from ray_rl_debug.analyze.lost_rows import lacks_dead_actor
from ray_rl_debug.analyze.pauses import has_loop
from ray_rl_debug.analyze.roots import Root
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.solve import Outlook
from ray_rl_debug.analyze.unread_coroutines import is_blind
from ray_rl_debug.analyze.waits_calls import nobody_is_left, only_ray_connects, other_methods, works_inside
from ray_rl_debug.analyze.waits_poll import dead_fellows
from ray_rl_debug.analyze.whole_looks import lacks_coroutines
from ray_rl_debug.model.report import Cause, Certainty, Evidence, Finding, Who
from ray_rl_debug.model.snapshot import AsyncTask
from ray_rl_debug.rules.answers import may_come
from ray_rl_debug.rules.coroutine_words import (
    await_evidence,
    awaits,
    count_of,
    holder_evidence,
    polling_lines,
    remedy_of,
    thread_evidence,
)
from ray_rl_debug.rules.scene import Found, Scene, judge, make_finding, proc_evidence, stack_evidence, waiter_evidence, waits
from ray_rl_debug.rules.woken_by_nobody import finding_of_unwoken

ID = "RRD201"
NAME = "coroutines stuck"
CAUSE = Cause.ASYNCIO_STUCK

_SHOWN = 4
SOON_S = 60.0
"""A timer that is due within this time may well be what coroutines wait for."""
_INSIDE = LOCKS | (HANDED - OUTSIDE) | {"task", "gather"}
"""What only the process itself can complete."""
STEP_S = 0.2
"""Coroutines that sleep no longer than this at a time step on quickly enough to be at work."""


def detect(scene: Scene) -> Iterator[Found]:
    """Roots that idle in Python while their coroutines wait; clients whose peer gives no answer; named processes whose loop cannot go on."""
    for root in scene.graph.roots:
        yield from _unanswered(scene, root)
    for root, one in scene.process_roots():
        if one.is_stopped:
            continue
        ends = _told(one)
        if (lost := finding_of_unwoken(one, (ID, NAME, CAUSE))) is not None:
            yield Found(finding=lost, explains=frozenset(root.nodes))
        elif one.is_idle:
            running = bool(one.core and one.core.running_task_ids) or (one.identity.method is not None and one.process.kind == "ray-worker")
            if running and not ends and _calls_are_at_rest(one):
                yield from _empty_queue(scene, root, one)
            elif ends or (running and _runs_loop(one)):
                sure = _pace(scene, one)
                if ends:
                    open_ = (
                        (_another_call_works(one) and not _is_overdue(scene, one))
                        or (_may_lack_a_call(scene, one) and not nobody_is_left(scene.view, one, scene.graph.edges))
                        or (one.process.kind == "ray-worker" and not ends[0].is_cycle and lacks_dead_actor(scene.view))
                    )
                    sure = Certainty.POSSIBLE if open_ else Certainty.LIKELY
                yield Found(finding=_finding(scene, one, ends, sure), explains=frozenset(root.nodes))
        elif ends and _waits_for_loop(one, ends) and not scene.children_move(one):
            looks = ends[0].awaited.kind == "executor" and ticks(one.process)
            yield Found(finding=_finding(scene, one, ends, Certainty.POSSIBLE if looks else Certainty.LIKELY), explains=frozenset(root.nodes))
    yield from _read_by_threads(scene)
    yield from _at_locks_alone(scene)
    for one in scene.apart():
        if one.process.kind in ("named", "driver") and one.is_idle and not one.is_stopped:
            yield from _alone(scene, one)


def _read_by_threads(scene: Scene) -> Iterator[Found]:
    """A client whose thread has read all that a server sent, and whose coroutines still wait for what that thread should hand on.

    The server reads as well. Either the answer was lost on its way to the loop, or the server believes that it has sent all.
    """
    for root, members, edges in scene.cycles():
        asked = [e for e in edges if e.why is Why.SOCKET and e.source in scene.view.seen and e.target in scene.view.seen]
        if len(members) != 2 or len(asked) != 1 or any(e.why not in (Why.SOCKET, Why.MESSAGE) for e in edges):
            continue
        client, server = scene.view.seen[asked[0].source], scene.view.seen[asked[0].target]
        ends = _told(client)
        if not ends or client.telling is None or not waits_inside(ends) or not has_last_word(client, server):
            continue
        found = _finding(scene, client, ends, Certainty.LIKELY)
        summary = f"{found.summary}; its thread {client.telling.called} has read all that {server.where()} sent, which waits for more"
        evidence = (*found.evidence, stack_evidence(client), stack_evidence(server), proc_evidence(client, asked[0].evidence))
        finding = msgspec.structs.replace(found, summary=summary, evidence=evidence)
        yield Found(finding=finding, explains=frozenset(root.nodes), rests_on=frozenset(m.key for m in members))


def _at_locks_alone(scene: Scene) -> Iterator[Found]:
    """Of files: coroutines of which all that were shown want a lock or permit. One of them has it already, or whoever had it is gone."""
    for one in scene.view if scene.view.by_hand else ():
        tasks, ends = [t for t in one.process.async_tasks or () if not serves(t)], _told(one)
        wanted = {t.address for e in ends if e.awaited.kind in LOCKS for t in e.tasks}
        waits_for_those = all(t.address in wanted or (t.awaited is not None and t.awaited.kind in ("task", "gather")) for t in tasks)
        if wanted and waits_for_those and (not one.threads or one.is_idle) and not scene.graph.into([one.key]):
            yield Found(finding=_finding(scene, one, ends, Certainty.POSSIBLE), explains=frozenset([one.key]))


def _runs_loop(one: Seen) -> bool:
    """A synchronous actor has no loop; what it has under way without a frame is a generator that is held back. Without stacks nobody knows."""
    return not one.threads or has_loop(one)


def _calls_are_at_rest(one: Seen) -> bool:
    """Does every call of Ray in it wait at an empty queue for the next piece of work? Then who fills the queue is asked, not this one."""
    calls = _calls(one)
    takes = [t.awaited is not None and t.awaited.kind == "queue" and not (t.awaited.detail or "").startswith(_PUTS) for t in calls]
    return bool(calls) and all(takes) and all(serves(t) for t in calls)


_PUTS = "Queue.put"
"""Who waits so has a piece of work in hand, and finds no room for it."""


def _calls(one: Seen) -> list[AsyncTask]:
    """Those of its coroutines that are calls of Ray."""
    return [t for t in one.process.async_tasks or () if is_ray_call(t)]


def _empty_queue(scene: Scene, root: Root, one: Seen) -> Iterator[Found]:
    """Somebody waits for the next piece of work of a queue, and every process that does not wait for it is idle."""
    others = [o for o in scene.view if o.key not in (one.key, *root.waiters) and o.identity.job_id == one.identity.job_id]
    if not root.waiters or not all(o.is_idle and not o.is_at_work for o in others):
        return
    finding = make_finding(
        ID,
        NAME,
        CAUSE,
        # the next piece may come from outside of the job
        Certainty.LIKELY if nobody_is_left(scene.view, one, scene.graph.edges) else Certainty.POSSIBLE,
        f"{one.where()} waits at an empty queue for the next piece of work; {waits(len(root.waiters))} for it, and all others of the job are idle",
        who=[one.who()],
        evidence=[
            proc_evidence(one, f"runs {one.identity.method or 'a call'}"),
            *waiter_evidence(scene.view.seen[w] for w in root.waiters if w in scene.view.seen),
        ],
        remedy=["check whether the producers of the queue ended early; give the read a time limit, or let them send an end mark"],
        phase=one.phase,
    )
    yield Found(finding=finding, explains=frozenset(root.nodes))


def _another_call_works(one: Seen) -> bool:
    """Is a call of Ray on its way in the same process, step by step? An update of the weights, say, will wake those that it holds up."""
    steps = ("sleep", "running", "ready")
    return any(t.stable is False or (t.awaited is not None and t.awaited.kind in steps) for t in _calls(one) if not serves(t))


def _may_lack_a_call(scene: Scene, one: Seen) -> bool:
    """Do its calls wait for what another call may bring, and were such calls made before? Then whoever makes them no more may be the cause."""
    calls = _calls(one)
    waiting = [t.awaited is None or t.awaited.kind in HANDED - OUTSIDE for t in calls]
    return bool(waiting) and all(waiting) and not works_inside(one) and bool(other_methods(scene.view, one, calls))


def _is_overdue(scene: Scene, one: Seen) -> bool:
    return scene.finished_calls(one) >= ENOUGH_CALLS and judge(scene, one).certainty is Certainty.LIKELY


def _pace(scene: Scene, one: Seen) -> Certainty:
    """How sure one may be that calls without an end in sight are stuck: some are only asleep for a moment, at work step by step or polling.

    Also those that they gather: a coroutine that sleeps for longer than the window was never seen to get nowhere.
    """
    tasks = [t for t in one.process.async_tasks or () if not serves(t) and not is_apart(t)]
    runs = one.core is not None and bool(one.core.running_task_ids)
    if any(t.awaited is None for t in (*tasks, *_calls(one))) or (runs and not one.process.async_tasks):
        return Certainty.POSSIBLE  # what it waits for was not read: a call that runs on a loop has a coroutine
    if any(t.stable is None for t in tasks) and any(t.stable is not None for t in tasks):
        return Certainty.POSSIBLE  # whether one of them was there before was not read
    ticking = [t.awaited for t in tasks if t.awaited and t.awaited.kind in ("sleep", "running", "ready")]
    if any(a.kind != "sleep" or (a.delay_s is not None and a.delay_s <= STEP_S) for a in ticking):
        return Certainty.POSSIBLE
    return Certainty.LIKELY if (not ticking and not is_blind(scene.view, one)) or _is_overdue(scene, one) else Certainty.POSSIBLE


def _told(one: Seen) -> tuple[End, ...]:
    """What its coroutines wait for at one place, but for the next piece of work."""
    return tuple(e for e in one.ends if e.is_still and rank(e) < SERVES_RANK)


def _waits_for_loop(one: Seen, ends: tuple[End, ...]) -> bool:
    """Does the main thread wait for what the coroutines of an idle loop in another thread should deliver (AReaL's executor)?

    Of a thread of a pool it is the other way round: coroutines wait for it.
    """
    if one.telling is not None and one.kind is not Kind.FUTURE and any(f.file.endswith("concurrent/futures/thread.py") for f in one.telling.frames):
        return one.kind in THREAD_WAITS and ends[0].awaited.kind == "executor"
    tids = {t.tid for t in one.process.async_tasks or ()}
    loops = [t for t in one.threads if t.tid in tids and t is not one.telling]
    return one.kind in THREAD_WAITS and bool(loops) and all(t.place.kind in IDLE_KINDS for t in loops)


def _unanswered(scene: Scene, root: Root) -> Iterator[Found]:
    """Coroutines that await an answer of a process or address where the waiting ends."""
    sink = scene.view.seen.get(root.nodes[0])
    if root.is_cycle or (sink is not None and (sink.is_stopped or sink.kind in THREAD_WAITS)):
        return
    for edge in scene.graph.into(root.nodes):
        client = scene.view.seen.get(edge.source)
        if edge.why is not Why.AWAITED_SOCKET or client is None:
            continue
        ends = tuple(e for e in _told(client) if e.awaited.kind == "socket")
        if ends and is_write(ends[0].awaited):
            yield from _unread(scene, client, ends, edge)
            continue
        if sink is not None and (_told(sink) or (sink.core and sink.core.running_task_ids)):
            continue  # it has a reason of its own
        verdict = judge(scene, sink if sink is not None and sink.is_at_work else client)
        if ends and verdict.certainty is not None:
            who = [client.who(), scene.who(root.nodes[0])]
            yield Found(finding=_finding(scene, client, ends, verdict.certainty, edge, who), explains=frozenset([client.key, *root.nodes]))


def _unread(scene: Scene, server: Seen, ends: tuple[End, ...], edge: Edge) -> Iterator[Found]:
    """A server whose answers nobody takes: whoever should read them is the cause, and the server its victim."""
    verdict = judge(scene, server)
    if verdict.certainty is not None:
        peers = [e.target for e in scene.graph.out(server.key) if e.why is Why.AWAITED_SOCKET]
        peers = [p for p in peers if scene.graph.hope(p) is Outlook.STANDS] or peers
        who = [scene.who(p) for p in peers[:_SHOWN]]
        yield Found(finding=_finding(scene, server, ends, verdict.certainty, edge, who), explains=frozenset(peers))


def _alone(scene: Scene, one: Seen) -> Iterator[Found]:
    """A process that the user asks about, or a driver, with an idle loop: nobody waits for it but the user."""
    ends = _told(one)
    if not ends or scene.goes_on(one) or scene.children_move(one):
        return
    first = ends[0]
    rays = _port_of_ray(scene, one)
    listens = any(s.state == "LISTEN" and s.local.rpartition(":")[2] != rays for s in one.process.sockets or ()) and not _is_beside_server(one, first)
    if first.is_cycle or first.is_lost:
        certainty: Certainty | None = Certainty.LIKELY if len(one.process.samples) > 1 else Certainty.POSSIBLE
    elif first.awaited.kind == "executor" and ticks(one.process):
        certainty = Certainty.POSSIBLE  # the thread may wait for what another loop looks after
    elif first.awaited.kind in LOCKS or first.awaited.kind in OUTSIDE:
        certainty = judge(scene, one).certainty
    elif listens:
        certainty = Certainty.POSSIBLE if first.limit_s is not None else None  # a request may bring it; who counts the seconds expects it soon
    else:
        certainty = judge(scene, one).certainty if _is_closed(scene, one) else Certainty.POSSIBLE
    if certainty is not None:
        finding = _finding(scene, one, ends, certainty)
        dead = dead_fellows(scene.view, one) if one.process.kind == "driver" else []
        died = [Evidence(kind="task", where=a.name or a.class_name, text=f"it is dead: {how_dead(a)}") for a in dead[:_SHOWN]]
        yield Found(finding=msgspec.structs.replace(finding, evidence=(*finding.evidence, *died)), explains=frozenset([one.key]))


def _finding(scene: Scene, one: Seen, ends: tuple[End, ...], certainty: Certainty, edge: Edge | None = None, who: list[Who] | None = None) -> Finding:
    tasks, children = one.process.async_tasks or (), list[Seen]()
    if ends:
        first = ends[0]
        pids = {t.awaited.pid for t in first.tasks if t.awaited is not None}
        children = [c for c in scene.view.children(one) if c.process.pid in pids and not c.has_ended][:_SHOWN]
        hope = None if first.awaited.kind != "socket" or _is_overdue(scene, one) else may_come(scene, one, first.descriptors)
        may_be_ended = first.awaited.kind not in OUTSIDE and lacks_coroutines(one.process)  # by a coroutine that was not read
        certainty = certainty if hope is None and not may_be_ended else Certainty.POSSIBLE
        summary = f"{count_of(first, tasks)} of {one.where()} {awaits(one, first)}"
        if edge is not None:
            summary += f" ({scene.who(edge.target).label})" if edge.target in scene.view.seen else ""
        if first.behind:
            summary += f"; {first.behind} more wait{'s' if first.behind == 1 else ''} behind {'it' if len(first.tasks) == 1 else 'them'}"
        evidence = [await_evidence(one, end) for end in ends[:_SHOWN]] + [stack_evidence(c) for c in children]
        if edge is not None:
            evidence.append(Evidence(kind="socket", where=one.where(), text=edge.evidence))
        evidence += [proc_evidence(one, hope)] if hope is not None else []
        evidence += holder_evidence(one, first) + (thread_evidence(one) if first.awaited.kind == "executor" else [])
    else:
        summary = (
            f"{one.where()} runs {one.identity.method or 'a call'}, but none of its threads works: a coroutine waits for something that does not come"
        )
        polls = polling_lines(tasks)
        if polls:
            at, number = polls[0]
            summary = f"{one.where()} runs {one.identity.method or 'a call'}; {number} of its {len(tasks)} coroutines poll at {at} without progress"
        only_sleeps = not polls and any(t.awaited is not None and t.awaited.kind == "sleep" for t in tasks)  # where was not read
        certainty = certainty if one.threads and not only_sleeps else Certainty.POSSIBLE
        unread = "; its coroutines could not be read" if one.process.async_tasks is None else ""
        evidence = [proc_evidence(one, f"the event loop is idle, yet Ray says that a call runs{unread}")]
        evidence += [Evidence(kind="await", where=one.where(), text=f"{n} coroutine{'s' if n > 1 else ''} at {at}") for at, n in polls[:_SHOWN]]
    return make_finding(
        ID,
        NAME,
        CAUSE,
        certainty,
        summary,
        who=who or [*(c.who() for c in children), one.who()],  # a child whose end is awaited, and that does not end
        evidence=evidence,
        remedy=remedy_of(ends),
        phase=one.phase,
    )


def _is_beside_server(one: Seen, end: End) -> bool:
    """Do these wait on a loop that serves nobody, beside the loop of a server?"""
    serving = {t.loop for t in one.process.async_tasks or () if serves(t)}
    return bool(serving) and serving.isdisjoint(t.loop for t in end.tasks)


def _is_closed(scene: Scene, one: Seen) -> bool:
    """Is nothing left that could complete what the coroutines wait for: none that goes on, no thread at work, no peer, no child process?"""
    tasks, sockets = one.process.async_tasks or (), one.process.sockets
    others = [t for t in tasks if not is_apart(t)]
    if any(_may_tell(one, c) for c in scene.view.children(one)) or sockets is None:
        return False
    if not all(t.stable and t.awaited is not None and t.awaited.kind in _INSIDE for t in others):
        return False
    if any(t.timer_s is not None and 0 <= t.timer_s < SOON_S and _has_other_timers(t, tasks) for t in others):
        return False
    ends = {s.inode for s in sockets}
    if one.process.kind == "driver":
        # an event may be set by a signal; a queue is filled by the program itself
        if not (one.core is not None and not one.core.owned and only_ray_connects(scene.view, one) and all(_is_at_queue(t) for t in others)):
            return False
    elif any(s.peer_inode is None or s.peer_inode not in ends for s in sockets):  # an event loop wakes itself through a pair
        return False
    return all(t.place.kind in IDLE_KINDS or not t.place.path for t in one.threads)


def _may_tell(one: Seen, child: Seen) -> bool:
    """May a child have something to tell, through what both hold, or by its end? Not one that rests and shares files alone with its parent."""
    shared = ("pipe", "fifo", "eventfd")
    if not child.is_idle or child.process.files is None or child.process.sockets is None or one.process.files is None:
        return True
    if any(f.kind in shared or f.path.startswith(SEGMENTS) for f in child.process.files if f.path in {o.path for o in one.process.files}):
        return True
    ends = {s.inode for s in one.process.sockets or ()}
    return any(s.inode in ends or s.peer_inode in ends for s in child.process.sockets if s.inode is not None)


SEGMENTS = "/dev/shm/"
"""Where memory lies that processes share."""


def _is_at_queue(task: AsyncTask) -> bool:
    return task.awaited is not None and task.awaited.kind in ("queue", "task", "gather")


def _port_of_ray(scene: Scene, one: Seen) -> str | None:
    """The port at which Ray itself listens in a process, as its tables tell."""
    ray = scene.view.ray
    for worker in ray.workers if ray is not None else ():
        if worker.pid == one.process.pid and worker.alive and worker.ip and worker.node_id in (one.node.node_id, None):
            return worker.ip.rpartition(":")[2]
    return None


def _has_other_timers(task: AsyncTask, tasks: tuple[AsyncTask, ...]) -> bool:
    """May a timer of its loop be another than those of coroutines that wake nobody?"""
    return task.timers is None or task.timers > sum(1 for t in tasks if t.loop == task.loop and is_apart(t))
