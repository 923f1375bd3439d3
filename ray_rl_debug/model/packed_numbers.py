"""Rows of whole numbers as bytes: no number is wider than the largest of them, and thousands are read as fast as they are copied."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any, TypeVar

_WIDTHS = ((1 << 8, "B"), (1 << 16, "H"), (1 << 32, "I"))
"""The letter comes first and says how wide each number is: one byte, two or four, the lowest first."""
T = TypeVar("T")


def pack_numbers(numbers: Collection[int]) -> bytes:
    """Numbers from 0 to 2^32 - 1."""
    largest = max(numbers, default=0)
    width = next(width for above, width in _WIDTHS if largest < above)
    return width.encode() + _turned(array(width, numbers)).tobytes()


def unpack_numbers(data: bytes) -> Sequence[int]:
    """What `pack_numbers` was given.

    Raises:
        ValueError: no such bytes.
    """
    width = data[:1]
    if width == b"B":
        return data[1:]
    if width not in (b"H", b"I"):
        raise ValueError(f"no row of numbers begins with {width!r}")
    numbers = array(width.decode())
    numbers.frombytes(memoryview(data)[1:])
    return _turned(numbers)


def pack_lists(lists: Collection[Collection[int]]) -> tuple[bytes, bytes]:
    """How long each list is, and the places in all of them, for `unpack_lists`."""
    return pack_numbers(list(map(len, lists))), pack_numbers(list(chain.from_iterable(lists)))


def unpack_lists(lengths: bytes, places: bytes, values: Sequence[T]) -> list[tuple[T, ...]]:
    """The values at these places, from 0, in tuples of these lengths.

    Raises:
        ValueError: no such bytes, or not as many places as the lengths say.
        IndexError: there is no such place.
    """
    found = tuple(map(values.__getitem__, unpack_numbers(places)))
    ends = [0, *accumulate(unpack_numbers(lengths))]
    if ends[-1] != len(found):
        raise ValueError("lists are longer or shorter than what stands in them")
    return [found[start:end] for start, end in pairwise(ends)]


def pack_fractions(numbers: Iterable[float]) -> bytes:
    """Numbers with a fraction, eight bytes each, the lowest first."""
    return _turned(array("d", numbers)).tobytes()


def unpack_fractions(data: bytes) -> list[float]:
    """What `pack_fractions` was given.

    Raises:
        ValueError: no such bytes, or one that JSON could not say.
    """
    numbers = array("d")
    numbers.frombytes(data)
    if not all(map(math.isfinite, _turned(numbers))):
        raise ValueError("a number that is none")
    return numbers.tolist()


def _turned(numbers: array[Any]) -> array[Any]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
