"""What the nodes sent: kept as it came until there is time, then decoded one by one, equal values once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ray_rl_debug.model import codec
from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.model.packed_node import Unpacking
from ray_rl_debug.model.snapshot import Node
from ray_rl_debug.privacy.masking import mask

MAX_NODE_BYTES = 256 << 20
"""The facts of one node, unpacked: about a megabyte for 100 processes."""
LEAST_NODE_BYTES = 8 << 20
ALL_BYTES = 2 << 30
"""The facts of all nodes, unpacked."""
PACKED_BYTES = 512 << 20
"""Of all messages that wait to be decoded; 1,250 nodes send 55 MB."""


class NodeMessages:
    """Messages by node id. Taking one costs nothing, so that no node is late because another one's facts are long."""

    def __init__(self, nodes: int, *, lost: Callable[[str, str], None], found: Callable[[str, Node], None]) -> None:
        """`nodes` are expected; `lost` is told the id of a node and what was wrong with its facts, `found` its facts."""
        self._limit = min(MAX_NODE_BYTES, max(LEAST_NODE_BYTES, ALL_BYTES // max(1, nodes)))
        self._lost = lost
        self._found = found
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._waiting_bytes = 0
        self._unpacking = Unpacking(mask)

    def add(self, node_id: str, data: bytes) -> None:
        if self._waiting_bytes + len(data) > PACKED_BYTES:
            self._lost(node_id, f"its facts have {len(data)} bytes, and there is no room for them beside those of the others")
            return
        self._waiting.append((node_id, data))
        self._waiting_bytes += len(data)

    @property
    def is_empty(self) -> bool:
        """Is none left to decode?"""
        return not self._waiting

    def decode_one(self) -> bool:
        """Decode the oldest message; damaged ones are their node's loss alone. False when none is left."""
        if not self._waiting:
            return False
        node_id, data = self._waiting.popleft()
        self._waiting_bytes -= len(data)
        try:
            node = self._unpacking.node(codec.inflate(data, limit=self._limit), limit_bytes=self._limit)
        except (UnreadableFileError, ValueError, RecursionError, MemoryError) as e:
            self._lost(node_id, f"its facts came damaged ({str(e)[:120]})")
            return True
        self._found(node_id, node)
        return True

    def decode_all(self) -> None:
        while self.decode_one():
            pass
