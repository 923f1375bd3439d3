"""Which nodes can take an agent without harm, and how nodes are called."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from ray_rl_debug.cluster.driver_messages import AgentNode
from ray_rl_debug.cluster.local_looks import has_room
from ray_rl_debug.collect.permissions import find_doors
from ray_rl_debug.collect.procfs import PROC, read_status
from ray_rl_debug.model.snapshot import RayNode
from ray_rl_debug.ray_state import probe_raylets


def choose_agent_nodes(
    alive: Sequence[RayNode],
    here: Mapping[str, int],
    names: Mapping[str, str],
    others: Mapping[str, tuple[int, ...]],
    *,
    probe_s: float,
    all_nodes: Sequence[RayNode] | None = None,
) -> tuple[list[AgentNode], dict[str, str]]:
    """Nodes that can take an agent without harm, and why the others cannot.

    Args:
        alive: Nodes that the GCS holds for alive and that may want one.
        here: Raylets on this machine by node id.
        names: Of the nodes, by id.
        others: Processes that an agent leaves out, by node id.
        probe_s: For all raylets to answer.
        all_nodes: When `alive` are not all of them.
    """
    all_nodes = all_nodes if all_nodes is not None else alive
    head = next((n for n in sorted(all_nodes, key=lambda n: not n.is_head) if n.node_id in here), None)
    probed = alive if head is None or head in alive else (*alive, head)
    silent = {k: v for k, v in probe_raylets(probed, deadline_s=probe_s).items() if v is not None}
    agent_nodes, refused = [], {}
    for node in alive:
        pid = here.get(node.node_id)
        if node.node_id in silent:
            refused[node.node_id] = f"its raylet is silent ({_state_of(pid) or silent[node.node_id]})"
        elif head is None:
            refused[node.node_id] = "this machine is not a node of the cluster, and Ray accepts drivers only on its nodes"
        elif (crowded := has_room(pid)) is not None:
            refused[node.node_id] = crowded
        else:
            agent_nodes.append(AgentNode(node_id=node.node_id, name=names[node.node_id], ip=node.ip, skip_pids=others.get(node.node_id, ())))
    if head is not None and head.node_id in silent:
        # Ray connects a driver to this raylet and waits for it without end.
        refused.update({s.node_id: "our driver cannot connect: the raylet of this machine is silent" for s in agent_nodes})
        agent_nodes = []
    return agent_nodes, refused


def this_machine(alive: Sequence[RayNode], here: Mapping[str, int]) -> list[RayNode]:
    """The node of this machine, when we see of it what an agent would: as root, or as the user that Ray runs as.

    Raylets that share a machine are an experiment of somebody's; each of them is a node like any other.
    """
    mine = [n for n in alive if n.node_id in here]
    if len(mine) != 1:
        return []
    try:
        owner = (PROC / str(here[mine[0].node_id])).stat().st_uid
    except OSError:
        return []
    # in a user namespace of our own even root sees less than an agent that the raylet starts
    sees = os.geteuid() in (0, owner) and find_doors([here[mine[0].node_id]]).memory is not False
    return mine if sees else []


def _state_of(raylet: int | None) -> str | None:
    """What the kernel says of a raylet that is silent, where it runs on this machine."""
    state = (read_status(raylet).get("State") if raylet is not None else None) or ""
    return f"process {raylet} is {state}" if state[:1] in ("T", "t", "D", "Z") else None


def unique_names(nodes: Sequence[RayNode]) -> dict[str, str]:
    """Host names by node id, with a part of the id where raylets share a host."""
    hosts = [n.host or n.ip for n in nodes]
    return {n.node_id: host if hosts.count(host) == 1 else f"{host}-{n.node_id[:6]}" for n, host in zip(nodes, hosts, strict=True)}


def with_own(others: Mapping[str, tuple[int, ...]], here: Iterable[str], own: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Processes that an agent leaves out, by node id, with our own on the nodes of this machine: elsewhere their numbers are somebody else's."""
    return {**others, **{node_id: (*others.get(node_id, ()), *own) for node_id in here}}
