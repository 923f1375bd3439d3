"""Of many waiting ranks the report names the six with the smallest numbers, however many there are."""

from __future__ import annotations

import random

import pytest

from ray_rl_debug.rules.scene import first_labels


@pytest.mark.parametrize(
    "labels",
    [
        [f"actor/{i}" for i in range(3000)],
        [f"actor/{i}" for i in range(95, 3000)],
        [f"gpu1/{i}" for i in (7, 10_000, *range(100, 300))],
        [f"layer/{i:03}" for i in range(5, 70)] + [f"layer/{i}" for i in range(6, 20)],
        [*(f"a{i}" for i in range(90)), "b"],
        ["rank", *(f"rank{i}" for i in range(90))],
        [f"r{i}/x" for i in range(90)],
        ["one", "two"],
    ],
)
def test_smallest_numbers_come_first(labels: list[str]) -> None:
    mixed = random.Random(0).sample(labels, len(labels))
    expected = sorted(mixed, key=_by_number)[:6]
    more = f" and {len(labels) - 6} more" if len(labels) > 6 else ""
    assert [_by_number(label) for label in first_labels(mixed).removesuffix(more).split(", ")] == [_by_number(label) for label in expected]


def _by_number(label: str) -> list[tuple[str, int]]:
    """Each run of letters with the number behind it, one sign at a time."""
    parts, word = [], ""
    for sign in label:
        if sign.isdigit() and word.endswith("\0"):
            parts[-1] = (parts[-1][0], parts[-1][1] * 10 + int(sign))
        elif sign.isdigit():
            parts.append((word, int(sign)))
            word = "\0"
        else:
            word = word.removesuffix("\0") + sign
    return [*parts, (word.removesuffix("\0"), -1)]
