"""Names, addresses, interfaces and proxies: can the nodes reach each other?"""

from __future__ import annotations

import ipaddress
import shlex
from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, listed, ok, unknown, warn
from ray_rl_debug.doctor.plans import own_raylets
from ray_rl_debug.model.health import Contact, Health, Interface, NodeHealth, Result

SLOW_S = 0.1


def contacts(node: NodeHealth) -> Iterator[Result]:
    """The address belongs to the wrong interface, or a firewall is between: a worker node says "Failed to connect to GCS" and is missing.

    Evidence: A TCP connection from every node to the first one, and back; on a running cluster one to its GCS.
    Remedy: Name the interface or the network.
    Not this when: The GCS is not started yet and its address was guessed.
    """
    for peer in dict.fromkeys(c.peer for c in node.contacts or () if c.address or c.error):
        yield _contact(peer, [c for c in node.contacts or () if c.peer == peer])


def _contact(peer: str, tried: list[Contact]) -> Result:
    good = next((c for c in tried if c.error is None), None)
    bad = "; ".join(f"{c.address}: {c.error}" if c.address else str(c.error) for c in tried if c.error is not None)
    if good is None:
        remedy = "HEAD_CIDR=NETWORK/BITS in the job script; ip -4 addr; a firewall?"
        return fail(f"{peer} {bad}", "a TCP connection", "this node cannot join: Failed to connect to GCS", remedy)
    text, host, took_s = f"{peer} answers at {good.address}", shlex.quote(good.address.rpartition(":")[0]), good.took_s or 0.0
    if bad:
        consequence = "Ray may choose the address that does not work"
        return warn(f"{text}, not at {bad}", "all addresses", consequence, f"ray start --node-ip-address={host}")
    if took_s > SLOW_S:
        return warn(f"{text} in {took_s:.2f} s", f"{SLOW_S:g} s", "Ray's heartbeats may be late", f"ping {host}")
    return ok(f"{text} in {1000 * took_s:.1f} ms", f"{SLOW_S:g} s")


def names(health: Health) -> Iterator[Result]:
    """/etc/hosts maps a host's own name to loopback, or IPv6 comes first. Ray and torch then announce an address that no other node can reach.

    Evidence: Addresses of the own host name in the resolver's order.
    Remedy: Give Ray the right address: ray start --node-ip-address.
    Not this when: Only one node is used, or --node-ip-address is given.
    """
    holders: dict[str, set[str]] = {}
    for node in health.nodes:
        yield _name(node, is_alone=len(health.nodes) == 1 and node.slurm is None)
        if node.network is not None and node.network.resolved and not node.network.resolved[0].startswith("127."):
            holders.setdefault(node.network.resolved[0], set()).add(node.network.host)
    for address, hosts in holders.items():
        if len(hosts) > 1:
            text = f"{', '.join(sorted(hosts)[:4])} are all {address}"
            yield fail(text, "an address each", "ranks connect to themselves instead of each other", "getent ahosts NAME on each node; /etc/hosts")


def _name(node: NodeHealth, *, is_alone: bool) -> Result:
    if node.network is None:
        return unknown("the network was not read", node=node.name)
    found, own = node.network.resolved, reachable(node)
    remedy = f"ray start --node-ip-address={shlex.quote(own[0])}" if own else "ip -4 addr"
    consequence = "gloo, NCCL and Ray may announce an address that other nodes cannot reach"
    if not found:
        return warn(f"{node.network.host} has no address", "an IPv4 address", consequence, remedy, node=node.name)
    text = f"{node.network.host} is {found[0]}"
    if found[0].startswith("127.") or found[0] == "::1":
        return ok(f"{text} (one node)", node=node.name) if is_alone else warn(text, "not loopback", consequence, remedy, node=node.name)
    if ":" in found[0]:
        return warn(f"{text} first", "IPv4 first", "programs that expect IPv4 fail", remedy, node=node.name)
    if own and found[0] not in own:
        return warn(text, f"an address of this node ({', '.join(own[:3])})", consequence, remedy, node=node.name)
    return ok(text, node=node.name)


def reachable(node: NodeHealth) -> tuple[str, ...]:
    """IPv4 addresses of a node that others may reach: not loopback, link-local or Docker's own."""
    has: tuple[Interface, ...] = node.network.interfaces if node.network else ()
    return tuple(a for i in has if i.is_up for a in i.addresses if not a.startswith(("127.", "169.254.", "172.17.")))


