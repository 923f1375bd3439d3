"""What the companion and its watchers on the nodes say to each other, over one TCP connection each: sealed MessagePack (`seal`), no pickle."""

from __future__ import annotations

import msgspec

from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.model import codec
from ray_rl_debug.watch.node_watch import WatchOrder
from ray_rl_debug.watch.seal import WireError
from ray_rl_debug.watch.signals import NodeReading

MAX_ORDER_BYTES = 64 << 20
"""The largest carries py-spy, 2 MB."""
MAX_ANSWER_BYTES = 4 << 20
"""The signs of 400 processes are a quarter of a megabyte."""
MAX_FACTS_BYTES = 256 << 20
"""Of a node that was asked to collect: some megabytes."""
SILENT_S = 120.0
"""A companion asks every few seconds; a watcher that hears nothing for so long ends."""


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The first message of a watcher; its seal proves which one it is."""

    pid: int
    has_pyspy: bool


class Read(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Tell the signs."""

    order: WatchOrder


class PySpy(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The program, packed, for a node that has none."""

    packed: bytes


class Installed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """May py-spy run here now?"""

    done: bool


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
    """SIGTERM to a driver of this node."""

    pid: int
    start_ticks: int
    """The pid alone may belong to another process by now."""


class Reading(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    reading: NodeReading
    no_room: str | None = None
    """Why the node's raylet should be asked for no new process."""


class Pong(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    number: int
    time_s: float


class Collected(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    ticket: int
    data: bytes | None
    """The node, encoded and packed."""
    reason: str | None = None
    """Why there is none."""


class DriverEnded(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Was the driver asked to end?"""

    done: bool


Order = Read | PySpy | Ping | Collect | FinishEarly | EndDriver
Answer = Hello | Reading | Installed | Pong | Collected | DriverEnded

_DAMAGED = (ValueError, RecursionError, OverflowError, MemoryError)
"""What msgspec raises for bytes that are no message: its own error is a ValueError, as is that for text which is not UTF-8."""
_orders = msgspec.msgpack.Decoder(Order)
_answers = msgspec.msgpack.Decoder(Answer)


def encode(message: msgspec.Struct) -> bytes:
    return codec.pack(message)


def decode_order(body: bytes) -> Order:
    """Raises `WireError` for everything else."""
    try:
        order: Order = _orders.decode(body)
    except _DAMAGED as e:
        raise WireError(f"not an order: {e}") from e
    return order


def decode_answer(body: bytes) -> Answer:
    """Raises `WireError` for everything else."""
    try:
        answer: Answer = _answers.decode(body)
    except _DAMAGED as e:
        raise WireError(f"not an answer: {e}") from e
    return answer
