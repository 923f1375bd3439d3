"""Several jobs on one cluster told apart: which one was meant, which process belongs to which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ray_rl_debug.model.errors import UsageError
from ray_rl_debug.model.snapshot import CoreWorker, Node, Process, RayJob, RayState, Snapshot

DAEMONS = frozenset({"raylet", "gcs", "ray-system"})


def choose_job(wanted: str | None, jobs: Sequence[RayJob]) -> str | None:
    """The hex id of the job meant by its id or its submission id; None when none was asked for.

    Raises:
        UsageError: there is no such job; the hint lists those that are there.
    """
    if wanted is None:
        return None
    for job in jobs:
        if wanted.lower() == job.job_id or wanted == job.submission_id:
            return job.job_id
    known = sorted(jobs, key=lambda j: (not j.alive, j.job_id))
    listed = "; ".join(_describe(j) for j in known[:8]) + (f"; and {len(known) - 8} more" if len(known) > 8 else "")
    raise UsageError(f"there is no job {wanted} on this cluster", hint=f"jobs here: {listed}" if known else "the cluster has no jobs")


def _describe(job: RayJob) -> str:
    parts = [job.job_id, *([job.submission_id] if job.submission_id else []), *([job.entrypoint[:60]] if job.entrypoint else [])]
    return " ".join(parts) + ("" if job.alive else " (ended)")


def pids_of_others(job: str | None, state: RayState, workers: Iterable[CoreWorker]) -> dict[str, tuple[int, ...]]:
    """By node id: workers that belong to other jobs or to none, so that they need not be looked at. Empty without a chosen job."""
    if job is None:
        return {}
    of_job = {(a.node_id, a.pid) for a in state.actors if a.job_id == job and a.pid}
    found: dict[str, list[int]] = {}
    for worker in workers:
        if worker.node_id is None or worker.kind == "DRIVER" or (worker.node_id, worker.pid) in of_job:
            continue
        if not is_id(worker.job_id) or worker.job_id != job:
            found.setdefault(worker.node_id, []).append(worker.pid)
    return {node_id: tuple(sorted(pids)) for node_id, pids in found.items()}


def is_id(job: str | None) -> bool:
    """Spare workers that Ray starts before any job carry an id of all ones (or none)."""
    return bool(job and job.strip("fF"))


def with_jobs(snapshot: Snapshot) -> Snapshot:
    """The job of every process that Ray's tables or its ancestors tell: a spare worker learns its job after it has started."""
    state = snapshot.ray
    if state is None:
        return snapshot
    by_place: dict[tuple[str | None, int], str] = {}
    for worker in state.core_workers:
        if is_id(worker.job_id) and worker.job_id is not None:
            by_place[(worker.node_id, worker.pid)] = worker.job_id
    for actor in state.actors:
        if actor.pid and actor.state == "ALIVE":
            by_place[(actor.node_id, actor.pid)] = actor.job_id
    # Raylets that share a machine are one node to a capture without Ray: its processes are found by the machine's address.
    ips = {n.node_id: n.ip for n in state.nodes}
    by_place |= {(ips[node_id], pid): job for (node_id, pid), job in by_place.items() if node_id in ips}
    drivers = {(j.driver_ip, j.driver_pid): j.job_id for j in state.jobs if j.driver_pid is not None}
    return msgspec.structs.replace(snapshot, nodes=tuple(_node_with_jobs(n, by_place, drivers) for n in snapshot.nodes))


def _node_with_jobs(node: Node, by_place: Mapping[tuple[str | None, int], str], drivers: Mapping[tuple[str | None, int], str]) -> Node:
    processes = {p.pid: p for p in node.processes}

    def job_of(process: Process, depth: int = 0) -> str | None:
        told = by_place.get((node.node_id or node.ip, process.pid)) or (drivers.get((node.ip, process.pid)) if process.kind == "driver" else None)
        if told or process.job_id or process.kind in DAEMONS or depth > 50:
            return told or process.job_id
        parent = processes.get(process.ppid) if process.ppid is not None else None
        return job_of(parent, depth + 1) if parent is not None and process.kind != "ray-worker" else None

    # most keep what they have: a thousand nodes have a hundred thousand processes
    jobs = [job_of(p) for p in node.processes]
    if all(job == p.job_id for job, p in zip(jobs, node.processes, strict=True)):
        return node
    found = (p if job == p.job_id else msgspec.structs.replace(p, job_id=job) for job, p in zip(jobs, node.processes, strict=True))
    return msgspec.structs.replace(node, processes=tuple(found))


def keep_job(snapshot: Snapshot, job: str | None) -> Snapshot:
    """Only one job's processes, actors, tasks, workers and placement groups, with Ray's daemons and nodes; the snapshot itself without one."""
    if job is None:
        return snapshot
    nodes = tuple(msgspec.structs.replace(n, processes=tuple(p for p in n.processes if _is_kept(p, job))) for n in snapshot.nodes)
    state = snapshot.ray
    if state is not None:
        state = msgspec.structs.replace(
            state,
            jobs=tuple(j for j in state.jobs if j.job_id == job),
            actors=tuple(a for a in state.actors if a.job_id == job),
            workers=tuple(w for w in state.workers if w.job_id in (job, None)),
            tasks=tuple(t for t in state.tasks if t.job_id in (job, None)),
            placement_groups=tuple(g for g in state.placement_groups if g.job_id in (job, None)),
            core_workers=tuple(w for w in state.core_workers if w.job_id == job),
        )
    return msgspec.structs.replace(snapshot, nodes=nodes, ray=state)


def _is_kept(process: Process, job: str) -> bool:
    if process.kind in DAEMONS or process.job_id == job:
        return True
    return process.job_id is None and process.kind not in ("ray-worker", "driver")
