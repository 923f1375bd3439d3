"""RRD818 a proxy is set for the cluster's own addresses

Story
    gRPC and HTTP clients send what is meant for another node to the proxy, which does not know it. Ray's and the engines' calls fail or hang.

Evidence
    Proxy variables, and own addresses that no_proxy does not name.

Remedy
    Name the nodes in no_proxy, or unset the proxies in the job.

Not this when
    no_proxy covers the nodes.
"""

from __future__ import annotations

import ipaddress
import shlex
from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, ok, warn
from ray_rl_debug.doctor.net_name import reachable
from ray_rl_debug.model.health import Health, Result

ID = "RRD818"
NAME = "a proxy is set for the cluster's own addresses"
CHECK = "net.proxy"


def examine(health: Health) -> Iterator[Result]:
    addresses = {n.name: reachable(n) for n in health.nodes}
    for node in health.nodes:
        if node.network is None:
            continue
        if not node.network.proxies:
            yield ok(node.name, "no proxy is set")
            continue
        missed = [name for name, own in addresses.items() if own and not any(is_covered(a, name, node.network.no_proxy) for a in own)]
        text = f"{', '.join(node.network.proxies)} set"
        if not missed:
            yield ok(node.name, f"{text}, no_proxy names all nodes")
            continue
        is_broken = any(c.error for c in node.contacts or ())
        say = fail if is_broken else warn
        named = shlex.quote(",".join(a for n in missed[:4] for a in addresses[n][:1]))
        remedy = f"export no_proxy=$no_proxy,{named}, or unset {' '.join(node.network.proxies)}"
        yield say(
            node.name, f"{text}, no_proxy misses {', '.join(missed[:4])}", "all nodes in no_proxy", "calls between nodes go to the proxy", remedy
        )


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
