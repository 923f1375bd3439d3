"""Many labels in little room: ``actor/0``, ``actor/1``, ``actor/2``, ``actor/4`` become ``actor/0-2,4``."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMBERED = re.compile(r"^(?P<head>(?:.*\D)?)(?P<number>0|[1-9]\d{0,8})$", re.DOTALL)


def fold_labels(labels: Iterable[str]) -> str:
    """Labels that differ only in their last number are folded to ranges; equal ones are counted (``driver ×3``)."""
    numbers: dict[str, list[int]] = {}
    plain: dict[str, int] = {}
    order: dict[tuple[bool, str], None] = {}
    for label in labels:
        found = _NUMBERED.match(label)
        if found:
            numbers.setdefault(found["head"], []).append(int(found["number"]))
            order[(True, found["head"])] = None
        else:
            plain[label] = plain.get(label, 0) + 1
            order[(False, label)] = None
    parts = []
    for numbered, key in order:
        if numbered:
            parts.append(key + fold_numbers(numbers[key]))
        else:
            parts.append(key if plain[key] == 1 else f"{key} ×{plain[key]}")
    return ", ".join(parts)


def fold_numbers(numbers: Iterable[int]) -> str:
    """``0,1,2,4`` as ``0-2,4``; two neighbours stay apart with a comma."""
    ordered = sorted(set(numbers))
    runs: list[list[int]] = []
    for number in ordered:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else (f"{a},{b}" if b == a + 1 else f"{a}-{b}") for a, b in runs)
