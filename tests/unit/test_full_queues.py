"""Whoever takes from a queue may die long before the queue is full: the last call that waits there began later."""

from __future__ import annotations

import pytest
from scenes import EXECUTOR, IDLE, MAIN, RAY_GET, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, Certainty, Report, State
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, RayTask

DRIVER, SAMPLER, QUEUE, LEARNER, LOGGER = 1, 100, 200, 300, 400
FULL = Awaited(kind="queue", detail="Queue.put full 4 of 4", address=7, value=4)


def told(*, died_s: float = 110.0, made_s: float = 100.0, awaited: Awaited = FULL, logger: bool = False) -> Report:
    """A driver asks a sampler, the sampler puts into an actor's queue since 120 s; the learner, who took from it, is dead."""
    stacks = Stacks()
    driver = process(stacks, DRIVER, "driver", f"{RAY_GET} main@app/main.py:30", kind="driver", refs=[task_id(1)])
    puts = f"{RAY_GET} Queue.put@ray/util/queue.py:118 Sampler.play@app/main.py:9 {EXECUTOR} {MAIN}"
    sampler = process(stacks, SAMPLER, "ray::Sampler.play", puts, refs=[task_id(2)])
    chain = (
        AwaitFrame(function="_QueueActor.put", file="ray/util/queue.py", line=321),
        AwaitFrame(function="Queue.put", file="asyncio/queues.py", line=120),
    )
    waits = AsyncTask(name="Task-1", chain=chain, address=1, stable=True, awaited=awaited, tid=QUEUE + 1000, loop=9, timers=0)
    queue = process(stacks, QUEUE, "ray::_QueueActor", IDLE, async_tasks=(waits,))
    idle = [process(stacks, LOGGER, "ray::Logger", IDLE)] if logger else []
    dead = actor(2, "Learner", LEARNER, state="DEAD", death_kind="killed", death="its worker died", start_time_s=100.0, end_time_s=died_s)
    actors = [actor(0, "Sampler", SAMPLER), actor(1, "_QueueActor", QUEUE, is_async=True, start_time_s=made_s), dead]
    actors += [actor(3, "Logger", LOGGER)] if logger else []
    cores = [core(SAMPLER, running=[1], actor_number=0), core(QUEUE, running=[2], actor_number=1)]
    cores += [core(LOGGER, actor_number=3)] if logger else []
    put = RayTask(task_id=task_id(2), job_id="01000000", name="_QueueActor.put", state="RUNNING", kind="ACTOR_TASK", state_times_s={"RUNNING": 120.0})
    return diagnose(snapshot(stacks.node([driver, sampler, queue, *idle]), ray_state(actors=actors, cores=cores, tasks=[put])))


def test_who_took_from_it_is_named_though_it_died_before_the_call() -> None:
    report = told()
    first = report.findings[0]
    assert (report.verdict.state, first.cause, [w.pid for w in first.who]) == (State.HANG, Cause.PRODUCER_DIED, [LEARNER])
    assert "still waits for room in its queue" in first.summary


@pytest.mark.parametrize(
    "scene",
    [{"died_s": 90.0}, {"logger": True}, {"awaited": Awaited(kind="queue", detail="Queue.get empty", address=7)}],
    ids=["it died before there was a queue", "somebody else may take", "the queue is empty"],
)
def test_it_is_not_accused_where_that_is_not_sure(scene: dict[str, object]) -> None:
    report = told(**scene)  # type: ignore[arg-type]
    assert not any([w.pid for w in f.who] == [LEARNER] and f.certainty is not Certainty.POSSIBLE for f in report.findings)
