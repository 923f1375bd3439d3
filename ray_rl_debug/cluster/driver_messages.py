"""What the command and its Ray driver (a child process) say to each other: length-prefixed MessagePack."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.model import codec

MAX_MESSAGE_BYTES = 1 << 30


class AgentNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node that gets an agent."""

    node_id: str
    name: str
    ip: str
    skip_pids: tuple[int, ...] = ()
    pyspy: str | None = None
    """Where our copy of py-spy lies there."""

    def options(self, collect: CollectOptions, drivers: Iterable[tuple[str, int]]) -> CollectOptions:
        """What is asked of this node; `drivers` are addresses and pids of those that it is to look at."""
        return msgspec.structs.replace(
            collect,
            node_id=self.node_id,
            node_name=self.name,
            node_ip=self.ip,
            driver_pids=tuple(pid for ip, pid in drivers if ip == self.ip),
            skip_pids=(*collect.skip_pids, *self.skip_pids),
            pyspy=self.pyspy or collect.pyspy,
        )


# --- orders of the command -------------------------------------------------------------------------------------------


class Connect(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The first order: which cluster."""

    address: str
    namespace: str
    use_token: bool = False


class Gather(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Place agents where they are missing and, with `collect`, bring the facts of all nodes. Seconds count from its arrival."""

    agent_nodes: tuple[AgentNode, ...]
    collect: CollectOptions | None = None
    """None only places agents; each that answers is told by `Ready`."""
    drivers: tuple[tuple[str, int], ...] = ()
    """Drivers of jobs: IP address and pid."""
    start_s: float = 20.0
    """Agents that have not started by then collect later than the others."""
    gather_s: float = 60.0
    keeper: str | None = None
    """Who wants the agents to stay; None removes those that were started for this order."""


class Ask(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Call one of our functions in every agent that is known to be there."""

    target: str
    """``package.module:function``, bytes to bytes."""
    payload: bytes
    keeper: str
    deadline_s: float
    payloads: dict[str, bytes] = {}
    """By node id; then only these nodes are asked, each with its own."""


class Called(msgspec.Struct, frozen=True, kw_only=True):
    """An actor that is asked."""

    actor_id: str
    name: str
    namespace: str


class AskActors(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Call async actors of the job for their coroutines; each is answered for by a `Told`."""

    actors: tuple[Called, ...]
    deadline_s: float


class Release(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The keeper needs the agents no more; those that nobody keeps are removed."""

    agent_nodes: tuple[AgentNode, ...]
    keeper: str


class Halt(msgspec.Struct, frozen=True, tag=True):
    """Finish the order in progress early, with what there is."""


class Leave(msgspec.Struct, frozen=True, tag=True):
    """The last order."""


Order = Connect | Gather | Ask | AskActors | Release | Halt | Leave


# --- what the driver says --------------------------------------------------------------------------------------------


class Said(msgspec.Struct, frozen=True, tag=True):
    """Progress."""

    text: str


class Timed(msgspec.Struct, frozen=True, tag=True):
    """How long a part took."""

    name: str
    seconds: float


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The agent of this node is there."""

    node_id: str


class Clock(msgspec.Struct, frozen=True, tag=True):
    """The wall clock of a node against ours, by the fastest of some pings; seconds."""

    node_id: str
    at_time_s: float
    ahead_s: float
    bound_s: float


class Facts(msgspec.Struct, frozen=True, tag=True):
    """The facts of one node, as its agent encoded them, or its answer to an `Ask`."""

    node_id: str
    data: bytes


class Told(msgspec.Struct, frozen=True, tag=True):
    """What an actor told; empty when it did not."""

    actor_id: str
    data: bytes


class Lost(msgspec.Struct, frozen=True, tag=True):
    """A node that gives nothing any more."""

    node_id: str
    reason: str


class Ended(msgspec.Struct, frozen=True, tag=True):
    """The order is done, or nothing can be done any more."""

    reason: str | None = None
    """Why nothing could be done at all."""
    is_gone: bool = False
    """The driver itself has ended."""


Message = Said | Timed | Ready | Clock | Facts | Told | Lost | Ended


class DamagedMessageError(ValueError):
    """Bytes that are none of these messages."""


def decode(body: bytes, kind: Any = Message) -> Any:
    """Raises `DamagedMessageError` for everything else."""
    try:
        return msgspec.msgpack.decode(body, type=kind)
    except (ValueError, RecursionError, OverflowError, MemoryError) as e:  # text that is not UTF-8 and deep nesting raise errors of their own
        raise DamagedMessageError(str(e)) from e


def pack(value: msgspec.Struct) -> bytes:
    body = codec.pack(value)
    return struct.pack("<I", len(body)) + body


def read_message(read: Callable[[int], bytes], kind: Any = Message) -> Any:
    """The next message from a reader of exactly n bytes; None at the end of the stream. Raises as `decode`."""
    head = read(4)
    if len(head) < 4:
        return None
    (length,) = struct.unpack("<I", head)
    body = read(length) if length <= MAX_MESSAGE_BYTES else b""
    return decode(body, kind) if len(body) == length else None
