"""A rank that waits for an event which only a thread of its own could set, and has no such thread any more."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import ALL_REDUCE, EXECUTOR, MAIN, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waits import find_waits
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Finding
from ray_rl_debug.model.snapshot import OwnedTask, Snapshot

LOGS, TRAINS, EVALUATOR, SERVICE = 100, 101, 150, 200
EVENT = f"Condition.wait@threading.py:327 Event.wait@threading.py:629 Log.log@app/log.py:52 Rank.train@app/train.py:69 {EXECUTOR} {MAIN}"
READS = "read@app/log.py:44 Thread.run@threading.py:982"


def taken(*, reader: bool = False, unread: bool = False, service: bool = False, asks: bool = False, core_read: bool = True) -> Snapshot:
    """Two ranks; one waits for an event, the other in a collective. A service of it, its child, has ended; it has asked an evaluator."""
    stacks = Stacks()
    logs = process(stacks, LOGS, "ray::Rank.train", EVENT, rank=0, size=2, extra_threads=[("replies", READS)] if reader else [])
    logs = replace(logs, async_tasks=None) if unread else logs
    trains = process(stacks, TRAINS, "ray::Rank.train", f"{ALL_REDUCE} Rank.train@app/train.py:70 {EXECUTOR} {MAIN}", rank=1, size=2)
    child = replace(process(stacks, SERVICE, "python", "x@y.py:1", kind="child", ppid=LOGS, state="Z"), samples=(), threads=(), exit_code=1)
    opens = f"Evaluator.score@app/score.py:29 {EXECUTOR} {MAIN}"
    evaluator = process(stacks, EVALUATOR, "ray::Evaluator.score", opens, wchan="wait_for_partner", syscall=257)
    owned = [OwnedTask(task_id=task_id(9), name="Evaluator.score", actor_id=f"{2:032x}", parent_task_id=task_id(1))] if asks else []
    cores = [core(LOGS, running=[1], actor_number=0, owned=owned)] if core_read else []
    cores += [core(TRAINS, running=[2], actor_number=1), *([core(EVALUATOR, running=[9], actor_number=2)] if asks else [])]
    ray = ray_state(actors=[actor(0, "Rank", LOGS), actor(1, "Rank", TRAINS), *([actor(2, "Evaluator", EVALUATOR)] if asks else [])], cores=cores)
    return snapshot(stacks.node([logs, trains, *([evaluator] if asks else []), *([child] if service else [])]), ray)


def first(**scene: bool) -> Finding:
    return diagnose(taken(**scene)).findings[0]


def test_it_is_accused_and_its_dead_child_is_told() -> None:
    told = first(service=True)
    assert (told.id, told.certainty, [w.pid for w in told.who]) == ("RRD101", Certainty.LIKELY, [LOGS])
    assert "has no other thread that could set it" in told.summary
    assert any("a child of" in e.text and "has ended with exit code 1" in e.text for e in told.evidence)


def test_an_answer_of_ray_may_set_it_by_a_callback() -> None:
    """Ray calls back from C++: no thread of Python waits there."""
    told = first(asks=True)
    assert [w.pid for w in told.who] == [EVALUATOR]
    edges = find_waits(build_view(taken(asks=True))).graph.edges
    assert (f"node1/{LOGS}", f"node1/{EVALUATOR}", "ray.callback") in {(e.source, e.target, e.words) for e in edges}


@pytest.mark.parametrize(
    "scene",
    [{"reader": True}, {"unread": True}, {"core_read": False}],
    ids=["a thread may set it", "its coroutines were not read", "what it has asked was not read"],
)
def test_it_is_not_where_somebody_in_it_may_set_the_event(scene: dict[str, bool]) -> None:
    told = first(**scene)
    assert "has no other thread" not in told.summary
