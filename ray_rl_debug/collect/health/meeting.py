"""The nodes of one srun step meet: each connects to the first node, which connects back, and they compare clocks.

The first node writes its addresses into a folder that all see. Nothing but names, ports and times crosses the network.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ray_rl_debug.model.health import Contact

PATIENCE_S = 20.0
"""srun starts its tasks within a second or two; Python's own start on a cold node takes longer."""
CONNECT_S = 3.0


def meet(folder: Path, env: Mapping[str, str], name: str, addresses: Sequence[str], *, patience_s: float = PATIENCE_S) -> tuple[Contact, ...] | None:
    """Who could reach whom; None when this is not a step of several nodes."""
    count, rank = env.get("SLURM_STEP_NUM_NODES", ""), env.get("SLURM_NODEID", "")
    if not count.isdigit() or not rank.isdigit() or int(count) < 2:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f".meeting-{env.get('SLURM_JOB_ID', '0')}-{env.get('SLURM_STEP_ID', '0')}-{env.get('SLURM_RESTART_COUNT', '0')}"
    deadline = time.monotonic() + patience_s
    return _host(place, int(count) - 1, name, addresses, deadline) if rank == "0" else _visit(place, name, deadline)


def _host(place: Path, expected: int, name: str, addresses: Sequence[str], deadline: float) -> tuple[Contact, ...]:
    """Receive the other nodes until all came or the time is up."""
    found: list[Contact] = []
    with socket.create_server(("", 0), backlog=expected + 8) as server:
        invitation = {"name": name, "addresses": list(addresses), "port": server.getsockname()[1]}
        temporary = place.with_name(f"{place.name}.{os.getpid()}")
        temporary.write_text(json.dumps(invitation))
        os.replace(temporary, place)
        threads: list[threading.Thread] = []
        while len(threads) < expected and (left := deadline - time.monotonic()) > 0:
            server.settimeout(left)
            try:
                guest, _ = server.accept()
            except TimeoutError:
                break
            thread = threading.Thread(target=_welcome, args=(guest, found), daemon=True)
            thread.start()
            threads.append(thread)
        for thread in threads:
            thread.join(2 * CONNECT_S)
    with contextlib.suppress(OSError):
        place.unlink()
    return tuple(sorted(found, key=lambda c: c.peer))


def _welcome(guest: socket.socket, found: list[Contact]) -> None:
    with guest:
        guest.settimeout(CONNECT_S)
        try:
            lines = guest.makefile("rwb")
            said = json.loads(lines.readline(4096))
            lines.write(json.dumps({"time": time.time()}).encode() + b"\n")
            lines.flush()
            peer, back = str(said["name"])[:100], f"{guest.getpeername()[0]}:{int(said['port'])}"
        except (OSError, ValueError, KeyError, TypeError):
            return
    began = time.monotonic()
    host, _, port = back.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), CONNECT_S):
            found.append(Contact(peer=peer, address=back, took_s=round(time.monotonic() - began, 4)))
    except OSError as e:
        found.append(Contact(peer=peer, address=back, error=e.strerror or str(e)))


def _visit(place: Path, name: str, deadline: float) -> tuple[Contact, ...]:
    """Find the first node's addresses and try each."""
    invitation = None
    while invitation is None and time.monotonic() < deadline:
        try:
            invitation = json.loads(place.read_text())
        except (OSError, ValueError):
            time.sleep(0.1)
    if invitation is None:
        return (Contact(peer="the first node", address="", error=f"its invitation did not appear in {place.parent}"),)
    found = []
    with socket.create_server(("", 0)) as own:
        own.settimeout(CONNECT_S)
        hello = json.dumps({"name": name, "port": own.getsockname()[1]}).encode() + b"\n"
        for address in invitation["addresses"]:
            contact = _call(invitation["name"], f"{address}:{invitation['port']}", hello)
            found.append(contact)
            if contact.error is None:
                with contextlib.suppress(OSError):
                    own.accept()[0].close()  # the first node connects back
                break
    return tuple(found)


def _call(peer: str, address: str, hello: bytes) -> Contact:
    host, _, port = address.rpartition(":")
    began = time.monotonic()
    try:
        with socket.create_connection((host, int(port)), CONNECT_S) as s:
            took = time.monotonic() - began
            lines = s.makefile("rwb")
            sent = time.time()
            lines.write(hello)
            lines.flush()
            theirs = float(json.loads(lines.readline(4096))["time"])
            back = time.time()
    except (OSError, ValueError, KeyError, TypeError) as e:
        return Contact(peer=peer, address=address, error=str(getattr(e, "strerror", None) or e) or type(e).__name__)
    return Contact(
        peer=peer, address=address, took_s=round(took, 4), clock_ahead_s=round((sent + back) / 2 - theirs, 4), bound_s=round((back - sent) / 2, 4)
    )
