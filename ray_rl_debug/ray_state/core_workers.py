"""Live statistics of every Ray worker: answered by its C++ thread in milliseconds, even while its Python is stuck."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import CoreWorker, Gap, OwnedTask, RayState, RayWorker
from ray_rl_debug.ray_state.calls import CONCURRENCY, Method, NotAskedError, call_all
from ray_rl_debug.ray_state.channel import describe_failure, has_grpc
from ray_rl_debug.ray_state.raylets import WorkerCounts

LATE = ("DEADLINE_EXCEEDED", "TimeoutError")
"""How `describe_failure` begins for a call that had no answer in its time."""
SURE_S = 0.25
"""Who has not answered in this time is silent; in less it may be late."""
MOST_ASKED = 1000
"""Of a crowd: a second of one core. What thousands of ranks run stands in Ray's table of tasks as well."""

Told = Mapping[str, Mapping[str, WorkerCounts]]
"""What raylets told of their workers: by node id and worker id."""


def is_crowd(state: RayState, *, deadline_s: float = 2.0) -> bool:
    """Are there more workers than can be asked in this time, if some of them are silent?"""
    return _is_crowd(_answerable(state, ()), deadline_s)


def _is_crowd(workers: Sequence[RayWorker], deadline_s: float) -> bool:
    return deadline_s * CONCURRENCY < SURE_S * len(workers)


def _answerable(state: RayState, skip_nodes: Collection[str]) -> list[RayWorker]:
    return [w for w in state.workers if w.alive and w.ip and not w.ip.endswith(":0") and w.node_id not in skip_nodes]


def read_core_workers(
    state: RayState, *, deadline_s: float = 2.0, skip_nodes: Collection[str] = (), told: Told | None = None
) -> tuple[tuple[CoreWorker, ...], tuple[Gap, ...]]:
    """Statistics of every live worker and driver; one that does not answer is a gap (and a suspect).

    In a crowd nobody is asked of whom the raylet has told that it runs nothing and waits for nothing. Of the others the rare kinds are asked first:
    a few controllers wait for the calls of thousands of ranks. One gap tells how many were not asked.

    Args:
        deadline_s: For all of them together, however many are silent.
        skip_nodes: Ids of nodes whose workers are not asked.
        told: What the raylets told just now.
    """
    alive = _answerable(state, skip_nodes) if has_grpc() else []
    if not alive:
        return (), ()
    crowd = _is_crowd(alive, deadline_s)
    idle = _idle(alive, told) if crowd and told is not None else {}
    wanted = _rare_first([w for w in alive if w.worker_id not in idle], state)
    asked = wanted[:MOST_ASKED] if crowd else wanted
    from ray.core.generated import core_worker_pb2 as pb

    method = Method.of(pb, "CoreWorkerService", "GetCoreWorkerStats")

    def ask(channel: Any, number: int, seconds: float) -> Any:
        wanted_id = bytes.fromhex(asked[number].worker_id)
        return method.ask(
            channel, pb.GetCoreWorkerStatsRequest(intended_worker_id=wanted_id, include_memory_info=True, include_task_info=True), seconds
        )

    workers, silent, unasked = [], [], len(wanted) - len(asked)
    for worker, reply in zip(asked, call_all([w.ip or "" for w in asked], ask, deadline_s), strict=True):
        if isinstance(reply, NotAskedError) or (crowd and isinstance(reply, Exception) and describe_failure(reply).startswith(LATE)):
            unasked += 1
            continue
        try:
            if isinstance(reply, Exception):
                raise reply
            workers.append(_convert(worker, reply))
        except Exception as e:  # noqa: BLE001 a silent worker, or one that answers nonsense, is a fact of its own
            silent.append(Gap(id=gaps.WORKER_SILENT, where=f"pid {worker.pid}", what="live statistics of a Ray worker", reason=describe_failure(e)))
    if unasked:
        # where each has less than `SURE_S`, our own core may have been late: that is no silence
        what = f"live statistics of {unasked} of {len(alive)} Ray workers"
        silent.append(Gap(id=gaps.TRUNCATED, where="cluster", what=what, reason=f"more than can be asked in {deadline_s:.0f} s"))
    return (*workers, *idle.values()), tuple(silent)


