"""Edges of coroutines: to the process at the other end of the socket they read, and to dead actors that should have completed what they await.

Nothing records who would have completed a future. What can be known: the call waits, no other process owes it anything, and an actor of the
same job died by itself after the call had begun.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ray_rl_debug.analyze.await_chains import answers_call, awaits_core, pass_work_on
from ray_rl_debug.analyze.connections import is_rays, is_served, lacks_client, socket_owners
from ray_rl_debug.analyze.coroutines import SERVES_RANK, End, is_ray_call, is_write, rank, waits_inside
from ray_rl_debug.analyze.deaths import how_dead
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.known_edges import all_waiters
from ray_rl_debug.analyze.library_frames import short_name
from ray_rl_debug.analyze.lost_ends import lacks_child
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.nodes import NodeKind, node_of
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.shapes import has_coroutines
from ray_rl_debug.analyze.view import SHELLS, View, program_of
from ray_rl_debug.analyze.waits_children import has_orphans, has_process_pool, to_unseen, to_unseen_child, waits_for_work, writers_of
from ray_rl_debug.analyze.waits_system import descriptor_edges
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import RayActor

HANDED_OVER = frozenset({"queue", "event", "future", "condition"})
"""What other parties complete; a semaphore or lock is released by a coroutine of the process itself."""


def awaited_socket_edges(view: View) -> Iterator[Edge]:
    """Edges from processes whose coroutines await an answer to those who owe it. Whoever waits for the next request by design is left out."""
    for one in view.like_parts(has_coroutines):
        for end in one.ends:
            if not end.may_be_still or (rank(end) >= SERVES_RANK and not (_has_piece(one, end) and waits_inside(one.ends))):
                continue
            if not end.is_still:
                yield from (to_unseen(one, f"the other end of descriptor {fd}", Why.AWAITED_SOCKET) for fd in sorted(end.descriptors))
                continue
            writes = is_write(end.awaited)
            by_fd: dict[int, int] = {}
            for task in end.tasks:
                if task.awaited is not None and task.awaited.fd is not None:
                    by_fd[task.awaited.fd] = by_fd.get(task.awaited.fd, 0) + 1
            for fd, count in by_fd.items():
                reason = f"{count} coroutine{'s wait' if count > 1 else ' waits'} at {end.at}"
                edges = [*descriptor_edges(view, one, fd, socket_owners(view), Certainty.PROVEN, reason, writes=writes)]
                if not edges and any(s.fd == fd and lacks_client(view, one, s) for s in one.process.sockets or ()):
                    edges = [to_unseen(one, f"the other end of descriptor {fd}")]
                yield from (msgspec.structs.replace(edge, why=Why.AWAITED_SOCKET) for edge in edges)
            if any(map(awaits_core, end.tasks)):
                yield from _core_edges(view, one, end)


def _has_piece(one: Seen, end: End) -> bool:
    """Do coroutines that pass work on by design wait for answers, as clients? What others of the process wait for may be in these."""
    asked = [s for s in one.process.sockets or () if s.fd in end.descriptors]
    return bool(asked) and not any(is_served(one, s) for s in asked) and pass_work_on(end.tasks)


INPUT = "input"
"""What coroutines wait for that have written more to a child than it has read."""
_CONNECTIONS = "its connections"


def _core_edges(view: View, one: Seen, end: End) -> Iterator[Edge]:
    """Of coroutines of gRPC, whose core alone knows the connection: to the other ends of all that it may be."""
    serves, owners = any(map(answers_call, end.tasks)), socket_owners(view)
    known = [s for s in one.process.sockets or () if s.family.startswith("tcp") and s.state != "LISTEN" and s.fd is not None]
    sockets = [s for s in known if is_served(one, s) is serves and not is_rays(view, one, s, owners)]
    reason = f"{len(end.tasks)} coroutine{'s wait' if len(end.tasks) > 1 else ' waits'} at {end.at} for a step of gRPC"
    edges = [e for s in sockets for e in descriptor_edges(view, one, s.fd or 0, owners, Certainty.LIKELY, reason, writes=is_write(end.awaited))]
    if not sockets:
        edges = [to_unseen(one, f"the other end of a call of pid {one.process.pid}")]
    among = _CONNECTIONS if len(sockets) > 1 else ""
    yield from (msgspec.structs.replace(edge, why=Why.AWAITED_SOCKET, among=edge.among or among) for edge in edges)


def awaited_child_edges(view: View) -> Iterator[Edge]:
    """Edges from processes whose coroutines await the end or the output of a child process, or that it reads; not to servers, which do not end."""
    for one in view.like_parts(has_coroutines):
        for end in one.ends:
            if not end.may_be_still or rank(end) >= SERVES_RANK:
                continue
            awaited = {t.awaited.pid for t in end.tasks if t.awaited is not None and t.awaited.pid is not None}
            children = [c for c in view.children(one) if c.process.pid in awaited]
            children = [c for c in (*children, *_adopted(view, one, awaited)) if _may_end(c)]
            for child in children[:1]:  # of many tools at one line one stands for all
                evidence = f"{len(end.tasks)} coroutine{'s wait' if len(end.tasks) > 1 else ' waits'} at {end.at} for child pid {child.process.pid}"
                evidence += f" and {len(children) - 1} more children" if len(children) > 1 else ""
                op = INPUT if all(t.awaited is not None and (t.awaited.detail or "").endswith(INPUT) for t in end.tasks) else ""
                sure = Certainty.PROVEN if end.is_still else Certainty.POSSIBLE  # whether it stood at both reads is not known
                yield Edge(source=one.key, target=child.key, why=Why.AWAITED_CHILD, op=op, evidence=f"{evidence}: {child.at()}", certainty=sure)
            for pid in sorted(awaited):
                if (one.node.name, pid) not in view.by_node_pid and pid not in {e.pid for e in one.node.ended}:
                    yield to_unseen(one, f"child {pid}", Why.AWAITED_CHILD)
            if end.awaited.kind == "subprocess" and not awaited:
                yield from _to_left_behind(view, one, end)


def awaited_pool_edges(view: View) -> Iterator[Edge]:
    """Edges from processes whose coroutines await a result of a pool of processes to the workers of the pool that have work.

    Which of them has the piece that is awaited is not known: any may bring it, also one that was not seen. A thread that works in the process may
    have it as well.
    Who gave up in time meanwhile and asks once more waits for them as well.
    """
    for one in view.like_parts(has_coroutines):
        ends = [e for e in one.ends if e.awaited.kind == "executor" and rank(e) < SERVES_RANK]
        if not ends or not has_process_pool(one) or any(_has_item(t) for t in one.threads):
            continue
        for child in view.children(one):
            if child.has_ended or not _is_worker(child) or (waits_for_work(child) and child.motion is not Motion.MOVING):
                continue
            evidence = f"{len(ends[0].tasks)} at {ends[0].at} for a result of its pool; pid {child.process.pid} has work: {child.at()}"
            yield Edge(source=one.key, target=child.key, why=Why.CHILD_QUEUE, evidence=evidence, certainty=Certainty.LIKELY, among=POOL_WORKERS)
        if has_orphans(view, one) or lacks_child(view, one, ended=sum(c.has_ended for c in view.children(one))):
            yield msgspec.structs.replace(to_unseen_child(one, Why.CHILD_QUEUE), among=POOL_WORKERS)


POOL_WORKERS = "workers of its pool"


def _has_item(thread: SeenThread) -> bool:
    """Is it a thread of a pool with a piece of work?"""
    return any(short_name(f.function) == "run" and f.file.endswith("concurrent/futures/thread.py") for f in thread.frames)


def _is_worker(child: Seen) -> bool:
    """Does it take its work from such a pool? Of one whose stack was not read nobody knows."""
    frames = (f for t in child.threads for f in t.frames)
    return not child.threads or any(short_name(f.function) == "_process_worker" and f.file.endswith("concurrent/futures/process.py") for f in frames)


def _adopted(view: View, one: Seen, pids: Iterable[int]) -> list[Seen]:
    """Of these the ones that do not say whose children they are, as only a parent may wait for their end; and what shells among them run, if seen."""
    keys = (view.by_node_pid.get((one.node.name, pid)) for pid in pids)
    found = [view.seen[key] for key in keys if key is not None]
    shells = [s for s in found if program_of(s.process) in SHELLS and not s.threads and s.process.ppid == one.process.pid]
    return [s for s in found if s.process.ppid is None] + [s for shell in shells for s in (view.children(shell) or (shell,))]


def _to_left_behind(view: View, one: Seen, end: End) -> Iterator[Edge]:
    """The program itself has ended. Its output is open as long as somebody holds the pipe, whom it has left behind; only where this is one pipe."""
    pipes = [f for f in one.process.files or () if f.kind == "pipe" and f.writable is False and f.inode is not None and (f.fd or 0) > _STANDARD_ERROR]
    for pipe in pipes if len(pipes) == 1 else ():
        for holder in writers_of(view, one, pipe):
            evidence = f"{end.at} reads the output of a program that has ended; pid {holder.process.pid} holds {pipe.path} open"
            yield Edge(source=one.key, target=holder.key, why=Why.PIPE, evidence=evidence, certainty=Certainty.LIKELY)


_STANDARD_ERROR = 2


def _may_end(child: Seen) -> bool:
    return not child.has_ended and not any(s.state == "LISTEN" for s in child.process.sockets or ())


def async_edges(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """Edges to dead actors; `known` are the edges found so far."""
    sources = {e.source for e in known}
    for one in view.like(has_coroutines):
        if one.key in sources or not _awaits(one):
            continue
        began_s, sure_of_all = _call_began_s(view, one), Certainty.LIKELY
        if (full_since := _filled_since_s(view, one)) is not None:
            began_s, sure_of_all = full_since, _sure_of_takers(view, one, known)
        for actor in view.ray.actors if view.ray else ():
            if not _died_since(actor, began_s or 0.0) or actor.job_id != one.identity.job_id:
                continue
            sure = sure_of_all if began_s is not None and actor.end_time_s is not None else Certainty.POSSIBLE
            when = "meanwhile" if actor.end_time_s is not None else "at a time that was not read"
            awaits = "awaits" if full_since is None else "its queue is full, and it awaits that somebody takes from it,"
            evidence = f"{awaits} in {one.identity.method or 'its call'}; {actor.name or actor.class_name} died {when}: {how_dead(actor)}"
            op = "" if full_since is None else ROOM
            target = node_of(NodeKind.ACTOR, actor.actor_id)
            yield Edge(source=one.key, target=target, why=Why.DEAD_MEANWHILE, op=op, evidence=evidence, certainty=sure)


def _awaits(one: Seen) -> bool:
    tasks = one.process.async_tasks
    runs = bool(one.core and one.core.running_task_ids) or any(is_ray_call(t) for t in tasks or ())
    if not one.is_idle or one.is_stopped or one.motion is Motion.MOVING or not runs:
        return False
    return tasks is None or any(t.awaited is not None and t.awaited.kind in HANDED_OVER for t in tasks)


def _filled_since_s(view: View, one: Seen) -> float | None:
    """When the queue of an actor was made whose coroutines wait for room in it. Who takes may have died before the last call: a queue fills later."""
    tasks = one.process.async_tasks or ()
    waits = [t.awaited for t in tasks if t.awaited is not None and t.awaited.kind in HANDED_OVER]
    is_full = bool(waits) and all(w.kind == "queue" and (w.detail or "").startswith(FULL) for w in waits)
    return one.actor.start_time_s if is_full and one.actor is not None else None


ROOM = "room in a queue"
FULL = "Queue.put full"
"""What is told of a coroutine that waits for room in a queue."""


def _sure_of_takers(view: View, one: Seen, known: Sequence[Edge]) -> Certainty:
    """Does everybody of the job who lives wait for this queue? Else somebody may take from it later on."""
    there = {one.key, *all_waiters(one.key, known)}
    actors = (a for a in (view.ray.actors if view.ray else ()) if a.state != "DEAD" and a.job_id == one.identity.job_id)
    processes = (view.actor_process(a.actor_id) for a in actors)
    others = [s for s in view if s.process.kind in ("driver", "ray-worker") and s.identity.job_id == one.identity.job_id and s.key not in there]
    return Certainty.POSSIBLE if others or None in processes else Certainty.LIKELY


def _call_began_s(view: View, one: Seen) -> float | None:
    running = set(one.core.running_task_ids) if one.core else set()
    starts = [t.state_times_s.get("RUNNING") for t in view.ray.tasks if t.task_id in running] if view.ray else []
    known = [s for s in starts if s is not None]
    return min(known) if known else None


def _died_since(actor: RayActor, moment_s: float) -> bool:
    by_itself = actor.state == "DEAD" and actor.death_kind not in ("out-of-scope", "exited")
    return by_itself and (actor.end_time_s is None or actor.end_time_s >= moment_s)
