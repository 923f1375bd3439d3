"""A crew of watchers: processes of ours that are started once and then cost next to nothing.

On this machine we start them ourselves. Elsewhere Ray's agents do, which are needed for some seconds only; where a watcher cannot be (no way back
over the network), the agents stay and do its work.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Callable, Mapping

import msgspec

from ray_rl_debug.cluster.capture import Capture, ClusterOptions
from ray_rl_debug.cluster.warm_agents import Agents
from ray_rl_debug.collect.discover import find_raylets_by_node
from ray_rl_debug.errors import RayRlDebugError
from ray_rl_debug.snapshot import RayNode, Snapshot
from ray_rl_debug.watch.crew import SILENT_TIMES, AgentCrew
from ray_rl_debug.watch.node_watch import WatchOrder
from ray_rl_debug.watch.server import WatcherServer
from ray_rl_debug.watch.signals import NodeReading
from ray_rl_debug.watch.spawn import own_code, start
from ray_rl_debug.watch.watcher import WatcherOrder
from ray_rl_debug.watch.watcher_driver import WatcherDriver
from ray_rl_debug.watch.wire import EndDriver, Ended, PySpy, Read, Reading

SPAWN = "ray_rl_debug.watch.spawn:spawn"
SPAWN_S = 20.0
CONNECT_S = 8.0
"""From the start of a watcher to its first word."""
READ_S = 1.5
TRIES = 2
"""Watchers that did not come, before an agent takes their place."""
AGAIN_S = 15.0


class WatcherCrew:
    """Watchers where they can be, agents elsewhere."""

    def __init__(
        self,
        options: ClusterOptions,
        nodes: Callable[[], dict[str, tuple[str, str]]],
        keeper: str,
        *,
        host: str,
        here: Callable[[], Mapping[str, int]] = find_raylets_by_node,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._options = options
        self._nodes = nodes
        """Names and addresses of the nodes that live, by node id."""
        self._keeper = keeper
        self._progress = progress
        self._here = here
        self._server = WatcherServer(host)
        self._agents: AgentCrew | None = None
        self._placing: threading.Thread | None = None
        self._placed_at = float("-inf")
        self._started_at: dict[str, float] = {}
        self._failed: dict[str, tuple[int, str]] = {}
        """By node id: how often no watcher came, and why not."""
        self._missed: dict[str, int] = {}
        self._told: set[str] = set()
        self._known: set[str] = set()
        """Nodes that were heard before."""
        self._with_gpus: set[str] = set()

    def refresh(self) -> dict[str, str]:
        alive = self._nodes()
        missing = {node: where for node, where in alive.items() if node not in self._server.nodes}
        here = self._here() if missing else {}
        self._start_here({node: where for node, where in missing.items() if node in here}, here)
        far = {node: where for node, where in missing.items() if node not in here or self._failed.get(node, (0, ""))[0] >= TRIES}
        if far and not self._is_placing() and time.monotonic() - self._placed_at > AGAIN_S:
            self._placing = threading.Thread(target=self._place, args=(far,), daemon=True, name="place")
            self._placing.start()
        if not missing and not self._is_placing():
            self._drop_agents()
        return {alive[n][0]: why for n, (_, why) in self._failed.items() if n in missing and why and self._agents is None}

    def read(self, order: WatchOrder) -> tuple[dict[str, NodeReading], dict[str, str]]:
        alive = self._nodes()
        lost: dict[str, str] = {}
        readings: dict[str, NodeReading] = {}
        if self._agents is not None:
            readings, lost = self._agents.read(order)
        waiting = set()
        # RAS at one node asks all others; it answers where there are ranks with GPUs
        asks_ras = min(self._with_gpus & set(self._server.nodes) or self._server.nodes, default=None) if order.closely else None
        for node in sorted(self._server.nodes):
            everything = order.everything or node not in self._told
            asked = msgspec.structs.replace(order, everything=everything, with_ras=node == asks_ras)
            if self._server.send(node, Read(order=asked)):
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
                self._failed.pop(node, None)
                self._known.add(node)
                if answer.reading.gpus:
                    self._with_gpus.add(node)
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
                if node in self._known or self._failed.get(node, (0, ""))[0] >= TRIES:
                    lost.setdefault(name, self._failed.get(node, (0, ""))[1] or "its watcher is gone")
            elif self._missed.get(node, 0) >= SILENT_TIMES:
                lost[name] = f"its watcher has not answered {self._missed[node]} times"
        return readings, {n: w for n, w in lost.items() if n not in readings}

    def gather(self, job_id: str | None) -> Snapshot:
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

    def _order(self) -> WatcherOrder:
        return WatcherOrder(host=self._server.host, port=self._server.port, token=self._server.token)

    def _is_placing(self) -> bool:
        return self._placing is not None and self._placing.is_alive()

    def _start_here(self, nodes: Mapping[str, tuple[str, str]], raylets: Mapping[str, int]) -> None:
        now = time.monotonic()
        for node, (_, ip) in nodes.items():
            if now - self._started_at.get(node, float("-inf")) < CONNECT_S:
                continue
            self._started_at[node] = now
            order = msgspec.structs.replace(self._order(), node_id=node, node_ip=ip, raylet_pid=raylets[node])
            try:
                start(order, own_code()[1])
                self._failed[node] = (self._failed.get(node, (0, ""))[0] + 1, "")
            except (OSError, subprocess.SubprocessError) as e:
                self._failed[node] = (TRIES, f"no watcher: {e}")

    def _place(self, missing: dict[str, tuple[str, str]]) -> None:
        """Let agents start watchers on these nodes, and wait for their first word. Runs beside the watch."""
        lost: dict[str, str] = {}
        payload = msgspec.msgpack.encode(msgspec.structs.replace(self._order(), only=tuple(missing)))
        try:
            with Agents(self._options, keeper=f"{self._keeper}-spawn") as agents:
                lost.update(agents.start(deadline_s=SPAWN_S))
                for answer in agents.ask(SPAWN, payload, deadline_s=SPAWN_S):
                    if answer.data is None or answer.data:
                        lost[answer.node] = answer.reason or (answer.data or b"").decode(errors="replace")
                until = time.monotonic() + CONNECT_S
                while time.monotonic() < until and not all(n in self._server.nodes or name in lost for n, (name, _) in missing.items()):
                    time.sleep(0.05)
                with contextlib.suppress(RayRlDebugError):
                    agents.stop()
        except RayRlDebugError as e:
            lost = {name: str(e) for name, _ in missing.values()}
        for node, (name, _) in missing.items():
            if node not in self._server.nodes:
                times = self._failed.get(node, (0, ""))[0] + 1
                self._failed[node] = (times, lost.get(name, "its watcher was started and cannot reach us"))
        self._ship_pyspy()
        if any(times >= TRIES for n, (times, _) in self._failed.items() if n in missing):
            self._fall_back()
        self._placed_at = time.monotonic()

    def _ship_pyspy(self) -> None:
        needy = [n for n, hello in self._server.nodes.items() if not hello.has_pyspy and n not in self._told]
        if needy:
            from ray_rl_debug.cluster.gathering import packed_pyspy

            packed = b"".join(packed_pyspy(None))
            for node in needy if packed else ():
                self._server.send(node, PySpy(packed=packed))

    def _fall_back(self) -> None:
        """Agents do the work of watchers that cannot be."""
        agents = self._agents or AgentCrew(self._options, self._keeper, self._progress)
        with contextlib.suppress(RayRlDebugError):
            agents.refresh()
        self._agents = agents

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
