"""The item that a pool's worker is at, from look to look."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import Stacks, process

from ray_rl_debug.analyze.work_items import works_on
from ray_rl_debug.model.snapshot import Local, Node, Process, ThreadSample

WORKS = "score@/job/reward.py:7 worker@multiprocessing/pool.py:125"
RESTS = "get@multiprocessing/queues.py:364 take@/job/reward.py:3"


def seen(*looks: tuple[str, dict[str, str]]) -> tuple[Node, Process]:
    """A worker at these stacks, one for each look, with these locals of its outer frame."""
    stacks = Stacks()
    one = process(stacks, 20, "python t.py", WORKS)
    texts = [ThreadSample(stack=stacks.add(text), tid=20, name="MainThread", locals=_locals(values)) for text, values in looks]
    samples = tuple(replace(sample, threads=(thread,)) for sample, thread in zip(one.samples, texts, strict=True))
    return stacks.node([one]), replace(one, samples=samples)


def _locals(values: dict[str, str]) -> tuple[Local, ...]:
    return tuple(Local(frame=1, name=name, value=value) for name, value in values.items())


FIRST, NEXT = {"job": "3", "i": "0"}, {"job": "3", "i": "1"}


@pytest.mark.parametrize(
    ("before", "after", "works"),
    [
        ((WORKS, FIRST), (WORKS, NEXT), True),
        ((RESTS, {}), (WORKS, FIRST), True),
        ((WORKS, FIRST), (WORKS, FIRST), False),
        ((WORKS, {"job": "3"}), (WORKS, FIRST), False),
        ((WORKS, FIRST), (WORKS, {"job": "3"}), False),
        ((WORKS, {}), (WORKS, FIRST), False),
    ],
    ids=["the next item", "its first item", "one item", "a local unread before", "a local unread after", "no local read before"],
)
def test_only_another_item_is_progress(before: tuple[str, dict[str, str]], after: tuple[str, dict[str, str]], works: bool) -> None:
    assert works_on(*seen(before, before, after)) is works
