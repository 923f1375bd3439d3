"""A rank that waits for an event which only a thread of its own could set, and has no such thread any more."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import ALL_REDUCE, EXECUTOR, MAIN, Stacks, actor, core, process, ray_state, snapshot

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Finding

LOGS, TRAINS, SERVICE = 100, 101, 200
EVENT = f"Condition.wait@threading.py:327 Event.wait@threading.py:629 Log.log@app/log.py:52 Rank.train@app/train.py:69 {EXECUTOR} {MAIN}"
READS = "read@app/log.py:44 Thread.run@threading.py:982"


def first(*, reader: bool = False, unread: bool = False, service: str | None = None) -> Finding:
    """Two ranks; one waits for an event, the other in a collective. A service of it, its child, is in this state."""
    stacks = Stacks()
    logs = process(stacks, LOGS, "ray::Rank.train", EVENT, rank=0, size=2, extra_threads=[("replies", READS)] if reader else [])
    logs = replace(logs, async_tasks=None) if unread else logs
    trains = process(stacks, TRAINS, "ray::Rank.train", f"{ALL_REDUCE} Rank.train@app/train.py:70 {EXECUTOR} {MAIN}", rank=1, size=2)
    child = replace(process(stacks, SERVICE, "python", "x@y.py:1", kind="child", ppid=LOGS, state="Z"), samples=(), threads=(), exit_code=1)
    ray = ray_state(actors=[actor(i, "Rank", LOGS + i) for i in range(2)], cores=[core(LOGS + i, running=[i + 1], actor_number=i) for i in range(2)])
    return diagnose(snapshot(stacks.node([logs, trains, *([child] if service else [])]), ray)).findings[0]


def test_it_is_accused_and_its_dead_child_is_told() -> None:
    told = first(service="Z")
    assert (told.id, told.certainty, [w.pid for w in told.who]) == ("RRD101", Certainty.LIKELY, [LOGS])
    assert "has no other thread that could set it" in told.summary
    assert any("a child of" in e.text and "has ended with exit code 1" in e.text for e in told.evidence)


@pytest.mark.parametrize("scene", [{"reader": True}, {"unread": True}], ids=["a thread may set it", "its coroutines were not read"])
def test_it_is_not_where_somebody_in_it_may_set_the_event(scene: dict[str, bool]) -> None:
    told = first(**scene)  # type: ignore[arg-type]
    assert "has no other thread" not in told.summary
