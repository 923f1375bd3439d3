"""What the kernel's sock_diag interface tells beyond ``/proc/net``: bytes and silence of TCP connections, peers of Unix sockets.

Unprivileged netlink requests, answered for the network namespace of the caller only (man 7 sock_diag; linux/inet_diag.h, linux/unix_diag.h,
linux/tcp.h for the layouts, which the kernel only ever extends at their ends).
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

_SOCK_DIAG_BY_FAMILY = 20
_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_INET_DIAG_INFO = 2
_UDIAG_SHOW_PEER, _UNIX_DIAG_PEER = 0x4, 2
_UDIAG_SHOW_ICONS, _UNIX_DIAG_ICONS = 0x8, 3
_ESTABLISHED = 1 << 1
_CLOSE_WAIT = 1 << 8
_INET_HEADER, _UNIX_HEADER = 72, 16
_TIME_LIMIT_S = 1.0
_MAX_SOCKETS = 200_000


class TcpInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of one TCP connection since it was opened."""

    bytes_sent: int | None
    """Acknowledged by the other end."""
    bytes_received: int | None
    quiet_s: float
    """Seconds since the last data came in."""


def tcp_infos() -> dict[int, TcpInfo]:
    """TCP connections of this network namespace by inode; empty when the kernel refuses to answer."""
    found: dict[int, TcpInfo] = {}
    for family in (socket.AF_INET, socket.AF_INET6):
        wanted = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 1 << (_INET_DIAG_INFO - 1), _ESTABLISHED | _CLOSE_WAIT) + bytes(48)
        for body in _ask(wanted):
            info = _attribute(body, _INET_HEADER, _INET_DIAG_INFO)
            if info is not None and len(info) >= 56:
                found[struct.unpack_from("=I", body, _INET_HEADER - 4)[0]] = _tcp_info(info)
    return found


class UnixEnds(NamedTuple):
    """Who is at the other ends of Unix sockets, by inode; empty when the kernel refuses to answer."""

    peers: dict[int, int]
    """The other end of each connected one."""
    queued_at: dict[int, int]
    """The listener in whose queue each client waits that nobody has accepted."""


def unix_ends() -> UnixEnds:
    """Of this network namespace."""
    show = _UDIAG_SHOW_PEER | _UDIAG_SHOW_ICONS
    wanted = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, 0xFFFFFFFF, 0, show, 0, 0)
    found = UnixEnds({}, {})
    for body in _ask(wanted):
        inode = struct.unpack_from("=I", body, 4)[0]
        peer = _attribute(body, _UNIX_HEADER, _UNIX_DIAG_PEER)
        if peer is not None and len(peer) >= 4:
            found.peers[inode] = struct.unpack_from("=I", peer)[0]
        clients = _attribute(body, _UNIX_HEADER, _UNIX_DIAG_ICONS) or b""
        found.queued_at.update((client, inode) for (client,) in struct.iter_unpack("=I", clients[: len(clients) // 4 * 4]) if client)
    return found


def _tcp_info(info: bytes) -> TcpInfo:
    (last_data_received_ms,) = struct.unpack_from("=I", info, 52)
    sent, received = struct.unpack_from("=QQ", info, 120) if len(info) >= 136 else (None, None)
    return TcpInfo(bytes_sent=sent, bytes_received=received, quiet_s=last_data_received_ms / 1000)


def _ask(request: bytes) -> Iterator[bytes]:
    """Bodies of the answers to one dump request; ends at the first error or at the time limit."""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, 4) as channel:  # 4: NETLINK_SOCK_DIAG
            channel.settimeout(_TIME_LIMIT_S)
            channel.send(struct.pack("=IHHII", 16 + len(request), _SOCK_DIAG_BY_FAMILY, _DUMP, 1, 0) + request)
            end = time.monotonic() + _TIME_LIMIT_S
            for _ in range(_MAX_SOCKETS):
                if time.monotonic() > end:
                    return
                answer = channel.recv(1 << 16)
                at = 0
                while at + 16 <= len(answer):
                    length, kind = struct.unpack_from("=IH", answer, at)
                    if kind in (_NLMSG_DONE, _NLMSG_ERROR) or length < 16:
                        return
                    yield answer[at + 16 : at + length]
                    at += (length + 3) & ~3
    except OSError:
        return


def _attribute(body: bytes, start: int, wanted: int) -> bytes | None:
    at = start
    while at + 4 <= len(body):
        length, kind = struct.unpack_from("=HH", body, at)
        if length < 4:
            return None
        if kind == wanted:
            return body[at + 4 : at + length]
        at += (length + 3) & ~3
    return None
