"""Data of several nodes through one srun: short lines, each with its node's name, that may come in any order.

srun passes the output of its tasks on line by line, but only lines of less than a kilobyte stay whole.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Iterator

MARK = "rayrl-debug-node"
CHARS = 700
MAX_BYTES = 64 << 20
"""Unpacked, of one node."""
_LINE = re.compile(rf"^{MARK} (\S{{1,255}}) (\d{{1,6}})/(\d{{1,6}}) ([A-Za-z0-9+/=]*)$", re.MULTILINE)


def write_lines(node: str, data: bytes) -> Iterator[str]:
    """`data` of a node as lines."""
    text = base64.b64encode(zlib.compress(data)).decode()
    pieces = [text[i : i + CHARS] for i in range(0, len(text), CHARS)]
    for i, piece in enumerate(pieces, 1):
        yield f"{MARK} {node} {i}/{len(pieces)} {piece}"


def read_lines(text: str) -> dict[str, bytes]:
    """Data by node, of all nodes whose lines are complete and sound; other lines are passed over."""
    pieces: dict[str, dict[int, str]] = {}
    counts: dict[str, int] = {}
    for node, number, count, piece in _LINE.findall(text):
        pieces.setdefault(node, {})[int(number)] = piece
        counts[node] = int(count)
    found = {}
    for node, by_number in pieces.items():
        if len(by_number) == counts[node]:
            try:
                packed = base64.b64decode("".join(by_number[i] for i in sorted(by_number)), validate=True)
                unpacker = zlib.decompressobj()
                data = unpacker.decompress(packed, MAX_BYTES)
            except (binascii.Error, zlib.error):
                continue
            if unpacker.eof:
                found[node] = data
    return found
