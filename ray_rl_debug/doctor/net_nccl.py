"""RRD819 NCCL or Gloo is told of an interface that is not there

Story
    NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME names an interface of another machine: NCCL finds none and fails, Gloo hangs or fails when the first
    group is made. Nodes with different InfiniBand ports disagree about the transport.

Evidence
    The variables and the interfaces of each node; active InfiniBand ports.

Remedy
    Name an interface that is up on all nodes, or unset the variable.

Not this when
    The variable excludes (^) or matches by prefix an interface that is up.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, ok, warn
from ray_rl_debug.doctor.plans import own_raylets
from ray_rl_debug.model.health import Health, Interface, NodeHealth, Result

ID = "RRD819"
NAME = "NCCL or Gloo is told of an interface that is not there"
CHECK = "net.nccl"


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        if node.network is None:
            continue
        for variable in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
            wanted = _value(node, variable)
            if wanted:
                yield _of_variable(node, variable, wanted, node.network.interfaces)
    counts = {n.name: len(n.network.infiniband) for n in health.nodes if n.network is not None and n.network.infiniband is not None}
    if len(set(counts.values())) > 1:
        text = ", ".join(f"{n}: {c}" for n, c in sorted(counts.items())[:6])
        yield warn(
            None, f"active InfiniBand ports differ: {text}", "equal", "NCCL is slow, or hangs on the node with a dead port", "ibstat on the odd node"
        )


def _of_variable(node: NodeHealth, variable: str, wanted: str, interfaces: tuple[Interface, ...]) -> Result:
    named = [i for i in interfaces if is_named(i.name, wanted, by_prefix=variable.startswith("NCCL"))]
    up = [i for i in named if i.is_up and i.addresses]
    there = ", ".join(i.name for i in interfaces if i.is_up and i.addresses)
    if up:
        return ok(node.name, f"{variable}={wanted}: {', '.join(i.name for i in up)}")
    state = f"{', '.join(i.name for i in named)} is down or has no address" if named else "there is none such"
    consequence = "NCCL: no socket interface found" if variable.startswith("NCCL") else "Gloo cannot make its groups"
    return fail(
        node.name, f"{variable}={wanted}: {state}; up: {there}", "up on every node", consequence, f"unset {variable}, or name one of: {there}"
    )


def is_named(name: str, wanted: str, *, by_prefix: bool) -> bool:
    """Does NCCL's (by prefix; ``=`` exact, ``^`` all but) or Gloo's (exact) notation name this interface?"""
    excluded = by_prefix and wanted.startswith("^")
    names = [n.strip() for n in wanted.lstrip("^").split(",") if n.strip()]
    exact = not by_prefix or wanted.lstrip("^").startswith("=")
    hit = any(name == n.lstrip("=") if exact else name.startswith(n) for n in names)
    return not hit if excluded else hit


def _value(node: NodeHealth, variable: str) -> str | None:
    of_raylet = next((p.env[variable] for p in own_raylets(node) if p.env and variable in p.env), None)
    return of_raylet or node.env.get(variable)
