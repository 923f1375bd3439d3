"""A broadcast names one source: a rank that has taken its part goes on before the others have come, so that several idle ranks are all in doubt."""

from __future__ import annotations

import pytest
from scenes import EXECUTOR, MAIN, Stacks, process, snapshot

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import Process

WRAPPER = "wrapper@torch/distributed/c10d_logger.py:81"


def rank(stacks: Stacks, number: int, call: str | None) -> Process:
    text = f"{call}@torch/distributed/distributed_c10d.py:3200 {WRAPPER} Member.update@app/member.py:9 {EXECUTOR} {MAIN}" if call else MAIN
    return process(stacks, 100 + number, "ray::Member.update" if call else "ray::Member", text, rank=number, size=3)


@pytest.mark.parametrize(
    ("call", "idle", "sure"),
    [
        ("broadcast", 2, Certainty.POSSIBLE),
        ("broadcast", 1, Certainty.LIKELY),
        ("all_reduce", 2, Certainty.LIKELY),
    ],
)
def test_of_several_idle_ranks_any_may_have_taken_its_part_of_a_broadcast(call: str, idle: int, sure: Certainty) -> None:
    stacks = Stacks()
    report = diagnose(snapshot(stacks.node([rank(stacks, i, call if i < 3 - idle else None) for i in range(3)])))
    found = [f for f in report.findings if f.root]
    assert {w.rank for f in found for w in f.who} == set(range(3 - idle, 3))
    assert {f.certainty for f in found} == {sure}
