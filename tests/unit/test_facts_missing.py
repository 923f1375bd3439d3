"""What was not read or not seen speaks against nobody: the process that it would have cleared is not accused, and what stays is called possible."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import EXECUTOR, IDLE, MAIN, NO_CALL, RAY_GET, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Report, State
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, OwnedTask, Process, Socket

RECV, SLEEP = 45, 230
LOOP = ("AsyncIO Thread: default", "select@selectors.py:468 _run_once@asyncio/base_events.py:1884 run_forever@asyncio/base_events.py:607")
CLIENT = f"Agent.run@app/agent.py:5 {EXECUTOR} {MAIN}"


def sure(report: Report) -> list[str]:
    return [f.cause.value for f in report.findings if f.certainty is not Certainty.POSSIBLE]


def asked(stacks: Stacks, one: Process) -> Report:
    """A driver waits in ray.get for the call that the process runs."""
    driver = process(stacks, 50, "python train.py", f"{RAY_GET} main@train.py:9", kind="driver", refs=[task_id(1)])
    owned = OwnedTask(task_id=task_id(1), name="Agent.run", actor_id=f"{7:032x}")
    cores = [replace(core(50, owned=[owned]), kind="DRIVER"), core(one.pid, running=[1], actor_number=7)]
    return diagnose(snapshot(stacks.node([driver, one]), ray_state(actors=[actor(7, "Agent", one.pid)], cores=cores)))


CALL = AwaitFrame(function="run_async_func_or_coro_in_event_loop.<locals>.async_func")
STUCK = AsyncTask(address=1, name="Task-1", chain=(CALL, AwaitFrame(function="Agent.run")), awaited=Awaited(kind="event", address=7), stable=True)


@pytest.mark.parametrize(
    ("tasks", "accused"), [(None, []), ((), []), ((STUCK,), ["asyncio-stuck"])], ids=["not read", "that of the call not read", "read"]
)
def test_an_idle_loop_whose_coroutines_were_not_read(tasks: tuple[AsyncTask, ...] | None, accused: list[str]) -> None:
    """A call that runs on a loop has a coroutine."""
    stacks = Stacks()
    report = asked(stacks, process(stacks, 100, "ray::Agent.run", IDLE, extra_threads=[LOOP], async_tasks=tasks))
    assert sure(report) == accused
    assert report.findings[0].who[0].pid == 100


@pytest.mark.parametrize("tasks", [None, ()], ids=["not read", "none there"])
def test_a_future_that_a_coroutine_may_complete(tasks: tuple[AsyncTask, ...] | None) -> None:
    """A loop without coroutines may complete it too, when data comes in; and of its only coroutine an empty list says nothing."""
    stacks = Stacks()
    text = f"Future.result@concurrent/futures/_base.py:451 {CLIENT}"
    report = asked(stacks, process(stacks, 100, "ray::Agent.run", text, extra_threads=[LOOP], async_tasks=tasks))
    assert sure(report) == []
    assert report.findings[0].who[0].pid == 100


@pytest.mark.parametrize(
    ("call", "window_s", "accused"),
    [(None, 2.0, []), (NO_CALL, 2.0, ["straggler"]), (None, 20.0, ["straggler"])],
    ids=["call not read", "call read", "call not read, a long look"],
)
def test_a_line_of_code_that_may_only_pause(call: int | None, window_s: float, accused: list[str]) -> None:
    """Without the right to trace, stacks come from a prepared job, but not the system calls of its threads."""
    stacks = Stacks()
    one = process(stacks, 100, "ray::Agent.run", CLIENT, syscall=call)
    report = asked(stacks, replace(one, window_s=window_s))
    assert sure(report) == accused
    assert report.findings[0].cause.value == "straggler"


def connection(remote: str, quiet_s: float) -> Socket:
    return Socket(family="tcp", state="ESTABLISHED", local="10.0.0.1:50000", remote=remote, fd=9, quiet_s=quiet_s)


@pytest.mark.parametrize(
    ("sockets", "is_hang"),
    [
        ((connection("203.0.113.7:443", 9.0),), False),
        ((connection("203.0.113.7:443", 900.0),), True),
        ((connection("10.0.0.1:8000", 9.0),), False),
        ((connection("10.0.0.1:8000", 900.0),), True),
        (None, False),
    ],
    ids=[
        "a service elsewhere works",
        "a service elsewhere is silent",
        "a service of this host",
        "a silent service of this host",
        "connections not read",
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_who_waits_for_a_service_that_nobody_sees(sockets: tuple[Socket, ...] | None, is_async: bool, is_hang: bool) -> None:
    """Language models and sandboxes outside of the cluster answer within a minute."""
    stacks = Stacks()
    if is_async:
        call = AwaitFrame(function="run_async_func_or_coro_in_event_loop.<locals>.async_func")
        chain = (call, AwaitFrame(function="Agent.run", file="app/agent.py", line=5))
        waits = AsyncTask(address=1, name="Task-1", chain=chain, awaited=Awaited(kind="socket", fd=9), stable=True)
        one = process(stacks, 100, "ray::Agent.run", IDLE, extra_threads=[LOOP], async_tasks=(waits,))
    else:
        one = process(stacks, 100, "ray::Agent.run", f"readinto@socket.py:706 post@requests/api.py:115 {CLIENT}", syscall=RECV, arg0=9)
    report = asked(stacks, replace(one, sockets=sockets))
    assert (report.verdict.state is State.HANG) is is_hang
    assert report.findings[0].who[0].pid == 100


def test_who_waits_for_an_actor_that_was_not_seen_is_not_accused() -> None:
    """Its node did not answer, say."""
    stacks = Stacks()
    processes = [
        process(stacks, 50, "python train.py", f"{RAY_GET} main@train.py:9", kind="driver", refs=[task_id(1)]),
        process(stacks, 100, "ray::Agent.run", f"{RAY_GET} {CLIENT}", refs=[task_id(2)]),
    ]
    owned = [OwnedTask(task_id=task_id(n), name=name, actor_id=f"{n:032x}") for n, name in ((1, "Agent.run"), (2, "Engine.generate"))]
    cores = [replace(core(50, owned=owned[:1]), kind="DRIVER"), core(100, running=[1], actor_number=1, owned=owned[1:])]
    state = ray_state(actors=[actor(1, "Agent", 100), actor(2, "Engine", 101)], cores=cores)
    report = diagnose(snapshot(stacks.node(processes), state))
    assert report.verdict.state is State.UNKNOWN
    assert report.findings == ()
    assert "waits for Engine, whose process was not seen" in report.verdict.summary


@pytest.mark.parametrize(("done", "dead", "state"), [(5, False, State.HEALTHY), (0, False, State.UNKNOWN), (5, True, State.HANG)])
def test_a_known_poller_met_between_two_calls_of_its_producers(done: int, dead: bool, state: State) -> None:
    """Nobody runs a call at that moment, but the workers have finished some: batches come. Not where a worker has died."""
    stacks = Stacks()
    polls = f"ReplayBuffer._wait_for_next_poll@verl/trainer/ppo/v1/replay_buffer.py:409 Trainer.fit@app/trainer.py:9 {EXECUTOR} {MAIN}"
    processes = [
        process(stacks, 50, "python train.py", f"{RAY_GET} main@train.py:9", kind="driver", refs=[task_id(1)]),
        process(stacks, 100, "ray::Trainer.fit", polls, syscall=SLEEP),
        process(stacks, 101, "ray::Rollout", IDLE),
    ]
    died = {"death": "its process vanished", "death_kind": "crashed"} if dead else {}
    actors = [actor(1, "Trainer", 100), actor(2, "Rollout", 101), *([actor(3, "Rollout", 102, state="DEAD", **died)] if dead else [])]
    owned = OwnedTask(task_id=task_id(1), name="Trainer.fit", actor_id=f"{1:032x}")
    cores = [replace(core(50, owned=[owned]), kind="DRIVER"), core(100, running=[1], actor_number=1), core(101, actor_number=2, done=done)]
    assert diagnose(snapshot(stacks.node(processes), ray_state(actors=actors, cores=cores))).verdict.state is state
