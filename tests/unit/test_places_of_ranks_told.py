"""Ranks that wait in three collectives are told one by one: the sentence says of nobody that it waits where another one does."""

from __future__ import annotations

from scenes import ALL_REDUCE, BARRIER, Stacks, process, snapshot

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause

BROADCAST = "broadcast@torch/distributed/distributed_c10d.py:2900 wrapper@torch/distributed/c10d_logger.py:81"


def summary(*stacks_of_ranks: str) -> str:
    stacks = Stacks()
    ranks = [process(stacks, 100 + rank, "train.py", stack, rank=rank, size=len(stacks_of_ranks)) for rank, stack in enumerate(stacks_of_ranks)]
    finding = diagnose(snapshot(stacks.node(ranks))).findings[0]
    assert finding.cause is Cause.COLLECTIVE_MISMATCH
    return finding.summary


def test_each_place_is_told_with_its_ranks() -> None:
    steps = [f"{ALL_REDUCE} step@app/train.py:30"] + [f"{BROADCAST} sync@app/train.py:20"] * 2 + [f"{BARRIER} save@app/train.py:10"] * 2
    told = summary(*steps)
    assert "/0 waits in all_reduce in step (train.py:30)" in told
    assert "2 ranks wait in broadcast in sync (train.py:20)" in told
    assert "2 ranks wait in barrier in save (train.py:10)" in told
    assert "the other ranks" not in told


def test_of_two_places_the_others_are_all_at_one() -> None:
    told = summary(*[f"{BROADCAST} sync@app/train.py:20"] * 3, f"{ALL_REDUCE} step@app/train.py:30")
    assert "the other ranks wait in broadcast in sync (train.py:20)" in told
