"""Raylets asked directly: does each answer, and how full is its object store?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ray_rl_debug.model.snapshot import ObjectStore, RayNode
from ray_rl_debug.ray_state.calls import CONCURRENCY, NotAskedError, call_all
from ray_rl_debug.ray_state.channel import SILENCE, describe_failure, has_grpc

FIRST_SHARE = 0.7
"""Of the time, for asking all raylets of a large cluster; the rest is for those that did not answer."""


def probe_raylets(nodes: Iterable[RayNode], *, deadline_s: float = 2.0) -> dict[str, str | None]:
    """By node id: None for a raylet that answers, else why it does not. Stopped ones take the whole deadline, which is one for all.

    None as well for one that could not be asked in time: the GCS asks all raylets every few seconds, and these are alive by its table. Of more than
    can be asked at once the silent are asked again, when fewer wait for us: it may have been our own core that was late.
    """

    def ask(stub: Any, pb: Any, seconds: float) -> Any:
        return stub.GetResourceLoad.future(pb.GetResourceLoadRequest(), timeout=seconds)

    wanted = list(nodes)
    is_crowd = len(wanted) > CONCURRENCY
    found: dict[str, str | None] = _of_all(wanted, ask, lambda _: None, _why_silent, deadline_s * (FIRST_SHARE if is_crowd else 1.0))
    if is_crowd:
        silent = [n for n in wanted if found.get(n.node_id) is not None]
        found |= _of_all(silent, ask, lambda _: None, _why_silent, deadline_s * (1.0 - FIRST_SHARE))
    return found


def read_object_stores(nodes: Iterable[RayNode], *, deadline_s: float = 2.0) -> dict[str, ObjectStore]:
    """Object stores by node id. Left out: a raylet that does not answer, or that waits for a stopped worker of its own before it does."""

    def convert(reply: Any) -> ObjectStore | None:
        stats = reply.store_stats
        return ObjectStore(
            used_bytes=stats.object_store_bytes_used,
            capacity_bytes=stats.object_store_bytes_used + stats.object_store_bytes_avail,
            fallback_bytes=stats.object_store_bytes_fallback,
            spilled_bytes=stats.spilled_bytes_total,
            restored_bytes=stats.restored_bytes_total,
            pulls_pending=int(stats.object_pulls_queued) if "object_pulls_queued" in stats.DESCRIPTOR.fields_by_name else None,
        )

    def ask(stub: Any, pb: Any, seconds: float) -> Any:
        return stub.GetNodeStats.future(pb.GetNodeStatsRequest(include_memory_info=False), timeout=seconds)

    found = _of_all(nodes, ask, convert, lambda _: None, deadline_s)
    return {node_id: store for node_id, store in found.items() if store is not None}


def read_worker_jobs(nodes: Iterable[RayNode], *, deadline_s: float = 2.0) -> tuple[dict[str, dict[int, str]], frozenset[str]]:
    """By node id: the job of each Ray worker, by pid, as the node's raylet tells; spare workers have none. And the nodes that did not answer.

    It costs as much as these nodes have workers, however many actors the cluster has. Nodes for which no time was left are in neither.
    """

    def ask(stub: Any, pb: Any, seconds: float) -> Any:
        return stub.GetNodeStats.future(pb.GetNodeStatsRequest(include_memory_info=False), timeout=seconds)

    def convert(reply: Any) -> Any:
        return {w.pid: w.job_id.hex() for w in reply.core_workers_stats if w.job_id.hex().strip("f")}

    found = _of_all(nodes, ask, convert, lambda error: error, deadline_s)
    told = {node_id: jobs for node_id, jobs in found.items() if isinstance(jobs, dict)}
    silent = frozenset(n for n, e in found.items() if n not in told and not isinstance(e, NotAskedError))
    return told, silent


def _of_all(nodes: Iterable[RayNode], ask: Any, convert: Any, failed: Any, deadline_s: float) -> dict[str, Any]:
    asked = [n for n in nodes if n.port]
    if not has_grpc() or not asked:
        return {}
    from ray.core.generated import node_manager_pb2 as pb
    from ray.core.generated import node_manager_pb2_grpc as stubs

    found = {}
    addresses = [f"{n.ip}:{n.port}" for n in asked]
    replies = call_all(addresses, lambda channel, _, seconds: ask(stubs.NodeManagerServiceStub(channel), pb, seconds), deadline_s)
    for node, reply in zip(asked, replies, strict=True):
        try:
            found[node.node_id] = failed(reply) if isinstance(reply, Exception) else convert(reply)
        except Exception as e:  # noqa: BLE001 an answer that makes no sense is a fact of its own
            found[node.node_id] = failed(e)
    return found


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
