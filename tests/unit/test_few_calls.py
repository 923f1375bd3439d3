"""How long a call may take when few of its name have finished, from a recorded run with one fact changed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Certainty

RECORDED = Path(__file__).parents[1] / "kinds" / "recorded" / "signal_of_evaluation-healthy.json.gz"
"""A task that pauses again and again runs for 8 s, and two of its name took half a second."""


@pytest.mark.parametrize(
    ("finished", "longest_s", "accused"),
    [(2, 0.5, set()), (4, 0.5, set()), (5, 0.5, {"evaluate"}), (2, 0.2, {"evaluate"}), (5, 3.0, set())],
    ids=["two calls tell little", "so do four", "five tell", "far longer than two", "five as long"],
)
def test_one_that_goes_on_inside_is_overdue(finished: int, longest_s: float, accused: set[str]) -> None:
    snapshot = load((RECORDED,)).snapshot
    assert snapshot is not None and snapshot.ray is not None
    history = tuple(
        msgspec.structs.replace(h, count=finished, longest_s=longest_s, usual_s=longest_s) if h.name == "evaluate" else h
        for h in snapshot.ray.history
    )
    report = diagnose(msgspec.structs.replace(snapshot, ray=msgspec.structs.replace(snapshot.ray, history=history)))
    assert {w.label for f in report.findings if f.certainty is not Certainty.POSSIBLE for w in f.who} == accused
