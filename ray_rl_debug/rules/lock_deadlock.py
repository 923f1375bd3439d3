"""RRD503 lock deadlock

Story
    Threads of a process wait for each other's locks, for a lock whose owner is gone (a fork), or for a queue or thread that
    nobody serves. Or they look again and again at variables that only they themselves could change. Or they wait for a lock on
    a file, and their own process has it through another descriptor. Or processes wait for each other in a ring of file locks and
    sockets.

Evidence
    In every sample, all working threads of the process wait at locks, queues or joins. Or the source of their lines names the
    lock that each wants, and the ``with`` block in which the thread that has it stands. Or the source of their loops names
    nothing but variables. Or the kernel's table of locks names the process that tries.

Remedy
    One order for locks; no fork with threads; time limits.

Not this when
    Another thread of the process works, or waits for Ray, and may release the lock; one that does not have it, as its source
    tells, may not. The wait is for another process. In stacks alone: nobody waits for the process, and its wait has a time limit.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.await_chains import serves_by_name
from ray_rl_debug.analyze.coroutines import left_behind, line_of
from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.locks_in_ring import ring_of_threads
from ray_rl_debug.analyze.looks import looks_at, looks_at_variables
from ray_rl_debug.analyze.lost_ends import may_lack_holder
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.native_frames import is_in_handler
from ray_rl_debug.analyze.own_file_locks import own_lock_tried
from ray_rl_debug.analyze.pools import ends_in_vain, feeder_at_work, held_feeder, lacks_taker
from ray_rl_debug.analyze.roots import Root
from ray_rl_debug.analyze.seen import Seen, describe_place
from ray_rl_debug.analyze.timed_waits import wakes_by_itself
from ray_rl_debug.analyze.waits_calls import only_ray_connects
from ray_rl_debug.analyze.waits_children import is_tracker, living_workers
from ray_rl_debug.analyze.waits_semaphores import STARTED_TOGETHER_S, lost_lock, lost_reader
from ray_rl_debug.model.report import Cause, Certainty, Evidence, Finding
from ray_rl_debug.rules.lock_excuses import LOCKS, Case, Helpers, case_of, helpers_of, is_blind, is_excused, is_forked
from ray_rl_debug.rules.rings import remedy_of, ring_found, rings, thread_at_own_lock
from ray_rl_debug.rules.rings_of_threads import finding_of_ring
from ray_rl_debug.rules.scene import Found, Scene, make_finding, proc_evidence, stack_evidence, waits, weaker
from ray_rl_debug.rules.told_locks import finding_of, finding_of_gone, gone_thread, told_of

ID = "RRD503"
NAME = "lock deadlock"
CAUSE = Cause.LOCK_DEADLOCK


def detect(scene: Scene) -> Iterator[Found]:
    """Roots whose threads wait for each other, or for a lock, queue or thread that nobody serves."""
    yield from _rings(scene)
    yield from _kept(scene)
    yield from _served_under_lock(scene)
    yield from _at_variables(scene)
    yield from _at_own_file(scene)
    yield from _in_rings_of_threads(scene)
    for root, one in scene.process_roots():
        if (text := told_of(one)) is not None:
            yield Found(finding=finding_of(one, text, (ID, NAME, CAUSE)), explains=frozenset(root.nodes))
        elif (name := gone_thread(one)) is not None:
            yield Found(finding=finding_of_gone(one, name, (ID, NAME, CAUSE)), explains=frozenset(root.nodes))
    for root, one in (*scene.process_roots(), *_at_own_locks(scene), *_closed_drivers(scene)):
        case = case_of(scene, root, one)
        if case is not None and not is_excused(case) and (helpers := helpers_of(case)) is not None:
            yield _inside(case, helpers)


def _inside(case: Case, helpers: Helpers) -> Found:
    """Of a process whose thread waits inside of it."""
    scene, one = case.scene, case.one
    parents: list[Seen] = []
    if case.kind is Kind.LOCK and is_forked(one, case.thread):  # they brought the lock into it
        known = [e for e in scene.graph.into([one.key]) if e.why is Why.CHILD and e.certainty is not Certainty.POSSIBLE]
        parents = [scene.view.seen[e.source] for e in known if e.source in scene.view.seen]
    is_doubtful = case.lost and held_feeder(one) is None and not _lost_one(scene, one)
    certainty = Certainty.POSSIBLE if is_blind(case) or helpers.pausing or is_doubtful else Certainty.LIKELY
    others = helpers.waiting or (helpers.pausing if helpers.is_open else [])
    explains = frozenset([*case.root.nodes, *(p.key for p in parents)])
    return Found(finding=_finding(scene, one, others, parents, certainty, lost=case.lost), explains=explains)


def _at_own_file(scene: Scene) -> Iterator[Found]:
    """Processes that try again and again for a lock on a file that they have themselves, over another descriptor."""
    for root, one in scene.process_roots():
        path = own_lock_tried(one)
        if path is None:
            continue
        summary = f"{one.where()} tries again and again to lock {path}, which it has locked itself over another descriptor"
        evidence = [
            stack_evidence(one),
            proc_evidence(one, f"pid {one.process.pid} holds the lock on {path}, and tries for it once more"),
        ]
        remedy = ["give the first lock or transaction back before its process waits for the second, or use one object or connection for both"]
        finding = make_finding(ID, NAME, CAUSE, Certainty.LIKELY, summary, who=[one.who()], evidence=evidence, remedy=remedy, phase=one.phase)
        yield Found(finding=finding, explains=frozenset(root.nodes))


def _in_rings_of_threads(scene: Scene) -> Iterator[Found]:
    """Processes whose threads have the locks that they wait for, as their source names them; nobody else need wait for such a process."""
    lonely = (pair for kind in ("driver", "child", "ray-worker") for pair in scene.lonely(kind))
    for root, one in (*scene.process_roots(), *lonely):
        if ring := ring_of_threads(one):
            yield Found(finding=finding_of_ring(scene, one, ring, (ID, NAME, CAUSE)), explains=frozenset(root.nodes))


def _at_variables(scene: Scene) -> Iterator[Found]:
    """Threads that look again and again at variables which only they themselves could change."""
    for root, one in scene.process_roots():
        if one.telling is None or not looks_at_variables(scene.view, one):
            continue
        own = [t for t in one.threads if looks_at(t) is not None]
        others = f", and so do {len(own) - 1} other threads of it" if len(own) > 1 else ""
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.LIKELY,
            f"{one.where()} looks again and again at variables of its own in {one.inside()}{others}; no thread is left that changes them",
            who=[one.who()],
            evidence=[*(stack_evidence(one, thread=t) for t in own[:4]), proc_evidence(one, scene.reason(one))],
            remedy=[
                "read the conditions of these loops: what they look at is changed by a thread that has ended, or by nobody in this state",
                "let a thread report its end, and give such loops a time limit",
            ],
            phase=one.phase,
        )
        yield Found(finding=finding, explains=frozenset(root.nodes))


def _at_own_locks(scene: Scene) -> Iterator[tuple[Root, Seen]]:
    """Processes at a lock, whether or not somebody is seen to wait for them. The line calls nothing: it can only be ``with lock:``."""
    for kind in ("child", "ray-worker"):
        for root, one in scene.lonely(kind):
            place = one.place
            if place is not None and one.telling is not None and place.kind is Kind.LOCK and place.own == 0 and one.telling.frames[0].calls == ():
                yield root, one


def _closed_drivers(scene: Scene) -> Iterator[tuple[Root, Seen]]:
    """Drivers that wait for threads of their own, all of which wait inside of the program: nobody but the user waits for a driver."""
    for root, one in scene.lonely("driver"):
        thread, core = one.telling, one.core
        if thread is None or core is None or core.owned or one.process.async_tasks or not only_ray_connects(scene.view, one):
            continue
        waits_for_own = thread.place.kind is Kind.FUTURE or (thread.place.kind is Kind.JOIN and one.followed is not None)
        others = [t for t in one.threads if t is not thread and t.place.path and t.score > 0 and not t.is_apart]
        if waits_for_own and others and all(_waits_inside(one, t) for t in others):
            yield root, one


def _waits_inside(one: Seen, thread: SeenThread) -> bool:
    """Does a thread wait for another one, without a limit, and not for its next piece of work?"""
    at = thread.place.path[0][0]
    return thread.place.kind in LOCKS and not serves_by_name(at) and not wakes_by_itself(one.process.python, thread.frames) and not thread.listens


def _rings(scene: Scene) -> Iterator[Found]:
    """Processes that wait for each other by other means than Ray calls and collectives: locks on files, sockets, and what goes with them."""
    for ring in rings(scene):
        if not ring.is_of_pipes:
            yield ring_found(scene, ring, ID, NAME, CAUSE, remedy_of(ring))


def _kept(scene: Scene) -> Iterator[Found]:
    """An idle process that has kept a lock on a file that others try to get: no call of it is left that could give it back."""
    for root, one in scene.process_roots():
        into = [e for e in scene.graph.into([one.key]) if e.why is Why.TRIED_LOCK]
        if not into or not one.is_idle or one.is_stopped:
            continue
        others = [o for o in scene.view if o.key not in (one.key, *root.waiters) and o.identity.job_id == one.identity.job_id]
        may_call = any(o.is_at_work for o in others)
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            weaker(into[0].certainty, Certainty.POSSIBLE if may_call else Certainty.LIKELY),
            f"{one.where()} is idle but still holds the lock on a file; {waits(len(root.waiters))} for it",
            who=[one.who()],
            evidence=[Evidence(kind="proc", where=scene.who(e.source).label, text=e.evidence) for e in into[:3]],
            remedy=["take the lock in a with statement, so that an exception gives it back", "give acquires a time limit"],
        )
        yield Found(finding=finding, explains=frozenset(root.nodes))


def _served_under_lock(scene: Scene) -> Iterator[Found]:
    """A process that holds a lock while it waits for another, which waits for an answer that needs the lock."""
    for root, _, edges in scene.cycles():
        for edge in edges:
            thread = thread_at_own_lock(scene, edge)
            if thread is None:
                continue
            client, server = scene.view.seen[edge.source], scene.view.seen[edge.target]
            finding = make_finding(
                ID,
                NAME,
                CAUSE,
                Certainty.LIKELY,
                f"{server.where()} {server.does()}, and {client.where()} waits for an answer of its thread {thread.called}, "
                f"which {describe_place(thread.place)}",
                who=[server.who()],
                evidence=[
                    stack_evidence(server),
                    stack_evidence(server, thread=thread),
                    stack_evidence(client),
                    Evidence(kind="socket", where=client.where(), text=edge.evidence),
                ],
                remedy=["release the lock before waiting for another process", "give the request a time limit"],
                phase=client.phase,
            )
            yield Found(finding=finding, explains=frozenset(root.nodes), rests_on=frozenset([client.key, server.key]))


def _lost_one(scene: Scene, one: Seen) -> bool:
    """Has a worker of its pool ended, or does one replace another? Else one that was not seen may well have the task.

    An engine that reads its requests in a thread of its own is no worker of many.
    """
    children = [c for c in scene.view.children(one) if not is_tracker(c)]
    if any(c.kind is Kind.QUEUE for c in children):
        return True
    started_s = [c.process.start_time_s for c in children if c.process.start_time_s is not None]
    replaced = bool(started_s) and max(started_s) - min(started_s) > STARTED_TOGETHER_S
    lacks_reader = lost_reader(scene.view, one) and not may_lack_holder(scene.view, one)
    return replaced or any(c.has_ended for c in children) or lacks_taker(one) or ends_in_vain(one) or lacks_reader


def _finding(scene: Scene, one: Seen, others: list[SeenThread], parents: list[Seen], certainty: Certainty, *, lost: bool) -> Finding:
    if lost and ends_in_vain(one):
        said = "; its workers end before they have delivered anything, and the pool makes others in their places"
    elif lost and lacks_taker(one):
        said = "; the thread of its pool that takes results has ended, so that none arrives: most likely it could not unpickle an error"
    elif lost and (feeder := feeder_at_work(one)) is not None:
        said = f"; all its worker processes wait for work, and the thread of its pool that hands it out {describe_place(feeder.place)}"
    elif lost and lost_reader(scene.view, one):
        said = "; all its workers wait at the lock of their queue, and none of them has it: most likely it went with one that was killed"
    elif lost:
        said = "; all its worker processes wait for work: the task is lost, most likely with a worker that was killed"
    elif one.lane_of is not None:
        said = "; other calls of it finish, and none of them ends this wait"
    elif lost_lock(scene.view, one):
        said = "; none of those who have this lock of multiprocessing has taken it: it went with a process that was replaced since"
    elif one.followed is not None and one.kind is Kind.SOCKET:
        said = (
            f" for the answer to a stream; its thread {one.followed.called} has not sent the stream's end, and {describe_place(one.followed.place)}"
        )
        others = [one.followed]
    elif others:
        said = f"; its thread {others[0].called} {describe_place(others[0].place)}"
    elif one.process.kind == "child" and parents:
        said = "; it has no other thread that could release it (a lock inherited over a fork has no owner)"
    elif one.telling is not None and is_in_handler(one.telling.frames):
        said = " in the handler of a signal: the code that the signal interrupted may hold it, and that goes on only behind the handler"
    elif one.kind is Kind.FUTURE and (late := left_behind(one.process)) is not None:
        since_s = -(late.awaited.due_s or 0.0) if late.awaited is not None else 0.0
        said = f"; coroutine {late.name} at {line_of(late)} should have gone on {since_s:.0f} s ago, and no thread runs its loop"
    elif one.kind is Kind.FUTURE and living_workers(one) == 0:
        said = "; its pool of processes has no worker left, and makes no other"
    elif len(one.threads) == 1:
        said = "; no other thread of it was seen that could release it"
    else:
        said = "; none of its other threads works, so none can release it"
    threads = [Evidence(kind="stack", where=f"{one.where()} thread {t.called}", text=describe_place(t.place)) for t in others[:3]]
    return make_finding(
        ID,
        NAME,
        CAUSE,
        certainty,
        f"{one.where()} {one.does()}{said}",
        who=[*(p.who() for p in parents), one.who()],
        evidence=[stack_evidence(one, thread=one.telling), *threads, proc_evidence(one, scene.reason(one))],
        remedy=[
            *(["take no lock in a signal's handler; try without the profiler or watchdog that sends the signal"] if " handler " in said else []),
            *(["give that pool no max_tasks_per_child: make a new pool now and then instead"] if "no worker left" in said else []),
            "take locks in the same order everywhere; never fork while threads hold locks (use the start method spawn)",
            "give joins, queue reads and acquires a time limit, and let the feeding thread report its death",
        ],
        phase=one.phase,
    )
