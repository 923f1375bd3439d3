"""Of how many ranks nobody knows where they stand, and when the odd one out is known in spite of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import ALL_REDUCE, BARRIER, Stacks, process, snapshot

from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waits import find_waits
from ray_rl_debug.model.snapshot import Process
from ray_rl_debug.rules.placed_ranks import count_unplaced, is_minority
from ray_rl_debug.rules.scene import Scene

STEP = f"{ALL_REDUCE} step@app/train.py:30"
SAVE = f"{BARRIER} save@app/train.py:40"


def scene(texts: list[str], *, size: int, unread: int | None = None) -> Scene:
    """Ranks 0 to n-1 of a world; of rank `unread` no stack was read."""
    stacks = Stacks()
    found: list[Process] = []
    for rank, text in enumerate(texts):
        one = process(stacks, 100 + rank, "python train.py", text, kind="named", rank=rank, size=size)
        found.append(replace(one, samples=()) if rank == unread else one)
    view = build_view(snapshot(stacks.node(found)))
    waits = find_waits(view)
    return Scene(view=view, graph=waits.graph, worlds=waits.worlds, joined=waits.joined)


@pytest.mark.parametrize(
    ("seen", "size", "unread", "count"),
    [(4, 4, None, 0), (3, 4, None, 1), (4, 4, 3, 1), (2, 8, None, 6)],
    ids=["all placed", "one not seen", "one without a stack", "most not seen"],
)
def test_ranks_that_were_not_placed_are_counted_once(seen: int, size: int, unread: int | None, count: int) -> None:
    found = scene([SAVE, STEP, STEP, STEP][:seen], size=size, unread=unread)
    ranks = list(found.view)
    assert count_unplaced(found, ranks) == count
    assert count_unplaced(found, ranks[:1]) == count  # those of the same world, whichever of them is asked about


@pytest.mark.parametrize(
    ("few", "many", "size", "told"),
    [(1, 3, 4, True), (1, 1, 2, True), (1, 2, 4, False), (1, 3, 5, True), (1, 3, 6, False)],
    ids=["all seen", "a tie of all", "one could make it a tie", "one could not", "two could"],
)
def test_the_odd_one_is_known_when_the_rest_could_not_turn_the_vote(few: int, many: int, size: int, told: bool) -> None:
    found = scene([SAVE] * few + [STEP] * many, size=size)
    ranks = sorted(found.view, key=lambda s: s.process.pid)
    assert is_minority(found, ranks[:few], ranks[few:]) is told
