"""RRD816 nodes cannot reach each other

Story
    An address of the wrong interface, or a firewall: a worker node says "Failed to connect to GCS" and is missing.

Evidence
    A TCP connection from every node to the first one, and back; on a running cluster one to its GCS.

Remedy
    Name the interface or the network.

Not this when
    The GCS is not started yet and its address was guessed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, ok, warn
from ray_rl_debug.model.health import Contact, Health, Result

ID = "RRD816"
NAME = "nodes cannot reach each other"
CHECK = "net.head"
SLOW_S = 0.1


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        if node.contacts is None:
            continue
        for peer in dict.fromkeys(c.peer for c in node.contacts if c.address or c.error):
            yield _of_peer(node.name, peer, [c for c in node.contacts if c.peer == peer])


def _of_peer(node: str, peer: str, contacts: list[Contact]) -> Result:
    good = next((c for c in contacts if c.error is None), None)
    bad = [f"{c.address}: {c.error}" if c.address else str(c.error) for c in contacts if c.error is not None]
    if good is None:
        consequence = "this node cannot join: Failed to connect to GCS"
        return fail(
            node, f"{peer} {'; '.join(bad)}", "a TCP connection", consequence, "HEAD_CIDR=NETWORK/BITS in the job script; ip -4 addr; a firewall?"
        )
    if bad:
        consequence = "Ray may choose the address that does not work"
        return warn(
            node,
            f"{peer} answers at {good.address}, not at {'; '.join(bad)}",
            "all addresses",
            consequence,
            f"ray start --node-ip-address={_host(good)}",
        )
    took = good.took_s or 0.0
    if took > SLOW_S:
        return warn(
            node, f"{peer} answers at {good.address} in {took:.2f} s", f"{SLOW_S:g} s", "heartbeats of Ray may be late", f"ping {_host(good)}"
        )
    return ok(node, f"{peer} answers at {good.address} in {1000 * took:.1f} ms", f"{SLOW_S:g} s")


def _host(contact: Contact) -> str:
    return shlex.quote(contact.address.rpartition(":")[0])
