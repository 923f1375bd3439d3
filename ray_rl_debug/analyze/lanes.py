"""Lanes: the calls of one method that an actor runs beside others, as activities of their own.

An actor with several threads, concurrency groups or coroutines may go on in one call and hang in another: calls that finish say that the process
moves, and nothing of the others. A lane is made where such a process has calls that stand, so that whoever waits for one of them waits for that
call and not for the process. All calls of one method are one lane, because Ray's tables do not tell which thread runs which of them: the lane stands
only if all of them do. Where the threads or coroutines cannot be told, there is no lane, and the process stays what is waited for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from ray_rl_debug.analyze.await_chains import serves_by_name
from ray_rl_debug.analyze.coroutines import LOCKS, OUTSIDE, Coroutines, is_ray_call, serves
from ray_rl_debug.analyze.held_locks import lock_ring
from ray_rl_debug.analyze.kinds_of_places import IDLE_KINDS, THREAD_WAITS, WAITS_FOR_RANKS, WAITS_FOR_RAY, Kind
from ray_rl_debug.analyze.library_frames import short_name
from ray_rl_debug.analyze.main_activity import Looks, SeenThread, follow
from ray_rl_debug.analyze.nodes import NodeKind, node_of
from ray_rl_debug.analyze.places import Place
from ray_rl_debug.analyze.progress import Motion, comes_round, motion_of
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.stacks import Stacks
from ray_rl_debug.analyze.thread_scores import executes
from ray_rl_debug.model.snapshot import AsyncTask, Process, RayTask

_STANDS = THREAD_WAITS | WAITS_FOR_RAY | WAITS_FOR_RANKS | {Kind.FILE, Kind.FLOCK, Kind.SOCKET, Kind.CHILD}
"""Where the thread of a call stands for good until somebody ends its wait."""
_AWAITS = LOCKS | (OUTSIDE - {"executor"}) | {"future", "event", "condition", "queue", "task", "gather"}
"""The same of coroutines; what an executor does is told by its threads."""


def motion_behind(looks: Looks, telling: SeenThread, threads: Sequence[SeenThread]) -> tuple[Motion, str] | None:
    """Does a thread go on for which the telling one waits? The one that is known, else any that works; the best of them counts."""
    if lock_ring(telling, threads):
        return None  # no thread outside of the ring can end it
    followed = follow(telling, threads)
    others = [followed] if followed is not None else [t for t in threads if t is not telling and t.score > 0 and t.place.path]
    met = [(t, looks.places_of(t)) for t in others]
    found = [(t, *motion_of(looks.process, places, t.kernel, None)) for t, places in met if not comes_round(looks.process, places, t.kernel)]
    for wanted in (Motion.MOVING, Motion.BUSY):
        for thread, motion, reason in found:
            if motion is wanted and (wanted is Motion.MOVING or followed is not None):
                return motion, f"its thread {thread.called}: {reason}"
    return None


def waits_within(lane: Seen) -> bool:
    """Does the lane wait for what another part of its process should give it?"""
    if lane.kind in IDLE_KINDS:
        return any(e.awaited.kind not in LOCKS | OUTSIDE for e in lane.ends)
    thread = lane.followed or lane.telling
    return thread is not None and thread.place.kind in THREAD_WAITS


def is_old(one: Seen, call: RayTask | None) -> bool:
    """Did a call begin before the window? Calls that finished meanwhile are others then."""
    began_s = call.state_times_s.get("RUNNING") if call is not None else None
    return began_s is not None and began_s < one.node.started_time_s


def find_lanes(stacks: Stacks, seen: Iterable[Seen], tasks: Mapping[str, RayTask]) -> Iterator[Seen]:
    """The lanes that stand in actors that move, `tasks` being Ray's calls by id.

    A rank of a world that runs no other call stands as a whole: other ranks wait for the process, and not for a call of it.
    """
    for one in seen:
        running = one.core.running_task_ids if one.motion is Motion.MOVING and one.core is not None else ()
        if not running or one.process.kind != "ray-worker" or one.is_stopped:
            continue
        calls: dict[str, list[str]] = defaultdict(list)
        for task_id in running:
            calls[tasks[task_id].name.rpartition(".")[2] if task_id in tasks else ""].append(task_id)
        old = [m for m in sorted(calls) if m and not serves_by_name(m) and all(is_old(one, tasks.get(n)) for n in calls[m])]
        if not old:
            continue
        looks = Looks(stacks, one.node, one.process)
        for method in old:
            ids = calls[method]
            lane = _of_threads(looks, one, method, ids) or _of_coroutines(looks, one, method, ids)
            if lane is not None and one.identity.rank is not None and len(running) == 1 and not waits_within(lane):
                yield msgspec.structs.replace(one, motion=lane.motion, motion_reason=lane.motion_reason)
            elif lane is not None and lane.kind not in WAITS_FOR_RANKS:
                yield lane


def _of_threads(looks: Looks, one: Seen, method: str, ids: Sequence[str]) -> Seen | None:
    """The lane of calls that threads run; None where they are not all seen to stand."""
    threads = [t for t in one.threads if executes(t.sample, t.frames) and any(short_name(f) == method for f, _, _ in t.place.path)]
    if len(threads) != len(ids) or any(t.place.kind not in _STANDS or t.place.timed for t in threads):
        return None
    helpers = _helpers(one)
    if any(_motion(looks, t) is not Motion.FROZEN for t in threads):
        return None
    if any(t.place.kind in THREAD_WAITS for t in threads) and _may_help(looks, threads[0], helpers):
        return None
    tids = {t.tid for t in threads}
    process = msgspec.structs.replace(
        one.process,
        object_refs=tuple(r for r in one.process.object_refs if r.tid in tids or r.tid is None),
        async_tasks=() if one.process.async_tasks is not None else None,
    )
    return _lane(one, method, ids, process, (*threads, *helpers), looks.places_of(threads[0]), f"{_count(ids, method)} at one line in all samples")


def _of_coroutines(looks: Looks, one: Seen, method: str, ids: Sequence[str]) -> Seen | None:
    """The lane of calls that coroutines run, with all that these await inside of the process."""
    known = {t.address: t for t in one.process.async_tasks or ()}
    calls = [t for t in known.values() if is_ray_call(t) and any(short_name(f.function) == method for f in t.chain)]
    loop = next((t for t in one.threads if calls and t.tid == calls[0].tid and t.place.kind in IDLE_KINDS), None)
    if len(calls) != len(ids) or loop is None or any(serves(t) for t in calls):
        return None
    tasks = _awaited_by(calls, known)
    if not all(t.stable and t.awaited is not None and t.awaited.kind in _AWAITS for t in tasks):
        return None
    process = msgspec.structs.replace(
        one.process, object_refs=tuple(r for r in one.process.object_refs if r.tid == loop.tid), async_tasks=tuple(tasks)
    )
    if not all(end.is_still for end in Coroutines(process).ends) or _may_help(looks, loop, _helpers(one)):
        return None
    return _lane(one, method, ids, process, (loop, *_helpers(one)), looks.places_of(loop), f"{_count(ids, method)} at one line in both reads")


def _awaited_by(calls: Sequence[AsyncTask], known: Mapping[int, AsyncTask]) -> list[AsyncTask]:
    """These coroutines and all that they await, also those that hold the locks they want."""
    found: dict[int, AsyncTask] = {}
    pending = list(calls)
    while pending:
        task = pending.pop()
        if task.address not in found:
            found[task.address] = task
            pending += [known[a] for a in (*task.awaited.tasks, *task.awaited.holders) if a in known] if task.awaited is not None else []
    return sorted(found.values(), key=lambda t: t.address)


def _helpers(one: Seen) -> tuple[SeenThread, ...]:
    """Threads of the process that run no call of Ray, and are not at rest."""
    return tuple(t for t in one.threads if t.score > 0 and t.place.kind not in IDLE_KINDS and not executes(t.sample, t.frames))


def _may_help(looks: Looks, telling: SeenThread, helpers: Sequence[SeenThread]) -> bool:
    """Does one of these go on, or wake by itself? Then it may end a wait inside of the process."""
    others = [t for t in helpers if t is not telling and t.place.path and not t.is_apart]
    return any(t.place.timed or _motion(looks, t) is not Motion.FROZEN for t in others)


def _motion(looks: Looks, thread: SeenThread) -> Motion:
    return motion_of(looks.process, looks.places_of(thread), thread.kernel, None)[0]


def _count(ids: Sequence[str], method: str) -> str:
    return f"its call {method} stands" if len(ids) == 1 else f"its {len(ids)} calls {method} stand"


def _lane(one: Seen, method: str, ids: Sequence[str], process: Process, threads: Sequence[SeenThread], places: Sequence[Place], reason: str) -> Seen:
    key = node_of(NodeKind.LANE, f"{one.key}/{method}")
    core = one.core
    if core is not None:
        mine = tuple(o for o in core.owned if o.parent_task_id in ids)
        core = msgspec.structs.replace(core, running_task_ids=tuple(ids), executed_tasks=None, executed_tasks_before=None, owned=mine)
    return msgspec.structs.replace(
        one,
        key=key,
        lane_of=one.key,
        identity=msgspec.structs.replace(one.identity, key=key, method=method),
        process=process,
        threads=tuple(threads),
        telling=threads[0],
        followed=follow(threads[0], threads),
        places=tuple(places),
        group=None,
        motion=Motion.FROZEN,
        motion_reason=reason,
        core=core,
        coroutines=Coroutines(process) if process.async_tasks else None,
    )
