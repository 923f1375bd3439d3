"""NCCL's RAS subsystem (on by default since 2.24): one local TCP socket tells, for every communicator of the job, how far each rank came.

A line protocol: ``CLIENT PROTOCOL n``, ``SET FORMAT json`` (2.28 and newer; older ones answer with an error and give text), ``TIMEOUT s``,
``STATUS``.
"""

from __future__ import annotations

import socket
import time

from ray_rl_debug.formats.nccl_ras import parse_ras
from ray_rl_debug.model import gaps
from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.model.snapshot import Gap, RasCommunicator

PORT = 28028
PROTOCOL = 2
MAX_BYTES = 64 << 20
"""The answer for 10,000 ranks in ten communicators each is some 40 MB of JSON."""

TIMEOUT_S = 6.0
PEERS_TIMEOUT_S = 3
"""How long NCCL waits for other processes; its own default is 5. A stopped process makes every answer take this long."""


def query_ras(
    host: str = "127.0.0.1", port: int = PORT, *, timeout_s: float = TIMEOUT_S, max_bytes: int = MAX_BYTES
) -> tuple[tuple[RasCommunicator, ...] | None, Gap | None]:
    """All communicators that the process at this socket knows of, or why not; within ``timeout_s`` seconds.

    Ask only where a process of the job listens: anything else may own the port.
    """
    deadline = time.monotonic() + timeout_s
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as connection:
            answer = _Lines(connection, deadline, max_bytes)
            connection.sendall(f"CLIENT PROTOCOL {PROTOCOL}\n".encode())
            if not answer.line().startswith(b"SERVER PROTOCOL "):
                raise UnreadableFileError("it does not speak the protocol of RAS")
            connection.sendall(b"SET FORMAT json\n")
            answer.line()
            connection.sendall(f"TIMEOUT {PEERS_TIMEOUT_S}\n".encode())
            answer.line()
            connection.sendall(b"VERBOSE STATUS\n")
            return parse_ras(answer.rest()), None
    except UnreadableFileError as e:
        reason = str(e)
    except TimeoutError:
        reason = f"no whole answer in {timeout_s:g} s"
    except OSError as e:
        reason = e.strerror or type(e).__name__
    return None, Gap(id=gaps.RAS_UNREAD, where="", what="NCCL's counts of collectives", reason=f"RAS at {host}:{port}: {reason}")


class _Lines:
    """Reads lines, then everything up to the end of the stream, before a moment and up to a size."""

    def __init__(self, connection: socket.socket, deadline: float, max_bytes: int) -> None:
        self._connection = connection
        self._deadline = deadline
        self._max_bytes = max_bytes
        self._held = bytearray()

    def line(self) -> bytes:
        while b"\n" not in self._held:
            if not self._more():
                raise UnreadableFileError("it closed the connection")
        line, _, rest = bytes(self._held).partition(b"\n")
        self._held = bytearray(rest)
        return line.strip()

    def rest(self) -> bytes:
        while self._more():
            pass
        return bytes(self._held)

    def _more(self) -> bool:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        block = self._connection.recv(1 << 16)
        self._held += block
        if len(self._held) > self._max_bytes:
            raise UnreadableFileError(f"more than {self._max_bytes >> 20} MiB")
        return bool(block)
