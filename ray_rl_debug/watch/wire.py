"""What the companion and its watchers on the nodes say to each other, over one TCP connection each: length-prefixed MessagePack, no pickle.

A watcher proves with the first message that it is ours: the token travels by way of Ray. It never connects twice: whoever takes over the
companion's port after its death learns nothing.
"""

from __future__ import annotations

import socket
import struct

import msgspec

from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.watch.node_watch import WatchOrder
from ray_rl_debug.watch.signals import NodeReading

MAX_ORDER_BYTES = 64 << 20
MAX_ANSWER_BYTES = 1 << 30
SILENT_S = 120.0
"""A companion asks every few seconds; a watcher that hears nothing for so long ends."""


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The first message of a watcher."""

    token: str
    node_id: str
    pid: int
    has_pyspy: bool


class Read(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Tell the signs."""

    order: WatchOrder


class PySpy(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The program, packed, for a node that has none."""

    packed: bytes


class Ping(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Tell your wall clock."""

    number: int


class Collect(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Collect all facts of the node."""

    ticket: int
    options: CollectOptions


class FinishEarly(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """End the window of a collection now."""

    ticket: int


class EndDriver(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """SIGTERM to a driver of a node's address."""

    ip: str | None
    pid: int


class Reading(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    reading: NodeReading


class Pong(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    number: int
    time_s: float


class Collected(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    ticket: int
    data: bytes | None
    """The node, encoded and packed."""
    reason: str | None = None
    """Why there is none."""


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Was the driver asked to end?"""

    done: bool


Order = Read | PySpy | Ping | Collect | FinishEarly | EndDriver
Answer = Hello | Reading | Pong | Collected | Ended

_orders = msgspec.msgpack.Decoder(Order)
_answers = msgspec.msgpack.Decoder(Answer)


def packed(message: msgspec.Struct) -> bytes:
    body = msgspec.msgpack.encode(message)
    return struct.pack("<I", len(body)) + body


def receive_order(connection: socket.socket) -> Order | None:
    """The next order; None when the companion is gone, or has sent what is no order."""
    head = _exactly(connection, 4)
    if head is None:
        return None
    (length,) = struct.unpack("<I", head)
    body = _exactly(connection, length) if length <= MAX_ORDER_BYTES else None
    try:
        return _orders.decode(body) if body is not None else None
    except msgspec.DecodeError:
        return None


class Parts:
    """Puts the bytes of a connection together to answers."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def add(self, data: bytes) -> list[Answer]:
        """The answers that are complete now.

        Raises:
            ValueError: the other end is no watcher.
        """
        self._buffer += data
        found: list[Answer] = []
        while len(self._buffer) >= 4:
            (length,) = struct.unpack_from("<I", self._buffer)
            if length > MAX_ANSWER_BYTES:
                raise ValueError("too long for an answer")
            if len(self._buffer) < 4 + length:
                break
            try:
                found.append(_answers.decode(memoryview(self._buffer)[4 : 4 + length].tobytes()))
            except msgspec.DecodeError as e:
                raise ValueError("not an answer") from e
            del self._buffer[: 4 + length]
        return found


def _exactly(connection: socket.socket, count: int) -> bytes | None:
    data = bytearray()
    while len(data) < count:
        try:
            part = connection.recv(min(1 << 16, count - len(data)))
        except OSError:
            return None  # also a silence that lasted too long
        if not part:
            return None
        data += part
    return bytes(data)
