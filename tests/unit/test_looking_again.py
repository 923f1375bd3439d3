"""Who waits for whom where somebody looks again and again, or waits for the next call: meetings in files, in an actor, in a store."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from scenes import EXECUTOR, MAIN, RAY_GET, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waits import find_waits
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, Certainty, State
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, OwnedTask, Process, RayTask, Snapshot, TaskHistory

STEP = f"Trainer.step@app/trainer.py:40 {EXECUTOR} {MAIN}"


def edges(taken: Snapshot) -> set[tuple[str, str]]:
    """From whom to whom somebody looks."""
    found = find_waits(build_view(taken)).graph.edges
    return {(e.source.rpartition("/")[2], e.target.rpartition("/")[2]) for e in found if e.why == "polls"}


def accused(taken: Snapshot) -> tuple[State, Cause | None, set[int | None], Certainty | None]:
    report = diagnose(taken)
    if not report.findings:
        return report.verdict.state, None, set(), None
    first = report.findings[0]
    return report.verdict.state, first.cause, {w.pid for w in first.who}, first.certainty


def at_event(address: int, function: str = "Meeting.arrive", kind: str = "event") -> AsyncTask:
    """A call of Ray, or a coroutine of the actor's own, that awaits an event."""
    outer = () if function.startswith("Meeting.look") else (AwaitFrame(function="run_async_func_or_coro_in_event_loop.<locals>.async_func"),)
    chain = (*outer, AwaitFrame(function=function, file="app/meeting.py", line=9))
    return AsyncTask(name=f"Task-{address}", chain=chain, address=address, stable=True, awaited=Awaited(kind=kind, detail="Event unset"))


