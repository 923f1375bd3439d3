"""Facts that a snapshot tells twice: where one was not read, the other one counts; what was read is never changed."""

from __future__ import annotations

import msgspec
import pytest

from ray_rl_debug.analyze.told_twice import with_told_twice
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, OwnedTask, RayTask, Thread
from tests.unit.scenes import Stacks, actor, core, process, ray_state, snapshot

ACTOR_ID = f"{2:032x}"
CALL = f"71b133a11e1c461c{ACTOR_ID}"


def test_a_process_is_in_the_state_of_its_first_thread() -> None:
    stacks = Stacks()
    stopped = (Thread(tid=20, comm="python", state="T"), Thread(tid=21, comm="python", state="S"))
    unread = msgspec.structs.replace(process(stacks, 20, "python a.py", "main@/job/a.py:3"), state=None, threads=stopped)
    told = msgspec.structs.replace(unread, pid=22, state="S")
    unsaid = msgspec.structs.replace(unread, pid=30, threads=(Thread(tid=30, comm="python", state="?"),))
    found = with_told_twice(snapshot(stacks.node([unread, told, unsaid])))
    assert [p.state for p in found.nodes[0].processes] == ["T", "S", None]


@pytest.mark.parametrize(("timers", "due_s"), [(1, 0.3), (2, None)], ids=["its own", "which is its own is not known"])
def test_a_coroutine_in_asyncios_sleep_sleeps(timers: int, due_s: float | None) -> None:
    sleeping = (AwaitFrame(function="pass_on", file="/job/a.py", line=3), AwaitFrame(function="sleep", file="asyncio/tasks.py", line=649))
    tasks = (
        AsyncTask(address=1, name="Task-1", chain=sleeping, timer_s=0.3, timers=timers),
        AsyncTask(address=2, name="Task-2", chain=sleeping[:1], timer_s=0.3, timers=timers),
        AsyncTask(address=3, name="Task-3", chain=sleeping, awaited=Awaited(kind="ready")),
    )
    stacks = Stacks()
    one = process(stacks, 20, "python a.py", "select@selectors.py:468", async_tasks=tasks)
    found = with_told_twice(snapshot(stacks.node([one]))).nodes[0].processes[0].async_tasks
    assert found is not None
    assert [t.awaited for t in found] == [Awaited(kind="sleep", due_s=due_s), None, Awaited(kind="ready")]


def test_the_id_of_a_call_holds_the_id_of_its_actor() -> None:
    failed = RayTask(task_id=CALL, name="Loader.load", state="FAILED", kind="ACTOR_TASK")
    plain = RayTask(task_id=f"{1:016x}ffffffffffffffffffffffff01000000", name="grade", state="RUNNING", kind="NORMAL_TASK")
    odd = msgspec.structs.replace(failed, task_id="abc")
    ray = msgspec.structs.replace(ray_state(tasks=[plain]), failed=(failed, odd))
    found = with_told_twice(snapshot(Stacks().node([]), ray)).ray
    assert found is not None
    assert [t.actor_id for t in (*found.failed, *found.tasks)] == [ACTOR_ID, None, None]


def test_a_call_that_runs_and_is_awaited_is_under_way_in_its_worker() -> None:
    """Ray's table alone may be late: a call that nobody awaits any more has ended."""
    callee, caller = core(20, actor_number=2), core(10, owned=[OwnedTask(task_id=CALL, name="Loader.load")])
    runs = RayTask(task_id=CALL, name="Loader.load", state="RUNNING", kind="ACTOR_TASK", actor_id=ACTOR_ID, worker_id=callee.worker_id)
    for callers, expected in (((caller,), (CALL,)), ((), ())):
        ray = ray_state(actors=[actor(2, "Loader", 20)], tasks=[runs], cores=[callee, *callers])
        found = with_told_twice(snapshot(Stacks().node([]), ray)).ray
        assert found is not None
        assert found.core_workers[0].running_task_ids == expected


def test_a_snapshot_that_lacks_nothing_stays_itself() -> None:
    stacks = Stacks()
    whole = snapshot(stacks.node([process(stacks, 20, "python a.py", "main@/job/a.py:3")]), ray_state(cores=[core(20, running=[1])]))
    assert with_told_twice(whole) is whole
