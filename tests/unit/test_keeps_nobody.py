"""Whom somebody waits for is to blame for nothing sure where all who wait go on: another one may do for them what they wait for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from scenes import Stacks, process, snapshot

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.solve import Outlook
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.diagnosis.diagnose import _keeps_nobody

EXPLAINED = "node1/200"


def keeps_nobody(hopes: dict[str, Outlook], state: str = "S", **more: Any) -> bool:
    """Of a process that these wait for, each with what may still become of it."""
    stacks = Stacks()
    one = process(stacks, 200, "python train.py", "work@app/train.py:75", kind="child", state=state, **more)
    edges = [Edge(source=key, target=EXPLAINED, why=Why.COLLECTIVE, evidence="") for key in hopes]
    graph = SimpleNamespace(into=lambda nodes: edges if EXPLAINED in nodes else [], hope=hopes.__getitem__)
    scene: Any = SimpleNamespace(graph=graph, view=build_view(snapshot(stacks.node([one]))))
    return _keeps_nobody(scene, [EXPLAINED])


@pytest.mark.parametrize(
    ("hopes", "nobody"),
    [
        ({"node1/1": Outlook.MOVES}, True),
        ({"node1/1": Outlook.MOVES, "node1/2": Outlook.MOVES}, True),
        ({"node1/1": Outlook.MOVES, "node1/2": Outlook.WAKES}, False),
        ({"node1/1": Outlook.STANDS}, False),
        ({}, False),
    ],
    ids=["its waiter goes on", "both go on", "one only pauses", "it stands", "nobody waits: that tells nothing"],
)
def test_all_who_wait_go_on(hopes: dict[str, Outlook], nobody: bool) -> None:
    assert keeps_nobody(hopes) is nobody


@pytest.mark.parametrize("state", ["T", "Z"], ids=["stopped", "ended"])
def test_who_is_stopped_or_has_ended_needs_no_such_witness(state: str) -> None:
    assert not keeps_nobody({"node1/1": Outlook.MOVES}, state)
