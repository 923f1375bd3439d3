"""The cost of the analysis grows with the ranks, not with their square: lines that run are counted, which no clock disturbs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose

FEW, TIMES = 192, 3
MOST = 1.2
"""Times what would be linear; the square would be three times that."""


def _made() -> ModuleType:
    """What the benchmarks judge."""
    path = Path(__file__).parents[2] / "benchmarks" / "scale_snapshots.py"
    spec = importlib.util.spec_from_file_location("scale_snapshots", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MADE = _made()


def _lines(kind: str, ranks: int) -> int:
    """How many lines of Python run until the verdict; each turn of a loop is one, also within a line."""
    snapshot = MADE.snapshot_of(MADE.program(kind, ranks, missing=0.05))
    count = 0

    def note(_: FrameType, event: str, __: Any) -> Any:
        nonlocal count
        count += event == "line"
        return note

    sys.settrace(note)
    try:
        diagnose(snapshot)
    finally:
        sys.settrace(None)
    return count


@pytest.mark.parametrize("kind", [*MADE.KINDS, MADE.HEALTHY])
def test_three_times_the_ranks_cost_three_times_as_much(kind: str) -> None:
    diagnose(MADE.snapshot_of(MADE.program(kind, 16)))  # what is made once
    assert _lines(kind, TIMES * FEW) < MOST * TIMES * _lines(kind, FEW)
