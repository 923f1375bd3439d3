"""The few protobuf encodings that a Perfetto trace needs, made for speed: varints come from tables."""

from __future__ import annotations

import struct

_BITS = 14
MASK = (1 << _BITS) - 1


def _varint_slow(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


LAST = [_varint_slow(i) for i in range(1 << _BITS)]
"""The final bytes of a varint: 14 bits or fewer."""
MORE = [bytes((i & 127 | 128, i >> 7 | 128)) for i in range(1 << _BITS)]
"""14 bits with more to follow."""


def varint(n: int) -> bytes:
    """An unsigned number below 2^64."""
    if n <= MASK:
        return LAST[n]
    if n < 1 << 28:
        return MORE[n & MASK] + LAST[n >> 14]
    if n < 1 << 42:
        return MORE[n & MASK] + MORE[n >> 14 & MASK] + LAST[n >> 28]
    return MORE[n & MASK] + MORE[n >> 14 & MASK] + MORE[n >> 28 & MASK] + varint(n >> 42)


def number(field: int, n: int) -> bytes:
    """A varint field; a negative number as two's complement, as int64 and int32 want it."""
    return varint(field << 3) + varint(n & 0xFFFF_FFFF_FFFF_FFFF)


def nested(field: int, data: bytes) -> bytes:
    """A field with bytes or a message."""
    return varint(field << 3 | 2) + varint(len(data)) + data


def text(field: int, value: str) -> bytes:
    """A string field; what is no valid text becomes a question mark."""
    return nested(field, value.encode("utf-8", "replace"))


def fixed64(field: int, n: int) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<Q", n & 0xFFFF_FFFF_FFFF_FFFF)


def double(field: int, value: float) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<d", value)
