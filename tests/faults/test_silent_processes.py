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
from ray_rl_debug.ray_state import counted_workers, is_crowd, look_at_raylets, probe_raylets, read_core_workers
from ray_rl_debug.ray_state.raylets import WorkerCounts

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


class Telling(node_manager_pb2_grpc.NodeManagerServiceServicer):  # type: ignore[misc]
    """A raylet that tells of its workers: of 1,200 the first hundred are busy."""

    def GetResourceLoad(self, request: Any, context: Any) -> Any:
        return node_manager_pb2.GetResourceLoadReply()

    def GetNodeStats(self, request: Any, context: Any) -> Any:
        reply = node_manager_pb2.GetNodeStatsReply()
        for n in range(1, 1201):
            busy = int(n <= 100)
            reply.core_workers_stats.add(pid=n, worker_id=bytes.fromhex(f"{n:056x}"), num_running_tasks=busy, num_executed_tasks=3)
        reply.core_workers_stats.add(pid=77)  # a worker that did not answer it
        return reply


class Waiting(Telling):
    """A raylet that waits for a stopped worker of its own."""

    def GetNodeStats(self, request: Any, context: Any) -> Any:
        while context.is_active():
            time.sleep(0.02)
        return node_manager_pb2.GetNodeStatsReply()


class Raylet(node_manager_pb2_grpc.NodeManagerServiceServicer):  # type: ignore[misc]
    def GetResourceLoad(self, request: Any, context: Any) -> Any:
        return node_manager_pb2.GetResourceLoadReply()


@contextlib.contextmanager
def serving(raylet: Any, worker: Any) -> Iterator[int]:
    server = grpc.server(ThreadPoolExecutor(8))
    core_worker_pb2_grpc.add_CoreWorkerServiceServicer_to_server(worker, server)
    node_manager_pb2_grpc.add_NodeManagerServiceServicer_to_server(raylet, server)
    port = server.add_insecure_port(f"{HOST}:0")
    server.start()
    yield port
    server.stop(0).wait(5)


@pytest.fixture
def healthy(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A port that answers as a worker and as a raylet."""
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with serving(Raylet(), Healthy()) as port:
        yield port


def workers(count: int, port: int, first: int, node_id: str = "ab" * 28) -> list[RayWorker]:
    return [
        RayWorker(worker_id=f"{n:056x}", pid=n, kind="WORKER", alive=True, node_id=node_id, ip=f"{HOST}:{port}") for n in range(first, first + count)
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
    leave some unasked in two seconds. That many take no longer than a few: one after another they would take minutes.
    """
    with silent() as port:
        nodes = [RayNode(node_id=f"{n:02x}", ip=HOST, host="h", alive=True, port=port if n < 300 else healthy) for n in range(310)]
        few_s = _asked_s(nodes[298:302])[0]
        all_s, told, looked = _asked_s(nodes)
        answering = {n.node_id for n in nodes[300:]}
        for more_s in (6.0, 12.0, 24.0):
            later = probe_raylets(nodes, deadline_s=more_s)
            all_looked = look_at_raylets(nodes, deadline_s=more_s)
            if {n for n in later if later[n] is None} == answering == {n for n, why in all_looked.silent.items() if why is None}:
                break
    assert answering <= {n for n, why in told.items() if why is None}
    assert all("does not answer" in why for why in told.values() if why is not None)
    assert {n for n, why in later.items() if why is None} == answering
    assert looked.stores == {}
    assert {n for n, why in all_looked.silent.items() if why is None} == answering
    assert all_s < 3 * few_s


def _asked_s(nodes: list[RayNode]) -> tuple[float, dict[str, str | None], Any]:
    """How long it took to ask these within three seconds, and what was told by both, at most 200 of them the second time."""
    began = time.monotonic()
    told = probe_raylets(nodes, deadline_s=2.0)
    looked = look_at_raylets(nodes[:200], deadline_s=1.0)
    return time.monotonic() - began, told, looked


def test_a_crowd_of_which_raylets_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """One raylet tells what its 1,150 workers count, and makes up 50 that are another node's; that node's raylet waits for a stopped worker.

    Who runs nothing is known and not asked. All others are asked, those of the other node too: no raylet is believed about them.
    """
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    asked: set[int] = set()

    class Counting(Healthy):
        def GetCoreWorkerStats(self, request: Any, context: Any) -> Any:
            asked.add(int.from_bytes(request.intended_worker_id, "big"))
            return super().GetCoreWorkerStats(request, context)

    with serving(Telling(), Counting()) as telling, serving(Waiting(), Counting()) as waiting:
        nodes = [RayNode(node_id=i, ip=HOST, host="h", alive=True, port=p) for i, p in (("aa", telling), ("bb", waiting))]
        looked = look_at_raylets(nodes, deadline_s=2.0)
        all_workers = (*workers(1150, telling, 1, "aa"), *workers(50, waiting, 1151, "bb"))
        state = RayState(address="", nodes=tuple(nodes), workers=all_workers)
        read, gaps = read_core_workers(state, deadline_s=2.0, told=looked.workers)
    assert looked.silent == {"aa": None, "bb": None}
    assert set(looked.workers) == {"aa"}
    assert is_crowd(state)
    assert asked == {*range(1, 101), *range(1151, 1201)}
    assert {w.pid for w in read} == set(range(1, 1201))
    assert {w.executed_tasks for w in read if w.pid in asked} == {7}
    assert {w.executed_tasks for w in read if w.pid not in asked} == {3}
    assert gaps == ()
    assert {w.pid for w in counted_workers(state, looked.workers)} == set(range(1, 1151))


def test_a_small_cluster_is_asked_itself(healthy: int) -> None:
    """Raylets tell that 40 workers are idle; one of them does not answer.

    So few can all be asked: 39 are read, and the silent one is told.
    """
    idle = WorkerCounts(pid=1, job_id=None, actor_id=None, queue_length=0, pending_tasks=0, executed_tasks=3, running_tasks=0)
    with silent() as port:
        all_workers = (*workers(39, healthy, 1, "aa"), *workers(1, port, 40, "aa"))
        told = {"aa": {w.worker_id: idle for w in all_workers}}
        read, gaps = read_core_workers(RayState(address="", workers=all_workers), deadline_s=1.0, told=told)
    assert {w.executed_tasks for w in read} == {7}
    assert [g.where for g in gaps] == ["pid 40"]
