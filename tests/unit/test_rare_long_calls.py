"""The first long call after many short ones of its name: an evaluation, a checkpoint. That it takes longer than ever before is no hang by itself."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import EXECUTOR, MAIN, RAY_GET, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.outlook_calls import computes, overdue_for_others
from ray_rl_debug.analyze.outlook_facts import facts_of
from ray_rl_debug.analyze.rank_counters import Joined
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Report, State
from ray_rl_debug.model.snapshot import Process, RayTask, TaskHistory

STEP = f"Trainer.step@app/trainer.py:40 {EXECUTOR} {MAIN}"
ASKS = f"recv_into@socket.py:700 {STEP}"
WAITS = f"Popen._wait@subprocess.py:2011 run@subprocess.py:550 {STEP}"


def diagnosed(stacks: Stacks, trainer: Process, *more: Process, goes_round: bool | None = False, since_s: float = 150.0) -> Report:
    """An actor is in a call of 50 s for which a driver waits; a hundred such calls took less than a second each."""
    driver = process(stacks, 1, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver", refs=[task_id(1)])
    task = RayTask(task_id=task_id(1), name="Trainer.step", state="RUNNING", pid=100, state_times_s={"RUNNING": since_s})
    history = TaskHistory(name="Trainer.step", count=100, longest_s=0.6)
    ray = ray_state(actors=[actor(0, "Trainer", 100)], tasks=[task], cores=[core(100, running=[1], actor_number=0)], history=[history])
    node = stacks.node([trainer, *more, driver])
    frames = tuple(replace(f, goes_round=goes_round) if f.function == "Trainer.step" else f for f in node.frames)
    return diagnose(snapshot(replace(node, frames=frames), ray))


def sure(report: Report) -> list[int | None]:
    return [w.pid for f in report.findings if f.certainty is not Certainty.POSSIBLE for w in f.who]


@pytest.mark.parametrize("owns_gil", [False, True], ids=["in one call of C", "in a loop of Python"])
def test_who_computes_may_be_at_its_first_evaluation(owns_gil: bool) -> None:
    stacks = Stacks()
    report = diagnosed(stacks, process(stacks, 100, "ray::Trainer.step", STEP, cpu_s=1.9, owns_gil=owns_gil))
    assert sure(report) == []
    assert report.verdict.state is State.SLOW


LOOP = f"normalise@/job/score.py:30 score@/job/score.py:24 {EXECUTOR} {MAIN}"


@pytest.mark.parametrize(
    ("stacks_met", "owns_gil", "applies"),
    [
        ((LOOP, LOOP.replace(":30", ":29")), True, False),
        ((LOOP, LOOP.replace(":24", ":25")), True, True),
        ((LOOP, LOOP), False, True),
    ],
    ids=["in one loop", "in a loop that calls", "in one call of C"],
)
def test_a_loop_that_its_fellows_have_left_is_no_rare_step(stacks_met: tuple[str, ...], owns_gil: bool, applies: bool) -> None:
    stacks = Stacks()
    view = build_view(snapshot(stacks.node([process(stacks, 100, "ray::Trainer.step", *stacks_met, cpu_s=1.9, owns_gil=owns_gil)])))
    fellow = Edge(source="node1/200", target="node1/100", why=Why.COLLECTIVE, evidence="")
    assert computes(facts_of(view, view.seen["node1/100"], (), Joined(), [fellow])) is applies
    assert computes(facts_of(view, view.seen["node1/100"], (), Joined(), []))


def test_after_a_quarter_of_an_hour_it_is_overdue() -> None:
    stacks = Stacks()
    report = diagnosed(stacks, process(stacks, 100, "ray::Trainer.step", STEP, cpu_s=1.9), since_s=-1000.0)
    assert sure(report) == [100]


@pytest.mark.parametrize(("wakes_in_s", "accused"), [(20.0, False), (4000.0, True)], ids=["soon", "much later"])
def test_who_sleeps_wakes_when_its_clock_says(wakes_in_s: float, accused: bool) -> None:
    stacks = Stacks()
    trainer = process(stacks, 100, "ray::Trainer.step", STEP, wchan="hrtimer_nanosleep", syscall=230)
    trainer = replace(trainer, threads=(replace(trainer.threads[0], wakes_in_s=wakes_in_s, run_slices=4), *trainer.threads[1:]))
    report = diagnosed(stacks, trainer, goes_round=None)
    assert (100 in sure(report)) is accused


@pytest.mark.parametrize(("wakes_in_s", "accused"), [(110.0, False), (4000.0, True), (None, True)], ids=["in minutes", "much later", "not known"])
def test_a_program_that_sleeps_wakes_when_its_clock_says(wakes_in_s: float | None, accused: bool) -> None:
    stacks = Stacks()
    trainer = process(stacks, 100, "ray::Trainer.step", WAITS, wchan="do_wait", syscall=61, arg0=200)
    tool = process(stacks, 200, "sleep", "x@x:1", kind="child", ppid=100, wchan="hrtimer_nanosleep", syscall=230)
    tool = replace(tool, samples=(), threads=(replace(tool.threads[0], wakes_in_s=wakes_in_s),))
    assert bool(sure(diagnosed(stacks, trainer, tool))) is accused


@pytest.mark.parametrize(("age_s", "applies"), [(150.0, False), (1100.0, True)], ids=["within a quarter of an hour", "later"])
def test_a_server_that_computes_may_be_at_a_rare_request(age_s: float, applies: bool) -> None:
    """A hundred questions of the trainer were answered within a second."""
    stacks = Stacks()
    trainer = process(stacks, 100, "ray::Trainer.step", ASKS, wchan="sk_wait_data", syscall=45, arg0=5)
    server = process(stacks, 300, "python judge.py", "judge@/job/judge.py:9", kind="child", ppid=1, cpu_s=1.9)
    task = RayTask(task_id=task_id(1), name="Trainer.step", state="RUNNING", pid=100, state_times_s={"RUNNING": 200.0 - age_s})
    history = TaskHistory(name="Trainer.step", count=100, longest_s=0.6)
    ray = ray_state(actors=[actor(0, "Trainer", 100)], tasks=[task], cores=[core(100, running=[1], actor_number=0)], history=[history])
    view = build_view(snapshot(stacks.node([trainer, server]), ray))
    asks = Edge(source="node1/100", target="node1/300", why=Why.SOCKET, evidence="")
    assert (overdue_for_others(facts_of(view, view.seen["node1/300"], (), Joined(), [asks])) is not None) is applies
