"""Actors that go on in some calls and hang in others: whoever waits for a call waits for that call, not for the process."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waits import find_waits
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.diagnosis.verdict import give_verdict
from ray_rl_debug.model.report import Cause, Certainty, State
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, OwnedTask, Process, RayTask, Snapshot, TaskHistory
from ray_rl_debug.rules.scene import Scene
from tests.unit.scenes import ALL_REDUCE, EXECUTOR, IDLE, RAY_GET, Stacks, actor, core, process, ray_state, snapshot, task_id

DRIVER, ENGINE, REWARD, TRAINER = 100, 200, 300, 400
RUN = f"{EXECUTOR} Thread.run@threading.py:982"
EVENT = f"Condition.wait@threading.py:331 Engine.update@app/engine.py:7 {RUN}"
FILE = f"Engine.update@app/engine.py:9 {RUN}"
ASKS = f"{RAY_GET} Engine.generate@app/engine.py:20 {RUN}"
OPEN = 257


def running(number: int, name: str, age_s: float, pid: int = ENGINE) -> RayTask:
    return RayTask(task_id=task_id(number), name=name, state="RUNNING", pid=pid, job_id="01000000", state_times_s={"RUNNING": 200.0 - age_s})


def engine(stacks: Stacks, *threads: str, syscall: int | None = None, **more: object) -> Process:
    """An actor whose main thread waits for calls, and threads with a call each."""
    one = process(stacks, ENGINE, "ray::Engine", IDLE, extra_threads=[(f"Dummy-{i}", t) for i, t in enumerate(threads)], **more)  # type: ignore[arg-type]
    if syscall is not None:
        one = replace(one, threads=(one.threads[0], *(replace(t, syscall=syscall, wchan="wait_for_partner") for t in one.threads[1:])))
    return one


def seen(
    *threads: str,
    age_s: float = 60.0,
    longest_s: float | None = 0.5,
    syscall: int | None = None,
    done: int = 3,
    calls: int = 1,
    trainer: float | None = None,
    tasks: tuple[AsyncTask, ...] = (),
) -> Snapshot:
    """A driver that waits for ``Engine.update``, while other calls of the engine finish; beside them maybe a trainer that works."""
    stacks = Stacks()
    driver = process(stacks, DRIVER, "python train.py", f"{RAY_GET} main@train.py:9", kind="driver", refs=[task_id(1)])
    one = engine(stacks, *threads, syscall=syscall, async_tasks=tasks)
    others = [] if trainer is None else [process(stacks, TRAINER, "ray::Trainer.fit", f"fit@app/train.py:5 {EXECUTOR}", cpu_s=trainer)]
    history = [] if longest_s is None else [TaskHistory(name="Engine.update", count=3, longest_s=longest_s, usual_s=longest_s)]
    return snapshot(
        stacks.node([driver, one, *others]),
        ray_state(
            actors=[actor(0, "Engine", ENGINE)],
            tasks=[running(n + 1, "Engine.update", age_s) for n in range(calls)],
            cores=[core(ENGINE, running=range(1, calls + 1), actor_number=0, done=done)],
            history=history,
        ),
    )


def lanes(taken: Snapshot) -> list[str]:
    return [one.key for one in build_view(taken).seen.values() if one.lane_of is not None]


def test_a_call_that_hangs_beside_calls_that_finish() -> None:
    report = diagnose(seen(FILE, syscall=OPEN))
    assert report.verdict.state is State.HANG
    (finding,) = (f for f in report.findings if f.root)
    assert (finding.cause, finding.certainty, [w.pid for w in finding.who]) == (Cause.BLOCKED_IO, Certainty.LIKELY, [ENGINE])
    assert [v.pid for v in finding.victims] == [DRIVER]
    assert finding.who[0].task == "Engine.update"


@pytest.mark.parametrize(
    ("age_s", "longest_s", "state"),
    [(60.0, 0.5, State.HANG), (60.0, 20.0, State.HEALTHY), (8.0, 0.5, State.HEALTHY), (60.0, None, State.HEALTHY)],
    ids=["far longer than ever", "as it may be", "not for long", "nobody knows how long"],
)
def test_another_call_may_end_a_wait_inside(age_s: float, longest_s: float | None, state: State) -> None:
    report = diagnose(seen(EVENT, age_s=age_s, longest_s=longest_s))
    assert report.verdict.state is state
    assert [f.cause for f in report.findings] == ([Cause.LOCK_DEADLOCK] if state is State.HANG else [])


def test_who_works_may_make_that_call() -> None:
    report = diagnose(seen(EVENT, trainer=1.9))
    assert report.verdict.state is not State.HANG
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)


def test_a_process_that_does_not_move_has_no_lanes() -> None:
    assert lanes(seen(FILE, syscall=OPEN)) == [f"lane:node1/{ENGINE}/update"]
    assert lanes(seen(FILE, syscall=OPEN, done=0)) == []


def test_calls_of_one_method_stand_together_or_not_at_all() -> None:
    taken = seen(FILE, FILE, syscall=OPEN, calls=2)
    assert lanes(taken) == [f"lane:node1/{ENGINE}/update"]
    assert lanes(seen(FILE, syscall=OPEN, calls=2)) == []  # the thread of one of them was not seen
    (node,) = taken.nodes
    driver, one = node.processes
    works = replace(one, threads=(*one.threads[:-1], replace(one.threads[-1], state="R", syscall=None, wchan=None, cpu_s=1.9)))
    assert lanes(replace(taken, nodes=(replace(node, processes=(driver, works)),))) == []


def test_a_thread_that_pauses_may_end_the_wait() -> None:
    taken = seen(EVENT, "sleep@app/engine.py:50 beats@app/engine.py:51 Thread.run@threading.py:982")
    (node,) = taken.nodes
    paused = [replace(p, threads=(*p.threads[:-1], replace(p.threads[-1], syscall=230, wchan="hrtimer_nanosleep"))) for p in node.processes]
    assert lanes(taken) == [f"lane:node1/{ENGINE}/update"]
    assert lanes(replace(taken, nodes=(replace(node, processes=(node.processes[0], paused[1])),))) == []


def ring(queued_s: float) -> Snapshot:
    """Generating calls wait for a reward, which waits for a call that stands in the engine's queue."""
    stacks = Stacks()
    driver = process(stacks, DRIVER, "python train.py", f"{RAY_GET} main@train.py:9", kind="driver", refs=[task_id(1)])
    one = engine(stacks, ASKS, EVENT)
    one = replace(one, object_refs=(replace(driver.object_refs[0], object_ids=(task_id(3) + "00000001",), tid=ENGINE + 1000),))
    reward = process(stacks, REWARD, "ray::Reward.score", f"{RAY_GET} Reward.score@app/reward.py:5 {EXECUTOR}", refs=[task_id(4)])
    tasks = [running(1, "Engine.generate", 60.0), running(2, "Engine.update", 60.0), running(3, "Reward.score", 59.0, REWARD)]
    waits = RayTask(
        task_id=task_id(4),
        name="Engine.version",
        state="PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY",
        actor_id=f"{0:032x}",
        state_times_s={"SUBMITTED_TO_WORKER": 200.0 - queued_s},
    )
    owned = [OwnedTask(task_id=task_id(4), name="Engine.version", actor_id=f"{0:032x}")]
    cores = [core(ENGINE, running=[1, 2], actor_number=0, done=3), core(REWARD, running=[3], actor_number=1, owned=owned)]
    ray = ray_state(actors=[actor(0, "Engine", ENGINE), actor(1, "Reward", REWARD)], tasks=[*tasks, waits], cores=cores)
    return snapshot(stacks.node([driver, one, reward]), ray)


