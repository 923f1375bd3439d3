"""A crew of watchers: processes of ours that Ray starts once and that then cost next to nothing.

Ray's agents are needed for some seconds only, to start a watcher on each node. Where no watcher can be (no way back over the network), the
agents stay and do its work.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import msgspec

from ray_rl_debug.capture import Capture
from ray_rl_debug.cluster import Agents, ClusterOptions
from ray_rl_debug.collect.discover import find_raylets_by_node
from ray_rl_debug.errors import RayRlDebugError
from ray_rl_debug.snapshot import RayNode, Snapshot
from ray_rl_debug.watch.crew import AgentCrew
from ray_rl_debug.watch.node_watch import WatchOrder
from ray_rl_debug.watch.server import WatcherServer
from ray_rl_debug.watch.signals import NodeReading
from ray_rl_debug.watch.watcher import WatcherOrder
from ray_rl_debug.watch.watcher_driver import WatcherDriver
from ray_rl_debug.watch.wire import EndDriver, Ended, PySpy, Read, Reading

SPAWN = "ray_rl_debug.watch.spawn:spawn"
SPAWN_S = 15.0
CONNECT_S = 8.0
"""From the start of a watcher to its first word."""
READ_S = 1.5
SILENT_TIMES = 3
"""Readings that a connected watcher may miss before it counts as silent: its node is busy."""


class WatcherCrew:
    """Watchers where they can be, agents elsewhere."""

    def __init__(
        self,
        options: ClusterOptions,
        nodes: Callable[[], dict[str, tuple[str, str]]],
        keeper: str,
        *,
        host: str,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._options = options
        self._nodes = nodes
        """Names and addresses of the nodes that live, by node id."""
        self._keeper = keeper
        self._progress = progress
        self._server = WatcherServer(host)
        self._agents: AgentCrew | None = None
        self._failed: dict[str, int] = {}
        self._missed: dict[str, int] = {}
        self._told: set[str] = set()

    def refresh(self) -> dict[str, str]:
        alive = self._nodes()
        missing = {node: names for node, names in alive.items() if node not in self._server.nodes}
        if not missing:
            self._drop_agents()
            return {}
        lost = self._spawn(missing)
        if lost and any(self._failed.get(n, 0) >= 2 for n in missing):
            return self._fall_back(lost)
        return lost

    def read(self, order: WatchOrder) -> tuple[dict[str, NodeReading], dict[str, str]]:
        alive = self._nodes()
        lost: dict[str, str] = {}
        readings: dict[str, NodeReading] = {}
        if self._agents is not None:
            readings, lost = self._agents.read(order)
        waiting = set()
        for node in self._server.nodes:
            everything = order.everything or node not in self._told
            if self._server.send(node, Read(order=msgspec.structs.replace(order, everything=everything))):
                waiting.add(node)
                self._told.add(node)
        until = time.monotonic() + READ_S
        while waiting and (left := until - time.monotonic()) > 0:
            said = self._server.receive(left)
            if said is None:
                break
            node, answer = said
            if isinstance(answer, Reading) and node in alive:
                waiting.discard(node)
                self._missed.pop(node, None)
                readings[alive[node][0]] = _joined(readings.get(alive[node][0]), answer.reading)
            elif answer is None:
                waiting.discard(node)
        for node in waiting:
            self._missed[node] = self._missed.get(node, 0) + 1
        self._told &= set(self._server.nodes)
        for node, (name, _) in alive.items():
            if name in readings:
                continue
            if node not in self._server.nodes:
                lost[name] = "its watcher is gone"
            elif self._missed.get(node, 0) >= SILENT_TIMES:
                lost[name] = f"its watcher has not answered {self._missed[node]} times"
        return readings, {n: w for n, w in lost.items() if n not in readings}

    def gather(self, job_id: str | None) -> Snapshot:
        import threading

        options = msgspec.structs.replace(self._options, job_id=job_id)
        with WatcherDriver(self._server) as driver:
            return Capture(options, self._progress, threading.Event()).run(driver)

    def end_process(self, ip: str | None, pid: int) -> str | None:
        asked = [n for n in self._server.nodes if self._server.send(n, EndDriver(ip=ip, pid=pid))]
        until = time.monotonic() + READ_S
        while asked and (left := until - time.monotonic()) > 0:
            said = self._server.receive(left)
            if said is not None and isinstance(said[1], Ended):
                if said[1].done:
                    return None
                asked.remove(said[0])
        return self._agents.end_process(ip, pid) if self._agents is not None else "no node knows its driver"

    def stop(self) -> None:
        self._server.close()
        self._drop_agents()

    def _spawn(self, missing: dict[str, tuple[str, str]]) -> dict[str, str]:
        """Start watchers on these nodes and wait for their first word."""
        order = WatcherOrder(host=self._server.host, port=self._server.port, token=self._server.token)
        names = {name: node for node, (name, _) in missing.items()}
        lost: dict[str, str] = {}
        with Agents(self._options, keeper=f"{self._keeper}-spawn") as agents:
            lost.update(agents.start(deadline_s=SPAWN_S))
            for answer in agents.ask(SPAWN, msgspec.msgpack.encode(msgspec.structs.replace(order, only=tuple(missing))), deadline_s=SPAWN_S):
                if answer.data is None or answer.data:
                    lost[answer.node] = answer.reason or (answer.data or b"").decode(errors="replace")
            until = time.monotonic() + CONNECT_S
            while time.monotonic() < until and not all(n in self._server.nodes or name in lost for n, (name, _) in missing.items()):
                time.sleep(0.05)
            with contextlib.suppress(RayRlDebugError):
                agents.stop()
        for name, node in names.items():
            if node in self._server.nodes:
                self._failed.pop(node, None)
                lost.pop(name, None)
            else:
                self._failed[node] = self._failed.get(node, 0) + 1
                lost.setdefault(name, "its watcher was started and cannot reach us")
        self._ship_pyspy()
        return {name: why for name, why in lost.items() if name in names}

    def _ship_pyspy(self) -> None:
        needy = [n for n, hello in self._server.nodes.items() if not hello.has_pyspy and n not in self._told]
        if needy:
            from ray_rl_debug.gathering import _packed_pyspy

            packed = b"".join(_packed_pyspy(None))
            for node in needy if packed else ():
                self._server.send(node, PySpy(packed=packed))

    def _fall_back(self, lost: dict[str, str]) -> dict[str, str]:
        """Agents do the work of watchers that cannot be."""
        if self._agents is None:
            self._agents = AgentCrew(self._options, self._keeper, self._progress)
        still = self._agents.refresh()
        return {name: still[name] for name in lost if name in still}

    def _drop_agents(self) -> None:
        if self._agents is not None:
            self._agents.stop()
            self._agents = None


def _joined(first: NodeReading | None, second: NodeReading) -> NodeReading:
    """Two readings of one node, one of them late."""
    if first is None:
        return second
    return msgspec.structs.replace(second, signs=(*first.signs, *second.signs), known=second.known or first.known, gpus=second.gpus or first.gpus)


def own_address(nodes: tuple[RayNode, ...]) -> str | None:
    """Where the nodes of the cluster reach this machine: the address of its raylet; None when it is no node."""
    here = find_raylets_by_node()
    return next((n.ip for n in nodes if n.node_id in here and n.alive), None)
