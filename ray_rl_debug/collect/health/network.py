"""Names, addresses, interfaces, proxies and ports of this node."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from pathlib import Path

from ray_rl_debug.model.health import Contact, Interface, Network, Port

RAY_PORTS: tuple[tuple[int, str], ...] = ((6379, "GCS"), (8265, "dashboard"), (10001, "Ray client server"), (52365, "dashboard agent"))
"""What ray start takes when not told."""
BLOCK: tuple[str, ...] = (
    "GCS",
    "node manager",
    "object manager",
    "runtime environment agent",
    "dashboard",
    "dashboard agent, HTTP",
    "dashboard agent, gRPC",
    "metrics",
    "Ray client server",
)
"""Uses of the ports of a rendered job script, in their order from its base."""
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy")


def read_network(env: Mapping[str, str], sys_root: Path = Path("/sys")) -> Network:
    import psutil  # a node of a cluster may only have the one that Ray brings

    host = socket.gethostname()
    try:
        resolved = tuple(dict.fromkeys(str(a[4][0]) for a in socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP)))
    except OSError:
        resolved = ()
    states = psutil.net_if_stats()
    interfaces = tuple(
        Interface(
            name=name,
            addresses=tuple(a.address for a in addresses if a.family == socket.AF_INET),
            is_up=states[name].isup if name in states else None,
        )
        for name, addresses in sorted(psutil.net_if_addrs().items())
    )
    skipped = ",".join(filter(None, (env.get("no_proxy"), env.get("NO_PROXY"))))
    return Network(
        host=host,
        resolved=resolved,
        interfaces=interfaces,
        infiniband=_infiniband(sys_root / "class" / "infiniband"),
        proxies=tuple(sorted(k for k, v in env.items() if k.lower() in PROXIES and v)),
        no_proxy=tuple(dict.fromkeys(x.strip() for x in skipped.split(",") if x.strip())),
    )


def planned_ports(base: int | None) -> tuple[tuple[int, str], ...]:
    return RAY_PORTS if base is None else tuple((base + i, use) for i, use in enumerate(BLOCK))


def try_ports(base: int | None) -> tuple[Port, ...]:
    """Bind each planned port for a moment."""
    found = []
    for number, use in planned_ports(base):
        error = None
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("", number))
                s.listen(1)
            except OSError as e:
                error = e.strerror or str(e)
        found.append(Port(number=number, use=use, error=error, holder=_holder(number) if error else None))
    return tuple(found)


def connect(peer: str, address: str, timeout_s: float = 3.0) -> Contact:
    """One TCP connection to ``host:port``, closed at once."""
    host, _, port = address.rpartition(":")
    began = time.monotonic()
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout_s):
            return Contact(peer=peer, address=address, took_s=round(time.monotonic() - began, 4))
    except (OSError, ValueError, OverflowError) as e:
        return Contact(peer=peer, address=address, error=str(getattr(e, "strerror", None) or e))


def _holder(port: int) -> str | None:
    import psutil

    try:
        rows = psutil.net_connections("tcp")
    except (psutil.Error, OSError):
        return None
    pid = next((r.pid for r in rows if r.status == psutil.CONN_LISTEN and r.laddr and r.laddr.port == port and r.pid), None)
    if pid is None:
        return None
    try:
        process = psutil.Process(pid)
        return f"{process.name()}, pid {pid} of {process.username()}"
    except psutil.Error:
        return f"pid {pid}"


def _infiniband(folder: Path) -> tuple[str, ...] | None:
    if not folder.is_dir():
        return None
    active = (p for p in folder.glob("*/ports/*") if "ACTIVE" in _text(p / "state"))
    return tuple(sorted(f"{p.parent.parent.name}/{p.name}" for p in active))


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
