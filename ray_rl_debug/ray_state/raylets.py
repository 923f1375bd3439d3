"""Raylets asked directly: does each answer, and how full is its object store?"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ray_rl_debug.ray_state.channel import SILENCE, describe_failure, has_grpc, open_channel
from ray_rl_debug.snapshot import ObjectStore, RayNode

CONCURRENCY = 32


def probe_raylets(nodes: Iterable[RayNode], *, deadline_s: float = 2.0) -> dict[str, str | None]:
    """By node id: None for a raylet that answers, else why it does not. A stopped one takes the whole deadline, a dead one none of it."""
    return _of_all(nodes, lambda stub, pb: stub.GetResourceLoad(pb.GetResourceLoadRequest(), timeout=deadline_s), lambda _: None, _why_silent)


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

    def ask(stub: Any, pb: Any) -> Any:
        return stub.GetNodeStats(pb.GetNodeStatsRequest(include_memory_info=False), timeout=deadline_s)

    found = _of_all(nodes, ask, convert, lambda _: None)
    return {node_id: store for node_id, store in found.items() if store is not None}


def _of_all(nodes: Iterable[RayNode], ask: Any, convert: Any, failed: Any) -> dict[str, Any]:
    if not has_grpc():
        return {}
    from ray.core.generated import node_manager_pb2 as pb
    from ray.core.generated import node_manager_pb2_grpc as stubs

    def one(node: RayNode) -> Any:
        channel = None
        try:
            channel = open_channel(f"{node.ip}:{node.port}")
            return convert(ask(stubs.NodeManagerServiceStub(channel), pb))
        except Exception as e:  # noqa: BLE001 a silent raylet is a fact of its own
            return failed(e)
        finally:
            if channel is not None:
                channel.close()

    asked = [n for n in nodes if n.port]
    with ThreadPoolExecutor(min(CONCURRENCY, max(1, len(asked)))) as pool:
        return {n.node_id: answer for n, answer in zip(asked, pool.map(one, asked), strict=True)}


def _why_silent(error: Exception) -> str | None:
    """A refusal or an unknown call is an answer too."""
    text = describe_failure(error)
    if not text.startswith(SILENCE):
        return None
    if "refused" in text.lower():
        return "nothing listens on its port: the raylet is gone"
    return "it takes connections and does not answer: stopped or overloaded" if text.startswith("DEADLINE") else text
