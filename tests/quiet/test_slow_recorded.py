"""Healthy runs that look hung, as they were once recorded, most in a moment in which somebody was accused: nobody is."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Certainty, State

UNKNOWN = {
    "saved_in_shards-2": "a rank of another group may be missing, as far as its ranks tell",
}
"""Not told, and why; nobody is accused there either."""
RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json.gz"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_recorded(path: Path) -> None:
    snapshot = load((path,)).snapshot
    assert snapshot is not None
    report = diagnose(snapshot)
    told = (State.UNKNOWN,) if path.name.removesuffix(".json.gz") in UNKNOWN else (State.HEALTHY, State.SLOW)
    assert report.verdict.state in told, report.verdict.summary
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings), report.findings[0].summary


def test_each_program_was_recorded() -> None:
    start = (Path(__file__).parent / "slow" / "start.py").read_text()
    names = {name for line in start.splitlines() if line.startswith("OF_") for name in line.split('"')[1].split()}
    assert names == {path.name.rpartition("-")[0] for path in RECORDED}
