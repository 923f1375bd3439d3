"""Raylets asked directly: does each answer, how full is its object store, what do its workers count?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from ray_rl_debug.model.snapshot import ObjectStore, RayNode
from ray_rl_debug.ray_state.calls import CONCURRENCY, LEAST_S, Method, NotAskedError, call_all
from ray_rl_debug.ray_state.channel import SILENCE, describe_failure, has_grpc

FIRST_SHARE = 0.7
"""Of the time, for asking all raylets of a large cluster; the rest is for those that did not answer."""
STATS_SHARE = 0.7
"""Of a raylet's time, for all that it can tell; the rest is for the question whether it is there at all."""


class WorkerCounts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a raylet tells of one of its workers, which it asks for it."""

    pid: int
    job_id: str | None
    actor_id: str | None
    queue_length: int
    pending_tasks: int
    executed_tasks: int
    running_tasks: int | None
    """None: this version of Ray does not tell."""


class Raylets(msgspec.Struct, frozen=True, kw_only=True):
    """What the raylets of a cluster told, by node id."""

    silent: dict[str, str | None] = {}
    """None for one that answers, else why it does not."""
    stores: dict[str, ObjectStore] = {}
    workers: dict[str, dict[str, WorkerCounts]] = {}
    """By worker id. A raylet that answers and is missing here waits for one of its workers, which may be stopped."""


def look_at_raylets(nodes: Iterable[RayNode], *, deadline_s: float = 2.0) -> Raylets:
    """All that each raylet can tell in one call; one that has not told it in its time is asked whether it is there, as in `probe_raylets`."""
    if not has_grpc():
        return Raylets()
    pb, stats, load = _methods()

    def ask(channel: Any, _: int, seconds: float) -> Any:
        until = time.monotonic() + seconds
        try:
            reply = stats.ask(channel, pb.GetNodeStatsRequest(include_memory_info=False), STATS_SHARE * seconds)
            return _store(reply), {w.worker_id.hex(): _counts(w) for w in reply.core_workers_stats if w.worker_id}
        except Exception as e:
            if _why_silent(e) is not None and not describe_failure(e).startswith("DEADLINE"):
                raise
            load.ask(channel, pb.GetResourceLoadRequest(), max(LEAST_S, until - time.monotonic()))
            return None

    wanted = [n for n in nodes if n.port]
    is_crowd = len(wanted) > CONCURRENCY
    silent: dict[str, str | None] = {}
    stores: dict[str, ObjectStore] = {}
    workers: dict[str, dict[str, WorkerCounts]] = {}
    for node, reply in zip(wanted, _replies(wanted, ask, deadline_s * (FIRST_SHARE if is_crowd else 1.0)), strict=True):
        silent[node.node_id] = _why_silent(reply) if isinstance(reply, Exception) else None
        if isinstance(reply, tuple):
            stores[node.node_id], workers[node.node_id] = reply
    if is_crowd:
        silent |= _probe([n for n in wanted if silent[n.node_id] is not None], deadline_s * (1.0 - FIRST_SHARE))
    return Raylets(silent=silent, stores=stores, workers=workers)


def _store(reply: Any) -> ObjectStore:
    stats = reply.store_stats
    return ObjectStore(
        used_bytes=stats.object_store_bytes_used,
        capacity_bytes=stats.object_store_bytes_used + stats.object_store_bytes_avail,
        fallback_bytes=stats.object_store_bytes_fallback,
        spilled_bytes=stats.spilled_bytes_total,
        restored_bytes=stats.restored_bytes_total,
        pulls_pending=int(stats.object_pulls_queued) if "object_pulls_queued" in stats.DESCRIPTOR.fields_by_name else None,
    )


def _counts(w: Any) -> WorkerCounts:
    actor = w.actor_id.hex()
    return WorkerCounts(
        pid=w.pid,
        job_id=w.job_id.hex() or None,
        actor_id=(actor.strip("f") and actor) or None,
        queue_length=w.task_queue_length,
        pending_tasks=w.num_pending_tasks,
        executed_tasks=w.num_executed_tasks,
        running_tasks=w.num_running_tasks if "num_running_tasks" in w.DESCRIPTOR.fields_by_name else None,
    )


def probe_raylets(nodes: Iterable[RayNode], *, deadline_s: float = 2.0) -> dict[str, str | None]:
    """By node id: None for a raylet that answers, else why it does not. Stopped ones take the whole deadline, which is one for all.

    None as well for one that could not be asked in time: the GCS asks all raylets every few seconds, and these are alive by its table. Of more than
    can be asked at once the silent are asked again, when fewer wait for us: it may have been our own core that was late.
    """
    wanted = list(nodes)
    is_crowd = len(wanted) > CONCURRENCY
    found = _probe(wanted, deadline_s * (FIRST_SHARE if is_crowd else 1.0))
    if is_crowd:
        found |= _probe([n for n in wanted if found.get(n.node_id) is not None], deadline_s * (1.0 - FIRST_SHARE))
    return found


def _probe(nodes: Iterable[RayNode], deadline_s: float) -> dict[str, str | None]:
    wanted = [n for n in nodes if n.port]
    if not has_grpc() or not wanted:
        return {}
    pb, _, load = _methods()
    replies = _replies(wanted, lambda channel, _, seconds: load.ask(channel, pb.GetResourceLoadRequest(), seconds), deadline_s)
    return {n.node_id: _why_silent(r) if isinstance(r, Exception) else None for n, r in zip(wanted, replies, strict=True)}


def read_worker_jobs(nodes: Iterable[RayNode], *, deadline_s: float = 2.0) -> tuple[dict[str, dict[int, str]], frozenset[str]]:
    """By node id: the job of each Ray worker, by pid, as the node's raylet tells; spare workers have none. And the nodes that did not answer.

    It costs as much as these nodes have workers, however many actors the cluster has. Nodes for which no time was left are in neither.
    """
    wanted = [n for n in nodes if n.port]
    if not has_grpc() or not wanted:
        return {}, frozenset()
    pb, stats, _ = _methods()
    replies = _replies(wanted, lambda channel, _, seconds: stats.ask(channel, pb.GetNodeStatsRequest(include_memory_info=False), seconds), deadline_s)
    told = {
        node.node_id: {w.pid: w.job_id.hex() for w in reply.core_workers_stats if w.job_id.hex().strip("f")}
        for node, reply in zip(wanted, replies, strict=True)
        if not isinstance(reply, Exception)
    }
    silent = (n.node_id for n, r in zip(wanted, replies, strict=True) if isinstance(r, Exception) and not isinstance(r, NotAskedError))
    return told, frozenset(silent)


def _methods() -> tuple[Any, Method, Method]:
    """Ray's module, and what raylets are asked."""
    from ray.core.generated import node_manager_pb2 as pb

    return pb, Method.of(pb, "NodeManagerService", "GetNodeStats"), Method.of(pb, "NodeManagerService", "GetResourceLoad")


def _replies(nodes: Sequence[RayNode], ask: Callable[[Any, int, float], Any], deadline_s: float) -> list[Any]:
    return call_all([f"{n.ip}:{n.port}" for n in nodes], ask, deadline_s)


def _why_silent(error: Exception) -> str | None:
    """A refusal or an unknown call is an answer too."""
    text = describe_failure(error)
    if isinstance(error, NotAskedError):
        return None
    if isinstance(error, TimeoutError):
        return "it does not answer: stopped or overloaded"
    if not text.startswith(SILENCE):
        return None
    if "refused" in text.lower():
        return "nothing listens on its port: the raylet is gone"
    return "it accepts connections but does not answer: stopped or overloaded" if text.startswith("DEADLINE") else text
