"""One order to the agents of many nodes, with a Ray that only counts: what our own part of it costs as the nodes grow."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from ray_rl_debug.cluster.driver_messages import AgentNode, Clock, Facts, Gather, Lost, Message
from ray_rl_debug.cluster.gathering import Gathering
from ray_rl_debug.collect.options import CollectOptions

READY_TOGETHER = 50


class Call:
    """A method of an agent that has its answer at once."""

    def __init__(self, value: object) -> None:
        self._value = value

    def remote(self, *_: object) -> Reference:
        return Reference([self._value])


class Reference(list[object]):
    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__


class Agent:
    ready, now, collect, page = Call(True), Call(1.0), Call(2), Call(b"facts")


class CountingRay:
    """Up to fifty answers are there at any moment, the newest first."""

    def __init__(self) -> None:
        self.waited_for = 0

    def wait(self, refs: list[Any], *, num_returns: int, timeout: float, fetch_local: bool) -> tuple[list[Any], list[Any]]:
        self.waited_for += len(refs)
        count = min(num_returns, READY_TOGETHER)
        return refs[-count:], refs[:-count]

    def get(self, ref: Reference, timeout: float) -> object:
        return ref[0]


class Pool:
    def __init__(self, ray: CountingRay, broken: frozenset[str] = frozenset()) -> None:
        self.ray = ray
        self._broken = broken

    def place(self, agent_node: AgentNode, *, is_kept: bool) -> Agent:
        if agent_node.node_id in self._broken:
            raise RuntimeError("no room")
        return Agent()

    def forget(self, node_id: str) -> None:
        pass


def gathered(nodes: int, broken: frozenset[str] = frozenset()) -> tuple[CountingRay, list[Message]]:
    ray, said = CountingRay(), list[Message]()
    agent_nodes = tuple(AgentNode(node_id=f"n{i}", name=f"node{i}", ip="10.0.0.1") for i in range(nodes))
    order = Gather(agent_nodes=agent_nodes, collect=CollectOptions(), gather_s=60.0, keeper="k")
    Gathering(Pool(ray, broken), order, said.append, threading.Event()).run()  # type: ignore[arg-type]
    return ray, said


@pytest.mark.parametrize("nodes", [1, 300])
def test_each_node_gives_its_facts_once(nodes: int) -> None:
    _, said = gathered(nodes)
    assert sorted(m.node_id for m in said if isinstance(m, Facts)) == sorted(f"n{i}" for i in range(nodes))
    assert {m.data for m in said if isinstance(m, Facts)} == {b"factsfacts"}
    assert {m.node_id for m in said if isinstance(m, Clock)} == {f"n{i}" for i in range(nodes)}


def test_a_node_without_an_agent_costs_no_other_its_own() -> None:
    _, said = gathered(20, frozenset({"n7"}))
    assert [m.node_id for m in said if isinstance(m, Lost)] == ["n7"]
    assert sum(isinstance(m, Facts) for m in said) == 19


def test_answers_that_are_there_together_are_taken_together() -> None:
    """Each wait goes through everything that is awaited: one for each answer would go through it 14 times a node."""
    ray, _ = gathered(1000)
    assert ray.waited_for < 1000 * 1000
