"""Each program and its twin as they were once recorded: whom the report names, and that nobody of a healthy run is accused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from kinds.truth import MISSED, PROGRAMS

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.codec import encode
from ray_rl_debug.model.report import Certainty, State

HERE = Path(__file__).parent / "recorded"
MARKS = json.loads((HERE / "marks.json").read_text())
BYSTANDER_FIRST = {
    "second_node_missing-hang",
    "names_of_versions-hang",
    "judges_made_ready-healthy",
    "window_of_feedback-hang",
    "lock_at_broker-hang",
    "finished_of_daemon-hang",
    "samples_pushed-hang",
    "world_of_four-hang",
    "beats_of_ranks-hang.2",
    "cold_tokenizer-hang",
}
"""Where somebody else is named first: one that rests between its rounds looks like one that paces its work; a launcher of another node, and a rank
that was never started, have no pid here; who has no client yet delivers nothing; whoever works in a twin is not the one who hangs the
other; who asks again and again is no owner; one of several who may send something is not the one who should; a call
that may yet end is told by its process; and of a ring the first is named."""
_FIRST_PID = re.compile(r"pid (\d+)")


@pytest.mark.parametrize("name", sorted(MARKS))
def test_recorded(name: str) -> None:
    snapshot = load((HERE / f"{name}.json.gz",)).snapshot
    assert snapshot is not None
    report = diagnose(snapshot)
    program, _, how = name.partition(".")[0].rpartition("-")
    told = PROGRAMS[program].is_told(json.loads(encode(report)), MARKS[name], how == "healthy")
    assert told is (name not in MISSED), report.verdict.summary
    if name in MISSED and name not in BYSTANDER_FIRST:
        meant = {MARKS[name].get(mark) for mark in PROGRAMS[program].who}
        first = [w.pid for w in report.findings[0].who] if report.findings else _FIRST_PID.findall(report.verdict.summary)[:1]
        assert meant & {int(pid) for pid in first if pid is not None}, "whoever is to blame is named first, if only as possible"
    if report.verdict.state is State.UNKNOWN:
        assert report.findings or "(node1 pid " in report.verdict.summary
        assert ". To settle it: " in report.verdict.summary
    if how == "healthy":
        assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)


def test_what_is_recorded_is_a_program() -> None:
    recorded = {name.rpartition("-")[0] for name in MARKS}
    assert recorded <= set(PROGRAMS)
    assert len(recorded) >= 69