def proxies(health: Health) -> Iterator[Result]:
    """gRPC and HTTP clients send to the proxy what is meant for another node, and the proxy does not know that node. Ray's and the engines' calls
    fail or hang.

    Evidence: Proxy variables, and own addresses that no_proxy does not name.
    Remedy: Name the nodes in no_proxy, or unset the proxies in the job.
    Not this when: no_proxy covers the nodes.
    """
    addresses = {n.name: reachable(n) for n in health.nodes}
    for node in health.nodes:
        if node.network is None:
            continue
        text, variables = f"{', '.join(node.network.proxies)} set", " ".join(node.network.proxies)
        missed = [name for name, own in addresses.items() if own and not any(is_covered(a, name, node.network.no_proxy) for a in own)]
        if not variables:
            yield ok("no proxy is set", node=node.name)
        elif not missed:
            yield ok(f"{text}, no_proxy names all nodes", node=node.name)
        else:
            say = fail if any(c.error for c in node.contacts or ()) else warn
            named = shlex.quote(",".join(a for n in missed[:4] for a in addresses[n][:1]))
            remedy = f"export no_proxy=$no_proxy,{named}, or unset {variables}"
            text += f", no_proxy misses {', '.join(missed[:4])}"
            yield say(text, "all nodes in no_proxy", "calls between nodes go to the proxy", remedy, node=node.name)


def is_covered(address: str, name: str, no_proxy: tuple[str, ...]) -> bool:
    """Does one entry of no_proxy stand for this address or name?"""
    for entry in no_proxy:
        if entry in ("*", address, name) or name.endswith("." + entry.lstrip(".")):
            return True
        if "/" in entry:
            try:
                if ipaddress.ip_address(address) in ipaddress.ip_network(entry, strict=False):
                    return True
            except ValueError:
                continue
    return False


def interfaces(node: NodeHealth) -> Iterator[Result]:
    """NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME names an interface of another machine: NCCL finds none and fails; Gloo hangs or fails when the first
    group is made. Nodes with different InfiniBand ports disagree about the transport.

    Evidence: The variables and the interfaces of each node; active InfiniBand ports.
    Remedy: Name an interface that is up on all nodes, or unset the variable.
    Not this when: The variable excludes (^) or matches by prefix an interface that is up.
    """
    for variable in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
        of_raylet = next((p.env[variable] for p in own_raylets(node) if p.env and variable in p.env), None)
        wanted = of_raylet or node.env.get(variable)
        if wanted and node.network is not None:
            yield _interface(variable, wanted, node.network.interfaces)


def _interface(variable: str, wanted: str, has: tuple[Interface, ...]) -> Result:
    named = [i for i in has if is_named(i.name, wanted, by_prefix=variable.startswith("NCCL"))]
    up = [i for i in named if i.is_up and i.addresses]
    if up:
        return ok(f"{variable}={wanted}: {', '.join(i.name for i in up)}")
    there = ", ".join(i.name for i in has if i.is_up and i.addresses)
    state = f"{', '.join(i.name for i in named)} is down or has no address" if named else "this node has no such interface"
    consequence = "NCCL: no socket interface found" if variable.startswith("NCCL") else "Gloo cannot make its groups"
    return fail(f"{variable}={wanted}: {state}; up: {there}", "up on every node", consequence, f"unset {variable}, or name one of: {there}")


def is_named(name: str, wanted: str, *, by_prefix: bool) -> bool:
    """Does NCCL's (by prefix; ``=`` exact, ``^`` all but) or Gloo's (exact) notation name this interface?"""
    excluded = by_prefix and wanted.startswith("^")
    said = [n.strip() for n in wanted.lstrip("^").split(",") if n.strip()]
    exact = not by_prefix or wanted.lstrip("^").startswith("=")
    hit = any(name == n.lstrip("=") if exact else name.startswith(n) for n in said)
    return not hit if excluded else hit


def infiniband(health: Health) -> Iterator[Result]:
    """Have all nodes as many active ports?"""
    counts = {n.name: len(n.network.infiniband) for n in health.nodes if n.network is not None and n.network.infiniband is not None}
    if len(set(counts.values())) > 1:
        text = f"active InfiniBand ports differ: {listed(counts)}"
        yield warn(text, "equal", "NCCL is slow, or hangs on the node with a dead port", "ibstat on the odd node")
