"""Lets a capture use the watchers as it would use a Ray driver with its agents; nodes without a watcher get a real one."""

from __future__ import annotations

import itertools
import time
from collections import deque
from types import TracebackType

import msgspec

from ray_rl_debug.cluster.driver_handle import Driver
from ray_rl_debug.cluster.driver_messages import AgentNode, Ask, AskActors, Clock, Ended, Facts, Gather, Lost, Message, Ready, Release, Said
from ray_rl_debug.watch.server import WatcherServer
from ray_rl_debug.watch.wire import Answer, Collect, Collected, FinishEarly, Ping, Pong

PINGS = 3
_tickets = itertools.count(1)


class WatcherDriver(Driver):
    """Speaks the messages of `driver_messages`."""

    def __init__(self, server: WatcherServer) -> None:
        # no child process of its own: the real driver is started only for nodes that have no watcher
        self._server = server
        self._cold: Driver | None = None
        self._connect: tuple[str, str, bool] | None = None
        self._ready: deque[Message] = deque()
        self._agent_nodes: dict[str, AgentNode] = {}
        self._ticket = next(_tickets)
        self._pings: dict[int, tuple[str, float]] = {}
        self._ways: dict[str, list[tuple[float, float, float]]] = {}

    @property
    def pid(self) -> int | None:
        return self._cold.pid if self._cold is not None else None

    @property
    def asks_actors(self) -> bool:
        return False

    @property
    def with_agent(self) -> frozenset[str]:
        return frozenset(self._server.nodes)

    def __enter__(self) -> WatcherDriver:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._cold is not None:
            self._cold.__exit__(kind, error, trace)

    def connect(self, address: str, namespace: str, *, use_token: bool) -> None:
        self._connect = (address, namespace, use_token)

    def order(self, order: Gather | Ask | AskActors | Release) -> None:
        assert isinstance(order, Gather)
        assert order.collect is not None
        seen: set[tuple[str, int]] = set()
        rest = []
        for agent_node in order.agent_nodes:
            # of several raylets on one host the first looks at the drivers
            drivers = tuple(d for d in order.drivers if d[0] == agent_node.ip and d not in seen)
            self._ping(agent_node.node_id)
            if self._server.send(agent_node.node_id, Collect(ticket=self._ticket, options=agent_node.options(order.collect, drivers))):
                seen.update(drivers)
                self._agent_nodes[agent_node.node_id] = agent_node
                self._ready.append(Ready(agent_node.node_id))
            else:
                rest.append(agent_node)
        if rest and self._connect is not None:
            self._cold = Driver()
            address, namespace, use_token = self._connect
            self._cold.connect(address, namespace, use_token=use_token)
            drivers = tuple(d for d in order.drivers if d not in seen)
            self._cold.order(msgspec.structs.replace(order, agent_nodes=tuple(rest), drivers=drivers))

    def halt(self) -> None:
        for node in self._agent_nodes:
            self._server.send(node, FinishEarly(ticket=self._ticket))
        if self._cold is not None:
            self._cold.halt()

    def leave(self) -> None:
        if self._cold is not None:
            self._cold.leave()

    def receive(self, timeout_s: float) -> Message | None:
        until = time.monotonic() + timeout_s
        while True:
            if self._ready:
                return self._ready.popleft()
            cold = self._cold.receive(0) if self._cold is not None else None
            if cold is not None and not (isinstance(cold, Ended) and self._agent_nodes):
                return cold
            left = until - time.monotonic()
            said = self._server.receive(min(left, 0.05) if self._cold is not None else left)
            if said is not None:
                self._take(*said)
            elif left <= 0:
                return None

    def settle(self, patience_s: float = 0.5) -> bool:
        return True

    def _take(self, node: str, answer: Answer | None) -> None:
        if isinstance(answer, Collected) and answer.ticket == self._ticket:
            agent_node = self._agent_nodes.pop(node, None)
            self._ping(node)
            if answer.data is not None:
                self._ready.append(Facts(node, answer.data))
                self._ready.append(Said(f"{agent_node.name if agent_node else node} answered"))
            else:
                self._ready.append(Lost(node, f"it could not collect: {answer.reason}"))
        elif isinstance(answer, Pong):
            self._pong(node, answer)
        elif answer is None and self._agent_nodes.pop(node, None) is not None:
            self._ready.append(Lost(node, "its watcher ended while it collected"))

    def _ping(self, node: str) -> None:
        for _ in range(PINGS):
            number = next(_tickets)
            self._pings[number] = (node, time.time())
            self._server.send(node, Ping(number=number))

    def _pong(self, node: str, answer: Pong) -> None:
        asked = self._pings.pop(answer.number, None)
        if asked is None:
            return
        back = time.time()
        ways = self._ways.setdefault(node, [])
        ways.append((back - asked[1], answer.time_s - (asked[1] + back) / 2, back))
        if len(ways) == PINGS:
            way, ahead, at = min(self._ways.pop(node))
            self._ready.append(Clock(node, at, ahead, way / 2))
