"""What has ended and of which Ray's tables have no row."""

from __future__ import annotations

import msgspec
import pytest

from ray_rl_debug.analyze.lost_rows import lacks_dead_actor, lacks_ended_call
from ray_rl_debug.analyze.view import View, build_view
from ray_rl_debug.model.snapshot import RayState, RayTask, RayWorker, TaskHistory
from tests.unit.scenes import Stacks, actor, core, process, ray_state, snapshot, task_id

DIED = RayWorker(worker_id="w9", pid=90, kind="WORKER", alive=False, job_id="01000000", exit="Worker unexpectedly exits by code 2.")
RESTED = msgspec.structs.replace(DIED, exit="Worker exited because it was idle for a long time")


def view_of(ray: RayState) -> View:
    stacks = Stacks()
    return build_view(snapshot(stacks.node([process(stacks, 20, "ray::Loader", "main_loop@ray/_private/worker.py:1")]), ray))


@pytest.mark.parametrize(
    ("worker", "owner", "restarts", "lacks"),
    [(DIED, None, 0, True), (RESTED, None, 0, False), (DIED, "w9", 0, False), (DIED, None, 1, False)],
    ids=["nobody's", "ended when idle", "an actor's", "the first worker of an actor that was started anew"],
)
def test_a_worker_that_died_and_was_nobodys(worker: RayWorker, owner: str | None, restarts: int, lacks: bool) -> None:
    one = msgspec.structs.replace(actor(2, "Loader", 20, state="ALIVE"), worker_id=owner, restarts=restarts)
    assert lacks_dead_actor(view_of(msgspec.structs.replace(ray_state(actors=[one]), workers=(worker,)))) is lacks


@pytest.mark.parametrize(
    ("finished", "failed", "running", "lacks"),
    [(6, 0, (), True), (6, 1, (), False), (6, 0, (1,), False), (7, 0, (), False), (9, 0, (), False)],
    ids=["one is missing", "it has failed", "it runs", "all are told", "more are told than begun"],
)
def test_a_call_that_was_begun_and_is_not_told(finished: int, failed: int, running: tuple[int, ...], lacks: bool) -> None:
    history = [TaskHistory(name="loader_1:train.Loader.load", count=finished, longest_s=1.0)]
    ray = ray_state(actors=[actor(2, "train.Loader", 20)], cores=[core(20, running=running, actor_number=2)], history=history)
    calls = (RayTask(task_id=task_id(5), name="Loader.load", state="FAILED"),) * failed
    view = view_of(msgspec.structs.replace(ray, failed=calls))
    keys = frozenset(one.key for one in view)
    assert lacks_ended_call(view, keys) is lacks
    assert not lacks_ended_call(view, frozenset())