def test_a_ring_through_lanes() -> None:
    report = diagnose(ring(queued_s=58.0))
    assert report.verdict.state is State.HANG
    assert report.findings[0].cause is Cause.RAY_GET_CYCLE
    assert sorted(w.pid or 0 for w in report.findings[0].who) == [ENGINE, REWARD]
    assert "Engine.generate" in report.findings[0].summary


def test_a_call_that_was_queued_just_now_may_begin_at_once() -> None:
    assert diagnose(ring(queued_s=1.0)).verdict.state is not State.HANG


def coroutine(kind: str, *, stable: bool = True) -> AsyncTask:
    chain = (
        AwaitFrame(function="run_async_func_or_coro_in_event_loop.<locals>.async_func", file="ray/_private/async_compat.py", line=5),
        AwaitFrame(function="Engine.update", file="app/engine.py", line=30),
    )
    return AsyncTask(address=1, name="Task-1", chain=chain, awaited=Awaited(kind=kind, detail="Future"), loop=1, tid=ENGINE, stable=stable)


def test_a_coroutine_that_hangs_beside_others() -> None:
    report = diagnose(seen(tasks=(coroutine("future"),)))
    assert report.verdict.state is State.HANG
    assert [(f.cause, [w.pid for w in f.who]) for f in report.findings] == [(Cause.ASYNCIO_STUCK, [ENGINE])]


