"""An engine whose scheduler turns its loop: whether that is rest or a pause, the coroutines of its server tell."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model import codec
from ray_rl_debug.model.report import State
from ray_rl_debug.model.snapshot import Snapshot

CASES = Path(__file__).parents[1] / "cases" / "RRD204"


def unread(snapshot: Snapshot) -> Snapshot:
    """The same look on a machine too loaded to read any coroutine."""
    replace = msgspec.structs.replace
    nodes = (replace(n, processes=tuple(replace(p, async_tasks=None) for p in n.processes)) for n in snapshot.nodes)
    return replace(snapshot, nodes=tuple(nodes))


@pytest.mark.parametrize("name", ["in-place-tp1", "in-place-tp2", "retract-tp1"])
def test_a_turning_loop_is_no_sign_of_health_where_requests_were_not_read(name: str) -> None:
    report = diagnose(unread(codec.decode_snapshot(codec.inflate((CASES / f"hang-sglang-paused-{name}.json.gz").read_bytes()))))
    assert (report.verdict.state, report.findings) == (State.UNKNOWN, ())
    assert "is in flight is not known: it holds connections, and its coroutines were not read" in report.verdict.summary