def counted_workers(state: RayState, told: Told) -> tuple[CoreWorker, ...]:
    """What raylets told of live workers: their counts alone, nothing of what they run and own."""
    return tuple(_counted(w, counts) for w in state.workers if w.alive and (counts := _counts_of(w, told)) is not None)


def _counts_of(worker: RayWorker, told: Told) -> WorkerCounts | None:
    """As its own raylet told them: no raylet is believed about the workers of another one."""
    return told.get(worker.node_id or "", {}).get(worker.worker_id)


def _idle(workers: Iterable[RayWorker], told: Told) -> dict[str, CoreWorker]:
    """By id: those that run nothing and wait for nothing, so that their counts are all there is to tell."""
    found = {}
    for worker in workers:
        counts = _counts_of(worker, told) if worker.kind != "DRIVER" else None
        if counts is not None and counts.running_tasks == 0 and counts.pending_tasks == 0:
            found[worker.worker_id] = _counted(worker, counts)
    return found


def _counted(worker: RayWorker, counts: WorkerCounts) -> CoreWorker:
    return CoreWorker(
        pid=counts.pid or worker.pid,
        worker_id=worker.worker_id,
        node_id=worker.node_id,
        job_id=counts.job_id or worker.job_id,
        actor_id=counts.actor_id,
        kind=worker.kind,
        queue_length=counts.queue_length,
        pending_tasks=counts.pending_tasks,
        executed_tasks=counts.executed_tasks,
    )


def _rare_first(workers: Sequence[RayWorker], state: RayState) -> list[RayWorker]:
    """Drivers, then the first of each class of actors, the second of each, and so on; workers that no actor has come last."""
    classes = {a.worker_id: (a.job_id, a.class_name) for a in state.actors if a.worker_id}
    seen: Counter[tuple[str, str]] = Counter()
    order = []
    for worker in workers:
        kind = classes.get(worker.worker_id)
        number = seen[kind] if kind is not None else len(workers)
        if kind is not None:
            seen[kind] += 1
        order.append(-1 if worker.kind == "DRIVER" else number)
    return [worker for _, worker in sorted(zip(order, workers, strict=True), key=lambda pair: pair[0])]


def finish_core_workers(before: Iterable[CoreWorker], after: Iterable[CoreWorker]) -> tuple[CoreWorker, ...]:
    """The later statistics, each with the count of executed tasks at the start of the window."""
    earlier = {w.worker_id: w.executed_tasks for w in before}
    return tuple(msgspec.structs.replace(w, executed_tasks_before=earlier.get(w.worker_id)) for w in after)


def _convert(worker: RayWorker, reply: Any) -> CoreWorker:
    from ray.core.generated import common_pb2

    stats = reply.core_worker_stats
    statuses = {r.object_id[:24]: common_pb2.TaskStatus.Name(r.task_status) for r in stats.object_refs}
    return CoreWorker(
        pid=stats.pid or worker.pid,
        worker_id=worker.worker_id,
        node_id=worker.node_id,
        job_id=stats.job_id.hex() or worker.job_id,
        actor_id=(stats.actor_id.hex().strip("f") and stats.actor_id.hex()) or None,
        kind=worker.kind,
        running_task_ids=tuple(t.hex() for t in reply.running_task_ids),
        queue_length=stats.task_queue_length,
        pending_tasks=stats.num_pending_tasks,
        executed_tasks=stats.num_executed_tasks,
        owned=tuple(
            OwnedTask(
                task_id=e.task_id.hex(),
                name=e.name,
                status=statuses.get(e.task_id),
                actor_id=e.actor_id.hex() or None,
                parent_task_id=e.parent_task_id.hex() or None,
            )
            for e in reply.owned_task_info_entries
        ),
    )
