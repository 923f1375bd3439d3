"""A crew of watchers: processes of ours that are started once and then cost next to nothing.

On this machine we start them ourselves. Elsewhere Ray's agents do, which are needed for some seconds only; where a watcher cannot be (no way back
over the network), the agents stay and do its work.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Mapping

import msgspec

from ray_rl_debug.capture.cluster import Capture, ClusterOptions
from ray_rl_debug.capture.warm_agents import Agents
from ray_rl_debug.cluster.backoff import Backoff
from ray_rl_debug.collect.discover import find_raylets_by_node
from ray_rl_debug.model.errors import RayRlDebugError
from ray_rl_debug.model.snapshot import RayNode, Snapshot
from ray_rl_debug.watch.crew import NO_DRIVER, SILENT_TIMES, AgentCrew
from ray_rl_debug.watch.node_watch import WatchOrder
from ray_rl_debug.watch.server import WatcherServer
from ray_rl_debug.watch.signals import NodeReading
from ray_rl_debug.watch.spawn import own_code, start
from ray_rl_debug.watch.watcher import WatcherOrder
from ray_rl_debug.watch.watcher_driver import WatcherDriver
from ray_rl_debug.watch.wire import DriverEnded, EndDriver, Installed, PySpy, Read, Reading

SPAWN = "ray_rl_debug.watch.spawn:spawn"
SPAWN_S = 20.0
CONNECT_S = 8.0
"""From the start of a watcher to its first word."""
READ_S = 1.5
TRIES = 2
"""Watchers that did not come, before an agent takes their place."""
AGAIN_S, LONGEST_AGAIN_S = 15.0, 600.0
"""Between two attempts to start a watcher by way of Ray, which starts a worker there."""
SHIPPED_AT_ONCE, SHIP_S = 32, 30.0
"""Nodes that are sent py-spy, 2 MB each, at the same time."""


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
        self._started_at: dict[str, float] = {}
        self._here_failed: dict[str, int] = {}
        """By node id: how often we started a watcher ourselves since one was heard."""
        self._backoff = Backoff(AGAIN_S, LONGEST_AGAIN_S)
        """By node id: how often no watcher came by way of Ray, and why not."""
        self._no_room: dict[str, str] = {}
        """By node id: why its raylet should be asked for no process, as its last watcher told."""
        self._pyspy: str | None = None
        """Digest of ours; empty when we have none."""
        self._packed = b""
        self._shipped: dict[str, float | None] = {}
        """Nodes that were sent py-spy: since when they have not said what became of it."""
        self._missed: dict[str, int] = {}
        self._told: set[str] = set()
        self._known: set[str] = set()
        """Nodes that were heard before."""
        self._with_gpus: set[str] = set()

    def refresh(self) -> dict[str, str]:
        alive, watched = self._nodes(), self._server.nodes
        missing = {node: where for node, where in alive.items() if node not in watched}
        here = self._here() if missing else {}
        self._start_here({node: where for node, where in missing.items() if node in here}, here)
        far = {n: w for n, w in missing.items() if (n not in here or self._here_failed.get(n, 0) >= TRIES) and self._backoff.is_due(n)}
        if far and not self._is_placing():
            self._placing = threading.Thread(target=self._place, args=(far,), daemon=True, name="place")
            self._placing.start()
        if not missing and not self._is_placing():
            self._drop_agents()
        return {alive[n][0]: self._backoff.why(n) for n in missing if self._backoff.why(n) and self._agents is None}

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
                self._backoff.worked(node)
                self._here_failed.pop(node, None)
                self._no_room.pop(node, None)
                if answer.no_room is not None:
                    self._no_room[node] = answer.no_room
                self._known.add(node)
                if answer.reading.gpus:
                    self._with_gpus.add(node)
                readings[alive[node][0]] = _joined(readings.get(alive[node][0]), answer.reading)
            elif isinstance(answer, Installed):
                self._shipped[node] = None
            elif answer is None:
                waiting.discard(node)
        self._ship_pyspy()
        for node in waiting:
            self._missed[node] = self._missed.get(node, 0) + 1
        watched = self._server.nodes
        self._told &= watched.keys()
        for node, (name, _) in alive.items():
            if name in readings:
                continue
            if node not in watched:
                if node in self._known or self._backoff.times(node) >= TRIES:
                    lost.setdefault(name, self._backoff.why(node) or "its watcher is gone")
            elif self._missed.get(node, 0) >= SILENT_TIMES:
                lost[name] = f"its watcher has not answered {self._missed[node]} times"
        return readings, {n: w for n, w in lost.items() if n not in readings}

    def gather(self, job_id: str | None) -> Snapshot:
        options = msgspec.structs.replace(self._options, job_id=job_id)
        with WatcherDriver(self._server) as driver:
            return Capture(options, self._progress, threading.Event()).run(driver)

    def end_process(self, node_id: str, pid: int, start_ticks: int) -> str | None:
        until = time.monotonic() + READ_S
        if not self._server.send(node_id, EndDriver(pid=pid, start_ticks=start_ticks)):
            return self._agents.end_process(node_id, pid, start_ticks) if self._agents is not None else NO_DRIVER
        while (left := until - time.monotonic()) > 0:
            said = self._server.receive(left)
            if said is not None and said[0] == node_id and isinstance(said[1], DriverEnded):
                return None if said[1].done else NO_DRIVER
        return NO_DRIVER

    def stop(self) -> None:
        self._server.close()
        self._drop_agents()

    def _order(self, node_id: str) -> WatcherOrder:
        server = self._server
        return WatcherOrder(
            host=server.host, port=server.port, invitation=server.invite(node_id), uses_tls=server.uses_tls, pyspy_sha256=self._digest()
        )

    def _digest(self) -> str | None:
        if self._pyspy is None:
            from ray_rl_debug.cluster.gathering import digest_pyspy

            self._pyspy = digest_pyspy(None) or ""
        return self._pyspy or None

    def _is_placing(self) -> bool:
        return self._placing is not None and self._placing.is_alive()

    def _start_here(self, nodes: Mapping[str, tuple[str, str]], raylets: Mapping[str, int]) -> None:
        now = time.monotonic()
        for node in nodes:
            if now - self._started_at.get(node, float("-inf")) < CONNECT_S or self._here_failed.get(node, 0) >= TRIES:
                continue
            self._started_at[node] = now
            order = msgspec.structs.replace(self._order(node), raylet_pid=raylets[node])
            try:
                start(order, own_code()[1])
                self._here_failed[node] = self._here_failed.get(node, 0) + 1
            except (OSError, subprocess.SubprocessError) as e:
                self._here_failed[node] = TRIES
                self._backoff.failed(node, f"no watcher: {e}")

    def _place(self, missing: dict[str, tuple[str, str]]) -> None:
        """Let agents start watchers on these nodes, and wait for their first word. Runs beside the watch."""
        lost = {name: self._no_room[n] for n, (name, _) in missing.items() if n in self._no_room}
        asked = {n: where for n, where in missing.items() if n not in self._no_room}
        try:
            if asked:
                self._spawn(asked, lost)
        except RayRlDebugError as e:
            lost = {name: str(e) for name, _ in missing.values()}
        watched = self._server.nodes
        for node, (name, _) in missing.items():
            if node not in watched:
                self._backoff.failed(node, lost.get(name, "its watcher started but cannot connect to us"))
        if any(not hello.has_pyspy for hello in watched.values()) and not self._packed:
            from ray_rl_debug.cluster.gathering import packed_pyspy

            self._packed = b"".join(packed_pyspy(None))
        need = {n for n in missing if self._backoff.times(n) >= TRIES and n not in self._no_room and n not in watched}
        if need:
            self._fall_back(need)

    def _spawn(self, nodes: Mapping[str, tuple[str, str]], lost: dict[str, str]) -> None:
        with Agents(self._options, keeper=f"{self._keeper}-spawn") as agents:
            lost.update(agents.start(deadline_s=SPAWN_S, only=nodes))
            orders = {n: msgspec.msgpack.encode(self._order(n)) for n, (name, _) in nodes.items() if name not in lost}
            for answer in agents.ask(SPAWN, deadline_s=SPAWN_S, payloads=orders):
                if answer.data is None or answer.data:
                    lost[answer.node] = answer.reason or (answer.data or b"").decode(errors="replace")
            until = time.monotonic() + CONNECT_S
            awaited = {n for n, (name, _) in nodes.items() if name not in lost}
            while time.monotonic() < until and not awaited <= self._server.nodes.keys():
                time.sleep(0.05)
            with contextlib.suppress(RayRlDebugError):
                agents.stop()

    def _ship_pyspy(self) -> None:
        """To nodes that have none: to some at a time, the next when these have told what became of it."""
        now, nodes = time.monotonic(), self._server.nodes
        self._shipped = {n: at for n, at in self._shipped.items() if n in nodes}
        under_way = sum(at is not None and now - at < SHIP_S for at in self._shipped.values())
        for node, hello in nodes.items():
            if under_way >= SHIPPED_AT_ONCE or not self._packed:
                return
            if not hello.has_pyspy and node not in self._shipped and self._server.send(node, PySpy(packed=self._packed)):
                self._shipped[node] = now
                under_way += 1

    def _fall_back(self, nodes: Collection[str]) -> None:
        """Agents do the work of watchers that cannot be, and only there."""
        agents = self._agents or AgentCrew(self._options, self._keeper, self._progress)
        with contextlib.suppress(RayRlDebugError):
            agents.refresh(only=nodes)
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
