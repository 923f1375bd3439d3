"""RRD817 the host name leads elsewhere

Story
    /etc/hosts maps a host's own name to loopback, or IPv6 comes first. Ray and torch then announce an address that no other node can reach.

Evidence
    Addresses of the own host name in the resolver's order.

Remedy
    Give Ray the address.

Not this when
    Only one node is used, or --node-ip-address is given.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, ok, unknown, warn
from ray_rl_debug.model.health import Health, Interface, NodeHealth, Result

ID = "RRD817"
NAME = "the host name leads elsewhere"
CHECK = "net.name"


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        if node.network is None:
            yield unknown(node.name, "the network was not read")
            continue
        found, own = node.network.resolved, reachable(node)
        remedy = f"ray start --node-ip-address={shlex.quote(own[0])}" if own else "ip -4 addr"
        consequence = "gloo, NCCL and Ray may announce an address that other nodes cannot reach"
        if not found:
            yield warn(node.name, f"{node.network.host} has no address", "an IPv4 address", consequence, remedy)
        elif found[0].startswith("127.") or found[0] == "::1":
            alone = len(health.nodes) == 1 and node.slurm is None
            text = f"{node.network.host} is {found[0]}"
            yield ok(node.name, f"{text} (one node)") if alone else warn(node.name, text, "not loopback", consequence, remedy)
        elif ":" in found[0]:
            yield warn(node.name, f"{node.network.host} is {found[0]} first", "IPv4 first", "programs that expect IPv4 fail", remedy)
        elif own and found[0] not in own:
            yield warn(node.name, f"{node.network.host} is {found[0]}", f"an address of this node ({', '.join(own[:3])})", consequence, remedy)
        else:
            yield ok(node.name, f"{node.network.host} is {found[0]}")
    yield from _shared(health)


def _shared(health: Health) -> Iterator[Result]:
    """One address for the names of several machines."""
    holders: dict[str, set[str]] = {}
    for node in health.nodes:
        if node.network is not None and node.network.resolved and not node.network.resolved[0].startswith("127."):
            holders.setdefault(node.network.resolved[0], set()).add(node.network.host)
    for address, hosts in holders.items():
        if len(hosts) > 1:
            text = f"{', '.join(sorted(hosts)[:4])} are all {address}"
            yield fail(None, text, "an address each", "ranks meet themselves instead of each other", "getent ahosts NAME on each node; /etc/hosts")


def reachable(node: NodeHealth) -> tuple[str, ...]:
    """IPv4 addresses of a node that others may reach: not loopback, link-local or Docker's own."""
    interfaces: tuple[Interface, ...] = node.network.interfaces if node.network else ()
    return tuple(a for i in interfaces if i.is_up for a in i.addresses if not a.startswith(("127.", "169.254.", "172.17.")))
