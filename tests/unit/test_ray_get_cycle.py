"""How a ring of Ray calls is told, from a recorded one with one fact changed."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model import codec

RING = Path(__file__).parents[1] / "cases" / "RRD401" / "hang.json.gz"


def test_members_that_share_a_name_are_told_with_their_processes() -> None:
    snapshot = codec.read_snapshot(RING)
    assert snapshot.ray is not None
    plain = diagnose(snapshot).findings[0]
    assert "pid" not in plain.summary
    nameless = tuple(msgspec.structs.replace(a, name=None, class_name="Worker") for a in snapshot.ray.actors)
    told = diagnose(msgspec.structs.replace(snapshot, ray=msgspec.structs.replace(snapshot.ray, actors=nameless))).findings[0]
    assert told.id == "RRD401"
    ring = re.findall(r"Worker \(pid (\d+)\)", told.summary)
    assert ring[0] == ring[-1]
    assert {int(pid) for pid in ring} == {w.pid for w in plain.who}
