"""The socket that a chain of coroutines reads from or writes to, where its frames tell."""

from __future__ import annotations

import os
from pathlib import Path

from ray_rl_debug.collect.async_tasks.chains import ChainLink, Chains
from ray_rl_debug.collect.async_tasks.memory import BadRead

_READERS = {
    "asyncio/streams.py": frozenset({"_wait_for_data", "_drain_helper"}),
    "aiohttp/client_proto.py": frozenset({"read"}),
    "aiohttp/streams.py": frozenset({"read", "_wait"}),
    "aiohttp/base_protocol.py": frozenset({"_drain_helper"}),
    "anyio/_backends/_asyncio.py": frozenset({"receive", "send"}),
    "websockets/asyncio/messages.py": frozenset({"get"}),
    "uvicorn/protocols/http/flow_control.py": frozenset({"drain"}),
}
"""Coroutines that wait for their object's transport, by file."""
_SOCKET_CALLS = frozenset({"sock_recv", "sock_recv_into", "sock_recvfrom", "sock_sendall", "sock_sendto", "sock_accept", "sock_connect"})
_TRANSPORT = ("_transport", "transport")
_PROTOCOL = ("_protocol",)
_WRITERS = frozenset({"_drain_helper", "drain", "send", "sock_sendall", "sock_sendto"})
_SOCKET_FD = 16
_UV_TRANSPORTS = frozenset({"TCPTransport", "UnixTransport", "ReadUnixTransport", "WriteUnixTransport"})
_UV_HANDLE, _UV_STREAM_FD = 24, 184
"""uvloop: its ``uv_stream_t`` pointer in a transport, and libuv's descriptor in that; used only where the descriptor is a socket."""


class Descriptors:
    """Finds file descriptors of one process."""

    def __init__(self, chains: Chains, pid: int, proc: Path) -> None:
        self._chains, self._memory, self._objects = chains, chains.memory, chains.objects
        self._fds = proc / str(pid) / "fd"

    def find(self, links: list[ChainLink]) -> tuple[int, str] | None:
        """The descriptor of the socket that the innermost of these coroutines waits for, and what for: ``read``, ``write`` or ``connect``."""
        for link in reversed(links):
            file, name = link.frame.file, link.frame.function.rpartition(".")[2]
            goal = "connect" if name == "sock_connect" else "write" if name in _WRITERS else "read"
            try:
                if file == "asyncio/selector_events.py" and name in _SOCKET_CALLS:
                    fd = self._checked(self._of_socket(self._chains.variable(link, "sock")))
                    return (fd, goal) if fd is not None else None
                if name in _READERS.get(file or "", ()):
                    fd = self._of_owner(self._chains.variable(link, "self"))
                    if fd is not None:
                        return fd, goal
            except BadRead:
                continue
        return None

    def _of_owner(self, owner: int) -> int | None:
        transport = self._objects.attribute(owner, *_TRANSPORT)
        if not transport or self._objects.type_name(transport) == "NoneType":
            protocol = self._objects.attribute(owner, *_PROTOCOL)
            transport = self._objects.attribute(protocol, *_TRANSPORT) if protocol else 0
        return self._of_transport(transport) if transport else None

    def _of_transport(self, transport: int) -> int | None:
        for _ in range(3):  # a TLS transport holds its protocol, and that the transport below
            number = self._objects.attribute(transport, "_sock_fd")
            if number:
                value = self._objects.number(number)
                return self._checked(value if isinstance(value, int) else None)
            if self._objects.type_name(transport) in _UV_TRANSPORTS:
                return self._checked(self._of_uv(transport))
            protocol = self._objects.attribute(transport, "_ssl_protocol")
            transport = self._objects.attribute(protocol, *_TRANSPORT) if protocol else 0
            if not transport:
                return None
        return None

    def _of_socket(self, sock: int) -> int | None:
        kind = self._objects.type_of(sock)
        if kind is None or kind.name != "socket":
            return None
        return int.from_bytes(self._memory.read(sock + _SOCKET_FD, 4), "little", signed=True)

    def _of_uv(self, transport: int) -> int | None:
        handle = self._memory.word(transport + _UV_HANDLE)
        return int.from_bytes(self._memory.read(handle + _UV_STREAM_FD, 4), "little", signed=True) if handle else None

    def _checked(self, fd: int | None) -> int | None:
        """The descriptor, when the kernel says that it is a socket."""
        if fd is None or fd < 0:
            return None
        try:
            return fd if os.readlink(self._fds / str(fd)).startswith("socket:") else None
        except OSError:
            return None
