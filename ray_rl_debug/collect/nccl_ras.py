"""NCCL's RAS subsystem (on by default since 2.24): one local TCP socket tells, for every communicator of the job, how far each rank came.

A line protocol: ``CLIENT PROTOCOL n``, ``SET FORMAT json`` (2.28 and newer; older ones answer with an error and give text), ``TIMEOUT s``,
``STATUS``.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Collection

from ray_rl_debug.formats.nccl_ras import parse_ras
from ray_rl_debug.model import gaps
from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.model.snapshot import Gap, RasCommunicator

PORT = 28028
PROTOCOL = 2
MAX_BYTES = 64 << 20
"""The answer for 10,000 ranks in ten communicators each is some 40 MB of JSON."""

TIMEOUT_S = 6.0
HELLO_S = 0.5
"""For the first line, where others listen too: a process of NCCL has a thread of its own for it."""
MAX_QUESTIONS = 8
PEERS_TIMEOUT_S = 3
"""How long NCCL waits for other processes; its own default is 5. A stopped process makes every answer take this long."""


def query_ras(
    host: str = "127.0.0.1",
    port: int = PORT,
    *,
    listeners: Collection[int] = (),
    timeout_s: float = TIMEOUT_S,
    max_bytes: int = MAX_BYTES,
) -> tuple[tuple[RasCommunicator, ...] | None, Gap | None]:
    """All communicators that the processes at this socket know of, or why not; within ``timeout_s`` seconds.

    Every process of NCCL listens at the same port, and the kernel chooses who answers. One that is stopped never does, and one knows nothing of the
    jobs of others (a trainer and the engines beside it). So they are asked until each was met or told of.

    Args:
        host: Ask only where a process of the job listens: anything else may own the port.
        port: Of RAS.
        listeners: Ids of the processes that listen there.
        timeout_s: For all questions together.
        max_bytes: Longest answer that is read.
    """
    deadline = time.monotonic() + timeout_s
    found: dict[tuple[str, int], RasCommunicator] = {}
    answered, reason, open_ = False, "", set(listeners)
    for _ in range(max(1, min(MAX_QUESTIONS, 2 * len(listeners)))):
        try:
            communicators = _ask(host, port, deadline, HELLO_S if len(listeners) > 1 else timeout_s, max_bytes)
        except UnreadableFileError as e:
            reason = str(e)
        except TimeoutError:
            reason = f"no whole answer in {timeout_s:g} s"
        except OSError as e:
            reason = e.strerror or type(e).__name__
        else:
            answered = True
            for one in communicators:
                key = (one.hash, one.size)
                if key not in found or len(found[key].ranks) < len(one.ranks):
                    found[key] = one
                open_ -= {r.pid for r in (*one.ranks, *one.missing)}
        if not open_ or time.monotonic() >= deadline:
            break
    if answered:
        return tuple(found.values()), None
    return None, Gap(id=gaps.RAS_UNREAD, where="", what="NCCL's counts of collectives", reason=f"RAS at {host}:{port}: {reason}")


def _ask(host: str, port: int, deadline: float, hello_s: float, max_bytes: int) -> tuple[RasCommunicator, ...]:
    """One answer.

    Raises:
        TimeoutError: nobody said hello in time, or the answer was not whole by the deadline.
        UnreadableFileError: it does not speak the protocol.
        OSError: it could not be asked.
    """
    hello = min(deadline, time.monotonic() + hello_s)
    with socket.create_connection((host, port), timeout=max(0.01, hello - time.monotonic())) as connection:
        answer = _Lines(connection, hello, max_bytes)
        connection.sendall(f"CLIENT PROTOCOL {PROTOCOL}\n".encode())
        if not answer.line().startswith(b"SERVER PROTOCOL "):
            raise UnreadableFileError("it does not speak the protocol of RAS")
        answer.deadline = deadline
        connection.sendall(b"SET FORMAT json\n")
        answer.line()
        connection.sendall(f"TIMEOUT {PEERS_TIMEOUT_S}\n".encode())
        answer.line()
        connection.sendall(b"VERBOSE STATUS\n")
        return parse_ras(answer.rest())


class _Lines:
    """Reads lines, then everything up to the end of the stream, before a moment and up to a size."""

    def __init__(self, connection: socket.socket, deadline: float, max_bytes: int) -> None:
        self._connection = connection
        self.deadline = deadline
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
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        block = self._connection.recv(1 << 16)
        self._held += block
        if len(self._held) > self._max_bytes:
            raise UnreadableFileError(f"more than {self._max_bytes >> 20} MiB")
        return bool(block)
