"""Worlds of many ranks: the same verdict as for few, without an edge for every pair."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import ALL_REDUCE, BARRIER, EXECUTOR, MAIN, Stacks, process, snapshot

from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waits import find_waits
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model import gaps
from ray_rl_debug.model.report import Cause, Certainty, State
from ray_rl_debug.model.snapshot import Gap, Snapshot

PER_NODE = 8
OPERATIONS = (ALL_REDUCE, BARRIER, "all_gather@torch/distributed/distributed_c10d.py:4000")


def mismatch(ranks: int, sites: int, operations: tuple[str, ...] = OPERATIONS) -> Snapshot:
    """Every `sites`-th rank stands in a call of its own."""
    nodes = []
    for first in range(0, ranks, PER_NODE):
        stacks = Stacks()
        here = []
        for rank in range(first, min(ranks, first + PER_NODE)):
            site = rank % sites
            step = f"Trainer.step@app/trainer.py:{40 + site} Trainer.update_policy@app/trainer.py:20"
            text = f"{operations[site % len(operations)]} {step} {EXECUTOR} {MAIN}"
            here.append(process(stacks, 100 + rank, "ray::Trainer.update_policy", text, rank=rank, size=ranks))
        nodes.append(replace(stacks.node(here), name=f"n{first // PER_NODE}"))
    return replace(snapshot(nodes[0]), nodes=tuple(nodes))


@pytest.mark.parametrize(("ranks", "sites"), [(8, 2), (64, 3), (65, 2), (256, 3), (1000, 7)])
def test_all_ranks_of_a_mismatch_are_one_cycle(ranks: int, sites: int) -> None:
    graph = find_waits(build_view(mismatch(ranks, sites))).graph
    assert [(len(r.nodes), r.is_cycle) for r in graph.roots] == [(ranks, True)]
    assert len(graph.edges) <= max(64 * 63, 2 * ranks)


def test_a_thousand_ranks_get_the_finding_that_eight_get() -> None:
    few, many = (diagnose(mismatch(n, 2)) for n in (8, 1000))
    assert [f.cause for f in few.findings] == [f.cause for f in many.findings] == [Cause.COLLECTIVE_MISMATCH]


BROADCAST = "broadcast@torch/distributed/distributed_c10d.py:2800"


@pytest.mark.parametrize(("operations", "is_told"), [((ALL_REDUCE, BARRIER), True), ((ALL_REDUCE, BROADCAST), False)])
def test_ranks_that_were_not_seen_do_not_hide_a_mismatch(operations: tuple[str, ...], is_told: bool) -> None:
    """Nobody leaves an all_reduce or a barrier early. The source of a broadcast does: then it may be the unseen rank that all wait for."""
    whole = mismatch(24, 12, operations * 6)
    silent = Gap(id=gaps.NODE_SILENT, where="n2", what="everything on this node", reason="no answer within 60 s")
    report = diagnose(replace(whole, nodes=whole.nodes[:2], gaps=(silent,)))
    assert (report.verdict.state, report.verdict.certainty) == (State.UNKNOWN, Certainty.POSSIBLE)
    assert "n2 did not answer" in report.verdict.summary or not is_told
    assert (Cause.COLLECTIVE_MISMATCH in {f.cause for f in report.findings}) is is_told
