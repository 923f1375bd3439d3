"""Of some ranks of a world, dumped by hand: where these wait in different collectives, no rank that was not dumped explains them."""

from __future__ import annotations

from pathlib import Path

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Cause, Certainty, Finding

BROADCAST = "broadcast (torch/distributed/distributed_c10d.py:2968)\nreceive (pipe/runner.py:44)\nrun (pipe/loop.py:9)\n"
ALL_TO_ALL = "all_to_all_single (torch/distributed/distributed_c10d.py:4781)\nexchange (moe/layer.py:21)\nrun (pipe/loop.py:9)\n"


def roots(folder: Path, stacks: dict[int, str]) -> list[Finding]:
    """The root findings on ranks with these stacks."""
    post = folder / "post.md"
    post.write_text("".join(f"rank {rank}:\n```\n{stack}```\n" for rank, stack in stacks.items()))
    return [f for f in diagnose(load([post]).snapshot).findings if f.root]


def test_different_collectives_of_those_dumped_are_a_mismatch(tmp_path: Path) -> None:
    found = roots(tmp_path, {1: ALL_TO_ALL, 3: BROADCAST})
    assert [(f.cause, f.certainty) for f in found] == [(Cause.COLLECTIVE_MISMATCH, Certainty.POSSIBLE)]
    assert "broadcast" in found[0].summary
    assert "all_to_all_single" in found[0].summary


def test_one_collective_of_those_dumped_still_asks_for_the_others(tmp_path: Path) -> None:
    assert {f.cause for f in roots(tmp_path, {1: BROADCAST, 3: BROADCAST})} == {Cause.RANK_DIED}
