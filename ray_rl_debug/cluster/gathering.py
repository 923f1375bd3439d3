"""Inside our Ray driver: one order to gather, carried out. The agents of all nodes, each at its own stage, within one deadline."""

from __future__ import annotations

import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ray_rl_debug.cluster.agent_pool import AgentPool, describe, is_dead
from ray_rl_debug.cluster.driver_messages import AgentNode, Clock, Facts, Gather, Lost, Message, Ready, Said, Timed
from ray_rl_debug.cluster.node_agent import PAGE_BYTES

GRACE_S = 5.0
"""After the first agent is there the others get this much longer, or thrice its time, before the window begins without them."""
LATE_STOP_S = 8.0
"""After a request to stop, nodes get this long to hand over what they have."""
SHIPPED_AT_ONCE = 16
"""Nodes that are sent py-spy at the same time, 2 MB each."""
MAX_PAGES = 3_000
"""A quarter of a gigabyte of one node."""
PINGS = 5
LAST_PING_S = 0.3
"""For clocks that are still being compared when all facts are there."""


class Gathering:
    """The agents of all nodes, each at its own stage: ready, ship, wait, collect, page, and then gone from here."""

    def __init__(self, pool: AgentPool, order: Gather, send: Callable[[Message], None], stop: threading.Event) -> None:
        self._pool = pool
        self._ray = pool.ray
        self._order = order
        self._send = send
        self._to_ship: deque[str] = deque()
        """Nodes that wait for py-spy."""
        self._stop = stop
        self._began = time.monotonic()
        self._deadline = self._began + order.gather_s
        self._window_from = self._began + order.start_s
        self._ticket = uuid.uuid4().hex
        self._agent_nodes = {agent_node.node_id: agent_node for agent_node in order.agent_nodes}
        self._agents: dict[str, Any] = {}
        self._refs: dict[Any, tuple[str, str, int]] = {}
        """What is awaited: node id, stage, number of the page."""
        self._open: Counter[tuple[str, str]] = Counter()
        self._stages: Counter[str] = Counter()
        """How many of them there are by node and stage, and by stage: of a thousand nodes nobody goes through all for each answer."""
        self._waiting: set[str] = set()
        self._again: set[str] = set()
        """Nodes whose agent turned out to be dead and was placed again."""
        self._pages: dict[str, dict[int, bytes]] = {}
        self._is_open = False
        self._has_driver: set[tuple[str, int]] = set()
        self._pyspy_parts: list[bytes] | None = None
        self._pinged: dict[str, tuple[float, list[tuple[float, float]]]] = {}
        """When the last ping left, and of those that came back: how far ahead, how long the way."""

    def run(self) -> None:
        """Until every node has given its facts or is lost, or the time is up."""
        for agent_node in self._order.agent_nodes:
            self._place(agent_node)
        stopped = False
        while self._is_busy() and time.monotonic() < self._deadline:
            self._hear(0.2)
            if not self._is_open and ((self._waiting and not self._is_starting()) or time.monotonic() > self._window_from):
                self._open_window()
            if self._stop.is_set() and not stopped:
                stopped = True
                self._deadline = min(self._deadline, time.monotonic() + LATE_STOP_S)
                self._hurry()
        until = time.monotonic() + LAST_PING_S
        while not self._is_busy() and self._refs and time.monotonic() < until:
            self._hear(LAST_PING_S)
        for node_id in {n for n, s, _ in self._refs.values() if s != "ping"} | self._waiting | set(self._to_ship):
            stage = next((s for n, s, _ in self._refs.values() if n == node_id), "ship" if node_id in self._to_ship else "wait")
            self._pool.forget(node_id)
            self._send(Lost(node_id, f"{_STAGES[stage]} in {time.monotonic() - self._began:.0f} s"))

    def _is_busy(self) -> bool:
        return bool(self._waiting or self._to_ship) or len(self._refs) > self._stages["ping"]

    def _hear(self, timeout_s: float) -> None:
        if self._refs:
            done, rest = self._ray.wait(list(self._refs), num_returns=1, timeout=timeout_s, fetch_local=False)
            if done and rest:  # whatever else is there already: one wait for each answer costs the square of the nodes
                done += self._ray.wait(rest, num_returns=len(rest), timeout=0, fetch_local=False)[0]
            for ref in done:
                if ref in self._refs:
                    self._take(ref)
            self._ship_next()

    def _place(self, agent_node: AgentNode) -> None:
        try:
            agent = self._pool.place(agent_node, is_kept=self._order.keeper is not None)
        except Exception as e:  # noqa: BLE001 one node that cannot have an agent costs no other its own
            self._send(Lost(agent_node.node_id, f"{_STAGES['ready']}: {describe(e)}"))
            return
        self._agents[agent_node.node_id] = agent
        self._await(agent_node.node_id, "ready", agent.ready.remote(self._order.keeper))

    def _await(self, node_id: str, stage: str, ref: Any, page: int = 0) -> None:
        self._refs[ref] = (node_id, stage, page)
        self._open[node_id, stage] += 1
        self._stages[stage] += 1

    def _came(self, ref: Any) -> tuple[str, str, int]:
        node_id, stage, page = self._refs.pop(ref)
        self._open[node_id, stage] -= 1
        self._stages[stage] -= 1
        return node_id, stage, page

    def _is_starting(self) -> bool:
        return bool(self._to_ship or self._stages["ready"] or self._stages["ship"])

    def _take(self, ref: Any) -> None:
        node_id, stage, page = self._came(ref)
        if node_id not in self._agents:
            return
        try:
            value = self._ray.get(ref, timeout=max(0.5, self._deadline - time.monotonic()))
        except Exception as e:  # noqa: BLE001 the agent's own failure is a fact about its node
            if stage == "ping":
                return
            if stage == "ready" and is_dead(e) and node_id not in self._again:
                self._again.add(node_id)
                self._pool.forget(node_id)
                self._place(self._agent_nodes[node_id])
            else:
                self._drop(node_id, f"{_STAGES[stage]}: {describe(e)}", is_dead(e))
            return
        try:
            self._go_on(node_id, stage, page, value)
        except (TypeError, ValueError, KeyError) as e:  # one damaged answer costs one node
            self._drop(node_id, f"{_STAGES[stage]}: its answer is damaged ({describe(e)})", is_dead=False)

    def _go_on(self, node_id: str, stage: str, page: int, value: Any) -> None:
        """To the node's next stage."""
        if stage == "ready":
            self._window_from = min(self._window_from, time.monotonic() + max(GRACE_S, 2 * (time.monotonic() - self._began)))
            self._send(Ready(node_id))
            self._ready(node_id, has_pyspy=bool(value))
        elif stage == "ship":
            # The parts of a message may arrive in any order; whichever completes it answers with the path.
            if value:
                self._agent_nodes[node_id] = msgspec.structs.replace(self._agent_nodes[node_id], pyspy=value)
            if not self._open[node_id, "ship"]:
                self._ready(node_id, has_pyspy=True)
        elif stage == "ping":
            self._pong(node_id, value)
        elif stage == "collect":
            if not isinstance(value, int) or not 0 < value <= MAX_PAGES:
                raise ValueError("no number of pages")
            self._pages[node_id] = {}
            self._ping(node_id)
            for number in range(value):
                self._await(node_id, "page", self._agents[node_id].page.remote(self._ticket, number), number)
        else:
            parts = self._pages[node_id]
            if not isinstance(value, bytes) or len(value) > PAGE_BYTES:
                raise ValueError("no page of bytes")
            parts[page] = value
            if not self._open[node_id, "page"]:
                del self._pages[node_id]
                self._send(Facts(node_id, b"".join(parts[i] for i in sorted(parts))))
                self._send(Said(f"{self._agent_nodes[node_id].name} answered"))

    def _drop(self, node_id: str, reason: str, is_dead: bool) -> None:
        self._send(Lost(node_id, reason))
        if is_dead:
            self._pool.forget(node_id)
        self._agents.pop(node_id, None)
        self._waiting.discard(node_id)
        if node_id in self._to_ship:
            self._to_ship.remove(node_id)
        for ref in [ref for ref, what in self._refs.items() if what[0] == node_id]:
            self._came(ref)

    def _ready(self, node_id: str, *, has_pyspy: bool) -> None:
        if not has_pyspy and self._has_pyspy():
            self._to_ship.append(node_id)
            return
        if self._order.collect is None:
            return
        self._waiting.add(node_id)
        self._ping(node_id)
        if self._is_open:
            self._collect(node_id)

    def _has_pyspy(self) -> bool:
        if self._pyspy_parts is None:
            self._pyspy_parts = packed_pyspy(self._order.collect.pyspy if self._order.collect else None)
        return bool(self._pyspy_parts)

    def _ship_next(self) -> None:
        """Send the py-spy binary in small parts, to some nodes at a time: to a thousand at once it is two gigabytes."""
        under_way = len({n for n, s, _ in self._refs.values() if s == "ship"}) if self._to_ship else 0
        while self._to_ship and under_way < SHIPPED_AT_ONCE:
            node_id = self._to_ship.popleft()
            agent, parts = self._agents[node_id], self._pyspy_parts or []
            for i, part in enumerate(parts):
                self._await(node_id, "ship", agent.receive_pyspy.remote(i, part, len(parts)), i)
            under_way += 1

    def _open_window(self) -> None:
        self._is_open = True
        self._send(Timed("agents_s", time.monotonic() - self._began))
        if self._order.collect is not None:
            self._send(Said(f"collecting on {len(self._waiting)} of {len(self._order.agent_nodes)} nodes"))
        for node_id in sorted(self._waiting):
            self._collect(node_id)

    def _collect(self, node_id: str) -> None:
        self._waiting.discard(node_id)
        agent_node, asked = self._agent_nodes[node_id], self._order.collect
        assert asked is not None
        # Of several raylets on one host (a test cluster) the first one looks at the drivers.
        drivers = tuple(d for d in self._order.drivers if d[0] == agent_node.ip and d not in self._has_driver)
        self._has_driver.update(drivers)
        asked = agent_node.options(asked, drivers)
        self._await(node_id, "collect", self._agents[node_id].collect.remote(self._ticket, msgspec.json.encode(asked)))

    def _ping(self, node_id: str) -> None:
        """Compare the clocks, before and after the collection, beside what else is going on."""
        if self._open[node_id, "ping"]:
            return
        _, came = self._pinged.get(node_id, (0.0, []))
        self._pinged[node_id] = (time.time(), came)
        self._await(node_id, "ping", self._agents[node_id].now.remote())

    def _pong(self, node_id: str, theirs: float) -> None:
        left, came = self._pinged[node_id]
        back = time.time()
        came.append((theirs - (left + back) / 2, back - left))
        if len(came) % PINGS:
            self._ping(node_id)
            return
        ahead, way = min(came[-PINGS:], key=lambda c: c[1])
        self._send(Clock(node_id, back, ahead, way / 2))

    def _hurry(self) -> None:
        if not self._is_open:
            self._open_window()
        for node_id, stage, _ in list(self._refs.values()):
            if stage == "collect":
                self._agents[node_id].finish_early.remote(self._ticket)


_STAGES = {
    "ready": "its agent did not start",
    "ship": "py-spy could not be sent to it",
    "wait": "its agent was not asked",
    "collect": "it did not finish collecting",
    "ping": "its clock did not answer",
    "page": "its facts did not arrive",
}


def digest_pyspy(given: str | None) -> str | None:
    """SHA-256 of the py-spy of this machine; None where it has none."""
    import hashlib

    from ray_rl_debug.collect.pyspy import find_pyspy

    binary = find_pyspy(given)
    try:
        return hashlib.sha256(Path(binary).read_bytes()).hexdigest() if binary is not None else None
    except OSError:
        return None


def packed_pyspy(given: str | None) -> list[bytes]:
    """The py-spy of this machine, compressed, in parts that fit into a message; none where it has none."""
    import lzma

    from ray_rl_debug.collect.pyspy import find_pyspy

    binary = find_pyspy(given)
    if binary is None:
        return []
    packed = lzma.compress(Path(binary).read_bytes(), preset=1)
    return [packed[i : i + PAGE_BYTES] for i in range(0, len(packed), PAGE_BYTES)]
