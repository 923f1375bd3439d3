"""What the command and its Ray driver (a child process) say to each other: length-prefixed MessagePack."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import msgspec

from ray_rl_debug.collect.options import CollectOptions

STOP = b"s"
"""Sent by the command after the request: finish early with what there is. End of file means that the command is gone."""
MAX_MESSAGE_BYTES = 1 << 30


class Seat(msgspec.Struct, frozen=True, kw_only=True):
    """A node that gets an agent."""

    node_id: str
    name: str
    ip: str
    skip_pids: tuple[int, ...] = ()
    pyspy: str | None = None
    """Where our copy of py-spy lies there."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the driver is to do. Seconds count from its arrival."""

    address: str
    namespace: str
    use_token: bool
    seats: tuple[Seat, ...]
    collect: CollectOptions
    drivers: tuple[tuple[str, int], ...] = ()
    """Drivers of jobs: IP address and pid."""
    start_s: float = 20.0
    """Agents that have not started by then collect later than the others."""
    gather_s: float = 60.0
    keep_agents: bool = False


class Said(msgspec.Struct, frozen=True, tag=True):
    """Progress."""

    text: str


class Timed(msgspec.Struct, frozen=True, tag=True):
    """How long a part took."""

    name: str
    seconds: float


class Facts(msgspec.Struct, frozen=True, tag=True):
    """The facts of one node, as its agent encoded them."""

    node_id: str
    data: bytes


class Lost(msgspec.Struct, frozen=True, tag=True):
    """A node that gives nothing any more."""

    node_id: str
    reason: str


class Ended(msgspec.Struct, frozen=True, tag=True):
    """Nothing more comes."""

    reason: str | None = None
    """Why nothing could be done at all."""


Message = Said | Timed | Facts | Lost | Ended


def pack(value: msgspec.Struct) -> bytes:
    body = msgspec.msgpack.encode(value)
    return struct.pack("<I", len(body)) + body


def read_message(read: Callable[[int], bytes], kind: Any = Message) -> Any:
    """The next message from a reader of exactly n bytes; None at the end of the stream."""
    head = read(4)
    if len(head) < 4:
        return None
    (length,) = struct.unpack("<I", head)
    body = read(length) if length <= MAX_MESSAGE_BYTES else b""
    return msgspec.msgpack.decode(body, type=kind) if len(body) == length else None