@pytest.mark.parametrize("task", [coroutine("future", stable=False), coroutine("sleep"), coroutine("executor")], ids=["moves", "sleeps", "thread"])
def test_a_coroutine_that_may_go_on_is_no_lane(task: AsyncTask) -> None:
    assert lanes(seen(tasks=(task,))) == []


def test_a_call_that_began_just_now_is_no_lane() -> None:
    assert lanes(seen(FILE, syscall=OPEN, age_s=1.0)) == []


def two_methods(second_s: float | None, finished_s: float = 0.0) -> Snapshot:
    """Beside the call that waits another one works that began so many seconds ago, or after Ray's table was read.

    Another one of its name finished at the time given, in seconds after the begin of the window.
    """
    taken = seen(EVENT, f"work@app/engine.py:40 Engine.decode@app/engine.py:41 {RUN}")
    (node,) = taken.nodes
    driver, one = node.processes
    works = replace(one, threads=(*one.threads[:-1], replace(one.threads[-1], state="R", wchan=None, cpu_s=1.9)))
    assert taken.ray is not None
    ray = replace(
        taken.ray,
        tasks=(*taken.ray.tasks, *([running(2, "Engine.decode", second_s)] if second_s is not None else [])),
        history=(*taken.ray.history, TaskHistory(name="Engine.decode", count=9, longest_s=1.0, last_end_time_s=node.started_time_s + finished_s)),
        core_workers=(core(ENGINE, running=[1, 2], actor_number=0, done=3),),
    )
    return replace(taken, nodes=(replace(node, processes=(driver, works)),), ray=ray)


def test_calls_that_come_and_go_end_no_wait_that_they_did_not_end_so_far() -> None:
    assert diagnose(two_methods(0.5)).verdict.state is State.HANG
    assert diagnose(two_methods(None, finished_s=0.5)).verdict.state is State.HANG
    assert diagnose(two_methods(None, finished_s=-30.0)).verdict.state is not State.HANG
    assert diagnose(two_methods(59.0)).verdict.state is not State.HANG


def test_a_rank_that_answers_pings_stands_as_a_whole() -> None:
    stacks = Stacks()
    inside = f"{ALL_REDUCE} Trainer.train@app/train.py:30 {RUN}"
    opens = f"Trainer.train@app/train.py:20 {RUN}"
    processes = [
        process(stacks, ENGINE + n, "ray::Trainer", IDLE, rank=n, size=3, extra_threads=[("Dummy-1", opens if n == 1 else inside)]) for n in range(3)
    ]
    stuck = processes[1]
    processes[1] = replace(stuck, threads=(stuck.threads[0], replace(stuck.threads[1], syscall=OPEN, wchan="wait_for_partner")))
    driver = process(stacks, DRIVER, "python train.py", f"{RAY_GET} main@train.py:9", kind="driver", refs=[task_id(0), task_id(1), task_id(2)])
    ray = ray_state(
        actors=[actor(n, "Trainer", ENGINE + n) for n in range(3)],
        tasks=[running(n, "Trainer.train", 60.0, ENGINE + n) for n in range(3)],
        cores=[core(ENGINE + n, running=[n], actor_number=n, done=4) for n in range(3)],
    )
    report = diagnose(snapshot(stacks.node([driver, *processes]), ray))
    assert report.verdict.state is State.HANG
    assert [w.pid for w in report.findings[0].who] == [ENGINE + 1]


def test_who_stands_without_a_rule_is_no_healthy_run() -> None:
    view = build_view(ring(queued_s=58.0))
    waits = find_waits(view)
    verdict = give_verdict(Scene(view=view, graph=waits.graph, worlds=waits.worlds), (), ())
    assert (verdict.state, verdict.certainty) == (State.UNKNOWN, Certainty.POSSIBLE)
    assert f"Look first at Engine (node1 pid {ENGINE})" in verdict.summary
