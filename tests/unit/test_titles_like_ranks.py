"""A program may call itself as it likes: only in files that somebody gave is its name a word about its rank."""

from __future__ import annotations

from scenes import MAIN, Stacks, process

from ray_rl_debug.analyze.identity import identify


def test_a_living_process_is_no_rank_by_its_title() -> None:
    stacks = Stacks()
    one = process(stacks, 100, "loader/3", MAIN, kind="child")
    assert identify(stacks.node([one]), one, {100: one}, {}).rank is None
