"""Inside our Ray driver: the agents that are known, by node, and the calls that go to all of them at once."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from ray_rl_debug import __version__
from ray_rl_debug.cluster.driver_messages import AgentNode, Ask, Facts, Lost, Message, Release
from ray_rl_debug.cluster.node_agent import RayRlDebugAgent


class AgentPool:
    """Agents of one cluster. Named ones outlive us and are found again by whoever comes next."""

    def __init__(self, ray: Any, namespace: str) -> None:
        self.ray = ray
        self._namespace = namespace
        self._agents: dict[str, Any] = {}
        self._passing: list[Any] = []

    def place(self, agent_node: AgentNode, *, is_kept: bool) -> Any:
        """The agent of a node: the one we know, the one that a keeper left there, or a new one."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        agent = self._agents.get(agent_node.node_id) or self._find(agent_node)
        if agent is None:
            strategy = NodeAffinitySchedulingStrategy(agent_node.node_id, soft=False)
            kept = {"name": _name(agent_node.node_id), "lifetime": "detached", "get_if_exists": True} if is_kept else {}
            actor_class = self.ray.remote(RayRlDebugAgent)
            agent = actor_class.options(num_cpus=0, max_concurrency=4, scheduling_strategy=strategy, **kept).remote(is_kept)
            if not is_kept:
                self._passing.append(agent)
        self._agents[agent_node.node_id] = agent
        return agent

    def forget(self, node_id: str) -> None:
        """Its agent is dead or does not answer."""
        self._agents.pop(node_id, None)

    def leave(self) -> None:
        """Remove the agents that nobody keeps."""
        for agent in self._passing:
            with contextlib.suppress(Exception):
                self.ray.kill(agent)

    def ask(self, order: Ask, send: Callable[[Message], None]) -> None:
        """Call a function of ours in every agent that is known and meant; each node is answered for, by facts or by a loss."""
        payloads = order.payloads or dict.fromkeys(self._agents, order.payload)
        asked = {node_id: agent for node_id, agent in self._agents.items() if node_id in payloads}
        refs = {agent.ask.remote(order.target, payloads[node_id], order.keeper): node_id for node_id, agent in asked.items()}
        until = time.monotonic() + order.deadline_s
        while refs and (left := until - time.monotonic()) > 0:
            done, _ = self.ray.wait(list(refs), num_returns=1, timeout=left, fetch_local=False)
            for ref in done:
                node_id = refs.pop(ref)
                try:
                    send(Facts(node_id, self.ray.get(ref, timeout=1.0)))
                except Exception as e:  # noqa: BLE001 the agent's own failure is a fact about its node
                    if is_dead(e):
                        self.forget(node_id)
                    send(Lost(node_id, describe(e)))
        for node_id in refs.values():
            send(Lost(node_id, f"no answer in {order.deadline_s:g} s"))

    def release(self, order: Release, patience_s: float = 3.0) -> None:
        """Give up this keeper's claim everywhere, and remove agents that nobody claims any more."""
        refs = {}
        for agent_node in order.agent_nodes:
            agent = self._agents.pop(agent_node.node_id, None) or self._find(agent_node)
            if agent is not None:
                refs[agent.release.remote(order.keeper)] = agent
        done, _ = self.ray.wait(list(refs), num_returns=len(refs), timeout=patience_s, fetch_local=False) if refs else ((), ())
        killed = []
        for ref in done:
            with contextlib.suppress(Exception):
                if self.ray.get(ref, timeout=1.0) == 0:
                    self.ray.kill(refs[ref])
                    killed.append(refs[ref])
        # A kill is only a message, which would be lost if we left before it is out.
        until = time.monotonic() + patience_s
        while killed and time.monotonic() < until:
            killed = [agent for agent in killed if self._is_there(agent)]

    def _is_there(self, agent: Any) -> bool:
        try:
            self.ray.get(agent.now.remote(), timeout=0.2)
            time.sleep(0.01)
        except Exception as e:  # noqa: BLE001 a dead agent answers by an error
            return not is_dead(e)
        return True

    def _find(self, agent_node: AgentNode) -> Any:
        try:
            # A kept agent needs nothing of the raylet. It answers even when that is stopped.
            return self.ray.get_actor(_name(agent_node.node_id), namespace=self._namespace)
        except ValueError:
            return None


def _name(node_id: str) -> str:
    return f"rayrl_debug_{__version__}_{node_id[:16]}"


def is_dead(error: Exception) -> bool:
    """Does this error of Ray say that the actor is gone for good?"""
    return type(error).__name__ in ("ActorDiedError", "RayActorError", "ActorUnavailableError", "OutOfMemoryError")


def describe(error: Exception) -> str:
    """Kind and one telling line of a Ray error; never its traces."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    name = type(error).__name__
    if name.startswith("RayTaskError"):  # a whole trace, whose last line is the error that was raised
        return lines[-1][:200]
    return f"{name}: {' '.join(lines)[:200]}"
