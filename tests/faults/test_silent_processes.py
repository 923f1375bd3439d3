"""Hundreds of Ray's processes take connections and never answer."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from ray.core.generated import core_worker_pb2, core_worker_pb2_grpc, node_manager_pb2, node_manager_pb2_grpc

from ray_rl_debug.model.snapshot import RayNode, RayState, RayWorker
from ray_rl_debug.ray_state import look_at_raylets, probe_raylets, read_core_workers

pytestmark = pytest.mark.integration

HOST = "127.0.0.1"


@contextlib.contextmanager
def silent() -> Iterator[int]:
    """A port whose connections the kernel takes, as it does for a stopped process."""
    with socket.create_server((HOST, 0), backlog=1024) as one:
        yield one.getsockname()[1]


class Healthy(core_worker_pb2_grpc.CoreWorkerServiceServicer):  # type: ignore[misc]
    def GetCoreWorkerStats(self, request: Any, context: Any) -> Any:
        reply = core_worker_pb2.GetCoreWorkerStatsReply()
        reply.core_worker_stats.num_executed_tasks = 7
        return reply


class Raylet(node_manager_pb2_grpc.NodeManagerServiceServicer):  # type: ignore[misc]
    def GetResourceLoad(self, request: Any, context: Any) -> Any:
        return node_manager_pb2.GetResourceLoadReply()


@pytest.fixture
def healthy(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A port that answers as a worker and as a raylet."""
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    server = grpc.server(ThreadPoolExecutor(8))
    core_worker_pb2_grpc.add_CoreWorkerServiceServicer_to_server(Healthy(), server)
    node_manager_pb2_grpc.add_NodeManagerServiceServicer_to_server(Raylet(), server)
    port = server.add_insecure_port(f"{HOST}:0")
    server.start()
    yield port
    server.stop(0).wait(5)


def workers(count: int, port: int, first: int) -> list[RayWorker]:
    return [
        RayWorker(worker_id=f"{n:056x}", pid=n, kind="WORKER", alive=True, node_id="ab" * 28, ip=f"{HOST}:{port}")
        for n in range(first, first + count)
    ]


def test_silent_workers(healthy: int) -> None:
    """260 workers of Ray take the connection and do not answer; 40 others do, half of them at the end of the list.

    All 40 are read, each silent one is told, and it takes the two seconds that were given for all.
    """
    with silent() as port:
        all_workers = (*workers(20, healthy, 1), *workers(260, port, 1000), *workers(20, healthy, 100))
        began = time.monotonic()
        read, gaps = read_core_workers(RayState(address="", workers=all_workers), deadline_s=2.0)
        took = time.monotonic() - began
    assert {w.pid for w in read} == {w.pid for w in all_workers if w.pid < 1000}
    assert len(gaps) == 260
    assert took < 3.5


def test_silent_raylets(healthy: int) -> None:
    """300 raylets take the connection and do not answer; 10 others do.

    Within the two seconds that were given for all, nobody who answers is called silent; with more time all are told apart. A busy machine may
    leave some unasked in two seconds.
    """
    with silent() as port:
        nodes = [RayNode(node_id=f"{n:02x}", ip=HOST, host="h", alive=True, port=port if n < 300 else healthy) for n in range(310)]
        began = time.monotonic()
        told = probe_raylets(nodes, deadline_s=2.0)
        looked = look_at_raylets(nodes[:200], deadline_s=1.0)
        took = time.monotonic() - began
        later = probe_raylets(nodes, deadline_s=6.0)
        all_looked = look_at_raylets(nodes, deadline_s=6.0)
    answering = {n.node_id for n in nodes[300:]}
    assert answering <= {n for n, why in told.items() if why is None}
    assert all("does not answer" in why for why in told.values() if why is not None)
    assert {n for n, why in later.items() if why is None} == answering
    assert looked.stores == {}
    assert {n for n, why in all_looked.silent.items() if why is None} == answering
    assert took < 4.5