@pytest.mark.parametrize(
    ("tasks", "leads_on"),
    [
        ((at_event(1), at_event(2)), True),
        ((at_event(1),), True),
        ((at_event(1), msgspec.structs.replace(at_event(2), awaited=None)), True),
        ((at_event(1), at_event(2, kind="lock")), False),
        ((at_event(1), at_event(2, "Meeting.look", kind="future")), False),
    ],
)
def test_coroutines_of_calls_at_an_event_wait_for_the_next_call(tasks: tuple[AsyncTask, ...], leads_on: bool) -> None:
    """A meeting that counts those who come: who has not come is at a file, and the meeting is no culprit."""
    stacks = Stacks()
    meeting = process(stacks, 100, "ray::Meeting", MAIN, extra_threads=[("AsyncIO Thread: default", "select@selectors.py:468")], async_tasks=tasks)
    came = process(stacks, 101, "ray::Trainer.step", f"{RAY_GET} {STEP}", refs=[task_id(3)])
    late = process(stacks, 102, "ray::Trainer.step", f"read@app/data.py:5 {STEP}", wchan="wait_for_partner", syscall=257)
    driver = process(stacks, 1, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver", refs=[task_id(1), task_id(2)])
    cores = [
        core(100, running=[3], actor_number=0),
        core(101, running=[1], actor_number=1, owned=[OwnedTask(task_id=task_id(3), name="Meeting.arrive", actor_id=f"{0:032x}")]),
        core(102, running=[2], actor_number=2),
    ]
    actors = [actor(0, "Meeting", 100), actor(1, "Trainer", 101), actor(2, "Trainer", 102)]
    taken = snapshot(stacks.node([driver, meeting, came, late]), ray_state(actors=actors, cores=cores))
    assert (("100", "102") in edges(taken)) is leads_on
    assert ("100", "101") not in edges(taken)
    if leads_on:
        state, _, who, certainty = accused(taken)
        assert (state, who, certainty) == (State.HANG, {102}, Certainty.LIKELY)


def test_a_call_whose_coroutines_were_not_read_is_blamed_only_possibly() -> None:
    """It may wait for another call, however long it takes."""
    stacks = Stacks()
    loop = [("AsyncIO Thread: default", "select@selectors.py:468")]
    meeting = process(stacks, 100, "ray::Meeting.arrive", MAIN, extra_threads=loop, async_tasks=None)
    driver = process(stacks, 1, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver", refs=[task_id(3)])
    owned = [OwnedTask(task_id=task_id(3), name="Meeting.arrive", actor_id=f"{0:032x}")]
    history = [TaskHistory(name="Meeting.arrive", count=40, longest_s=1.0)]
    call = RayTask(task_id=task_id(3), name="Meeting.arrive", state="RUNNING", pid=100, state_times_s={"RUNNING": 100.0})
    ray = ray_state(
        actors=[actor(0, "Meeting", 100)], cores=[core(100, running=[3], actor_number=0), core(1, owned=owned)], tasks=[call], history=history
    )
    state, _, who, certainty = accused(snapshot(stacks.node([driver, meeting]), ray))
    assert (state, who, certainty) == (State.UNKNOWN, {100}, Certainty.POSSIBLE)


LOOKS = "meet@app/actor.py:18 actor@app/actor.py:37 <module>@app/actor.py:50"
STANDS = "play@app/actor.py:25 actor@app/actor.py:35 <module>@app/actor.py:50"


def program(stacks: Stacks, pid: int, stack: str, *, slices: int = 16, cpu_s: float = 0.01) -> Process:
    """A child that sleeps again and again where it looks, stands in the opening of a file, or works."""
    at_file = stack == STANDS
    where = {"wchan": "wait_for_partner" if at_file else "hrtimer_nanosleep", "syscall": 257 if at_file else 230}
    one = process(stacks, pid, "python actor.py", stack, kind="child", ppid=10, cpu_s=cpu_s, **(where if cpu_s < 1 else {}))  # type: ignore[arg-type]
    return msgspec.structs.replace(one, threads=(msgspec.structs.replace(one.threads[0], run_slices=6 if at_file else slices),))


def launcher(stacks: Stacks) -> Process:
    return process(
        stacks,
        10,
        "python main.py",
        "Popen.wait@subprocess.py:1264 main@app/actor.py:46",
        kind="named",
        ppid=1,
        wchan="do_wait",
        syscall=61,
        arg0=100,
    )


@pytest.mark.parametrize(
    ("looks", "slices", "last", "cpu_s", "who"),
    [
        (LOOKS, 16, STANDS, 0.01, {102}),
        (LOOKS, 6, STANDS, 0.01, None),
        ("actor@app/actor.py:30 <module>@app/actor.py:50", 16, STANDS, 0.01, None),
        (LOOKS.replace("meet", "next_task"), 16, STANDS, 0.01, None),
        (LOOKS, 16, "play@app/actor.py:26 actor@app/actor.py:35 <module>@app/actor.py:50", 1.9, None),
    ],
    ids=["one stands", "one pause only", "the loop itself pauses", "no work", "one works"],
)
def test_programs_that_look_again_and_again_wait_for_the_one_elsewhere(
    looks: str, slices: int, last: str, cpu_s: float, who: set[int] | None
) -> None:
    """Files by which programs meet are in no table: that most of them look at one line tells where the last one is missed."""
    stacks = Stacks()
    ones = [program(stacks, 100 + i, looks, slices=slices) for i in range(2)]
    taken = snapshot(stacks.node([launcher(stacks), *ones, program(stacks, 102, last, cpu_s=cpu_s)]))
    assert edges(taken) == ({("100", "102"), ("101", "102")} if who else set())
    if who:
        state, cause, accused_pids, _ = accused(taken)
        assert (state, cause, accused_pids) == (State.HANG, Cause.BLOCKED_IO, who)


@pytest.mark.parametrize(("slices", "named"), [(16, True), (6, False)], ids=["it only looks", "it may work"])
def test_where_all_only_look_the_child_that_ended_may_have_had_the_work(slices: int, named: bool) -> None:
    """A child that has ended is no culprit as such: *possible*, and only where nobody else may deliver."""
    stacks = Stacks()
    waits = "collected@app/run.py:9 main@app/run.py:4 <module>@app/run.py:1"
    main = process(stacks, 10, "python run.py", waits, kind="named", ppid=1, wchan="hrtimer_nanosleep", syscall=230)
    runner = program(stacks, 100, "runner@app/run.py:20 <module>@app/run.py:1", slices=slices)
    ended = process(stacks, 101, "python run.py", "x@y.py:1", kind="child", ppid=10, state="Z")
    ended = msgspec.structs.replace(ended, samples=(), threads=())
    state, _, who, certainty = accused(snapshot(stacks.node([main, runner, ended])))
    assert ((state, who, certainty) == (State.UNKNOWN, {101}, Certainty.POSSIBLE)) is named
    assert certainty in (None, Certainty.POSSIBLE)


START = "run@threading.py:982 _bootstrap_inner@threading.py:1045 _bootstrap@threading.py:1002"
SLEEPS, FILLS = f"drain@app/engine.py:31 {EXECUTOR} {START}", f"generate@app/engine.py:22 {EXECUTOR} {START}"


@pytest.mark.parametrize(
    ("beside", "other", "state"),
    [
        ((), "idle", State.HANG),
        (("futex_do_wait", 202, f"wait@threading.py:327 {FILLS}"), "idle", State.HANG),
        (("hrtimer_nanosleep", 230, FILLS), "idle", State.SLOW),
        (("wait_woken", 45, f"recv_into@socket.py:707 {FILLS}"), "idle", State.SLOW),
        ((), "works", State.SLOW),
    ],
    ids=["nobody else", "a thread at rest", "a thread that sleeps", "a thread that asks a server", "an actor that may call"],
)
def test_variables_of_an_actor_change_by_its_other_calls(beside: tuple[Any, ...], other: str, state: State) -> None:
    stacks = Stacks()
    calls = [("hrtimer_nanosleep", 230, SLEEPS), *([beside] if beside else [])]
    engine = process(stacks, 100, "ray::Engine.drain", MAIN, extra_threads=[(f"Dummy-{n}", call[2]) for n, call in enumerate(calls)])
    kernel = [msgspec.structs.replace(t, wchan=c[0], syscall=c[1]) for t, c in zip(engine.threads[1:], calls, strict=True)]
    engine = msgspec.structs.replace(engine, threads=(engine.threads[0], *kernel))
    stack = MAIN if other == "idle" else f"play@app/play.py:5 {EXECUTOR} {MAIN}"
    player = process(stacks, 101, "ray::Player", stack, cpu_s=0.02 if other == "idle" else 1.9)
    driver = process(stacks, 1, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver", refs=[task_id(3)])
    owned = [OwnedTask(task_id=task_id(3), name="Engine.drain", actor_id=f"{0:032x}")]
    history = [TaskHistory(name="Engine.drain", count=40, longest_s=1.0)]
    call = RayTask(task_id=task_id(3), name="Engine.drain", state="RUNNING", pid=100, state_times_s={"RUNNING": 100.0})
    ray = ray_state(
        actors=[actor(0, "Engine", 100), actor(1, "Player", 101)],
        cores=[core(100, running=[3], actor_number=0), core(101, actor_number=1), core(1, owned=owned)],
        tasks=[call],
        history=history,
    )
    node = stacks.node([driver, engine, player])
    frames = tuple(msgspec.structs.replace(f, looks=(), calls=("sleep",)) if f.function == "drain" else f for f in node.frames)
    assert accused(snapshot(msgspec.structs.replace(node, frames=frames), ray))[0] is state
