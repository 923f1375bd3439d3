"""TCP and UDP sockets of a process, from its own network namespace, and Unix sockets by inode."""

from __future__ import annotations

import ipaddress
import os
import struct
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ray_rl_debug.collect.procfs import PROC, read_text
from ray_rl_debug.collect.sock_diag import tcp_infos, unix_ends
from ray_rl_debug.model.snapshot import MAX_SOCKETS, Socket

_STATES = {
    1: "ESTABLISHED", 2: "SYN_SENT", 3: "SYN_RECV", 4: "FIN_WAIT1", 5: "FIN_WAIT2", 6: "TIME_WAIT", 7: "CLOSE", 8: "CLOSE_WAIT",
    9: "LAST_ACK", 10: "LISTEN", 11: "CLOSING", 12: "NEW_SYN_RECV",
}  # fmt: skip
HALF_CLOSED = "CLOSE_WAIT"
"""The other end has gone, and ours was not closed."""
UNCONNECTED = "UNCONNECTED"
"""A UDP socket to which anybody may send."""


class SocketReader:
    """Reads each network namespace's tables once."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._tables: dict[str, dict[int, Socket]] = {}

    def read(self, pid: int) -> tuple[Socket, ...] | None:
        """Sockets that `pid` holds; None when its descriptors may not be read."""
        held = _held(pid, self._proc)
        if held is None:
            return None
        table = self._table(pid) if held else {}
        if table is None:
            return None
        rows = [(fd, row) for fd, inode in held if (row := table.get(inode)) is not None]
        if len(rows) > MAX_SOCKETS:  # a connection whose other end has gone tells least
            rows = sorted(sorted(rows, key=lambda pair: pair[1].state == HALF_CLOSED)[:MAX_SOCKETS], key=lambda pair: pair[0])
        return tuple(msgspec.structs.replace(row, fd=fd) for fd, row in rows)

    def states(self, pid: int, inodes: Iterable[int]) -> Counter[str] | None:
        """How many of these sockets of `pid` are in which state; None when the table may not be read."""
        table = self._table(pid)
        return Counter(table[inode].state for inode in inodes if inode in table) if table is not None else None

    def _table(self, pid: int) -> dict[int, Socket] | None:
        """All sockets of its network namespace by inode."""
        try:
            namespace = os.readlink(self._proc / str(pid) / "ns" / "net")
        except OSError:
            return None
        if namespace not in self._tables:
            table = _tables(self._proc / str(pid) / "net")
            # the kernel answers sock_diag for the namespace of the caller alone
            self._tables[namespace] = _more(table) if namespace == self._own_namespace() else table
        return self._tables[namespace]

    def _own_namespace(self) -> str | None:
        try:
            return os.readlink(self._proc / "self" / "ns" / "net")
        except OSError:
            return None


def _more(table: dict[int, Socket]) -> dict[int, Socket]:
    """The table with bytes and silence of TCP connections, the peers of Unix sockets, and the queues of those that listen."""
    infos, (peers, queued_at) = tcp_infos(), unix_ends()
    waiting = Counter(queued_at.values())
    for inode, row in table.items():
        info = infos.get(inode)
        if info is not None:
            table[inode] = msgspec.structs.replace(row, bytes_sent=info.bytes_sent, bytes_received=info.bytes_received, quiet_s=info.quiet_s)
        peer = table.get(peers.get(inode, -1))
        if row.family == "unix" and peer is not None:
            table[inode] = msgspec.structs.replace(row, peer_inode=peer.inode, remote=peer.local)
        listener = table.get(queued_at.get(inode, -1))
        if row.family == "unix" and listener is not None:
            table[inode] = msgspec.structs.replace(row, queued_at=listener.inode, remote=listener.local)
        if row.family == "unix" and row.state == "LISTEN":
            table[inode] = msgspec.structs.replace(row, rx_queue_bytes=waiting[inode])
    return table


def _held(pid: int, proc: Path) -> list[tuple[int, int]] | None:
    folder = proc / str(pid) / "fd"
    found = []
    try:
        names = os.listdir(folder)
    except OSError:
        return None
    for name in names:
        try:
            target = os.readlink(folder / name)
        except PermissionError:
            return None  # the folder may be listed by its owner even where ptrace access is refused
        except OSError:
            continue
        if target.startswith("socket:["):
            found.append((int(name), int(target[8:-1])))
    return sorted(found)


def _tables(net: Path) -> dict[int, Socket]:
    table: dict[int, Socket] = {}
    for family in ("tcp", "tcp6", "udp", "udp6"):
        is_udp = family.startswith("udp")
        for line in (read_text(net / family, 64 << 20) or "").splitlines()[1:]:
            words = line.split()
            if len(words) < 10:
                continue
            try:
                sent, received = (int(x, 16) for x in words[4].split(":"))
                state = _STATES.get(int(words[3], 16), words[3])
                state = UNCONNECTED if is_udp and state == "CLOSE" else state
                inode = int(words[9])
                table[inode] = Socket(
                    family=family,
                    state=state,
                    local=_address(words[1]),
                    remote=_address(words[2]) if state not in ("LISTEN", UNCONNECTED) else None,
                    inode=inode,
                    tx_queue_bytes=sent,
                    rx_queue_bytes=received,
                    retransmits=int(words[6], 16),
                )
            except ValueError:
                continue
    for line in (read_text(net / "unix", 64 << 20) or "").split("\n")[1:]:
        words = line.split(maxsplit=7)  # a path may hold spaces
        if len(words) >= 7 and words[6].isdigit():
            state = {"01": "LISTEN", "02": "SYN_SENT", "03": "ESTABLISHED"}.get(words[5], words[5])
            if words[3] == "00010000":
                state = "LISTEN"
            table[int(words[6])] = Socket(family="unix", state=state, local=words[7] if len(words) > 7 else "", inode=int(words[6]))
    return table


def _address(text: str) -> str:
    host, _, port = text.partition(":")
    raw = bytes.fromhex(host)
    if len(raw) == 4:
        return f"{ipaddress.IPv4Address(raw[::-1])}:{int(port, 16)}"
    words = b"".join(struct.pack(">I", w) for w in struct.unpack("<4I", raw))
    address = ipaddress.IPv6Address(words)
    return f"{address.ipv4_mapped or f'[{address}]'}:{int(port, 16)}"
