"""How long a call may take when few of its name have finished, or when it naps at its work."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from scenes import EXECUTOR, MAIN, RAY_GET, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.analyze.by_hand import said_to_hang
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import RayTask, TaskHistory

RECORDED = Path(__file__).parents[1] / "kinds" / "recorded" / "signal_of_evaluation-healthy.json.gz"
"""A task that pauses again and again runs for 8 s, and two of its name took half a second."""


@pytest.mark.parametrize(
    ("finished", "longest_s", "earlier_s", "accused"),
    [(2, 0.5, 0.0, set()), (5, 0.5, 0.0, set()), (2, 0.01, 0.0, set()), (5, 0.5, 1000.0, {"evaluate"}), (5, 500.0, 1000.0, set())],
    ids=["two calls", "five", "far longer than two", "a quarter of an hour", "five as long"],
)
def test_one_that_pauses_inside_is_overdue_after_a_quarter_of_an_hour(finished: int, longest_s: float, earlier_s: float, accused: set[str]) -> None:
    taken = load((RECORDED,)).snapshot
    assert taken is not None and taken.ray is not None
    tasks = tuple(
        msgspec.structs.replace(t, state_times_s={**t.state_times_s, "RUNNING": t.state_times_s["RUNNING"] - earlier_s})
        if t.name == "evaluate" and t.state == "RUNNING"
        else t
        for t in taken.ray.tasks
    )
    history = tuple(
        msgspec.structs.replace(h, count=finished, longest_s=longest_s, usual_s=longest_s) if h.name == "evaluate" else h for h in taken.ray.history
    )
    report = diagnose(msgspec.structs.replace(taken, ray=msgspec.structs.replace(taken.ray, history=history, tasks=tasks)))
    assert {w.label for f in report.findings if f.certainty is not Certainty.POSSIBLE for w in f.who} == accused


LINES: dict[str, dict[str, object]] = {
    "a step of many naps": {"goes_round": False, "looks": None},
    "a look for something": {"goes_round": False, "looks": ("exists",)},
    "a loop without end": {"goes_round": True, "looks": None},
    "the source was not read": {},
}


def overdue(stack: str, line: Mapping[str, object], age_s: float) -> set[Certainty]:
    """Of a call of an actor whose six calls so far took 0.6 s, and for which the driver waits."""
    stacks = Stacks()
    actor_ = process(stacks, 200, "ray::Rollout.play", stack, wchan="hrtimer_nanosleep", syscall=230)
    actor_ = msgspec.structs.replace(actor_, threads=(msgspec.structs.replace(actor_.threads[0], run_slices=11, wakes_in_s=0.3),))
    driver = process(stacks, 1, "driver", f"{RAY_GET} main@app/main.py:30", kind="driver", refs=[task_id(1)])
    node = stacks.node([actor_, driver])
    frames = tuple(msgspec.structs.replace(f, **line) if f.line == 24 else f for f in node.frames)
    task = RayTask(
        task_id=task_id(1),
        name="Rollout.play",
        state="RUNNING",
        job_id="01000000",
        actor_id=f"{0:032x}",
        pid=200,
        state_times_s={"RUNNING": 200 - age_s},
    )
    history = TaskHistory(name="Rollout.play", count=6, longest_s=0.6, usual_s=0.6)
    ray = ray_state(actors=[actor(0, "Rollout", 200)], tasks=[task], cores=[core(200, running=[1], actor_number=0)], history=[history])
    report = diagnose(snapshot(msgspec.structs.replace(node, frames=frames), ray))
    return {f.certainty for f in report.findings if any(w.pid == 200 for w in f.who)}


@pytest.mark.parametrize(("line", "early"), [*zip(LINES, (False, True, False, False), strict=True)])
def test_a_step_of_many_naps_may_take_minutes(line: str, early: bool) -> None:
    pauses = f"Rollout.play@app/roll.py:24 {EXECUTOR} {MAIN}"
    assert (Certainty.LIKELY in overdue(pauses, LINES[line], 20.0)) is early
    assert (Certainty.LIKELY in overdue(pauses, LINES[line], 90.0)) is early
    assert Certainty.LIKELY in overdue(pauses, LINES[line], 1000.0)


@pytest.mark.parametrize("earlier_s", [0.0, 90.0, 1000.0], ids=["within a minute", "within a quarter of an hour", "far longer"])
def test_so_may_a_coroutine_that_sleeps_again_and_again(earlier_s: float) -> None:
    """It tidies up in naps of two seconds for 5 s, and the calls of its name took half a second."""
    taken = load((RECORDED.with_name("cancelled_plays-healthy.json.gz"),)).snapshot
    assert taken is not None and taken.ray is not None
    running = [t for t in taken.ray.tasks if t.name == "Rollout.play" and t.state == "RUNNING"]
    begun = {t.task_id: {**t.state_times_s, "RUNNING": t.state_times_s["RUNNING"] - earlier_s} for t in running}
    tasks = tuple(msgspec.structs.replace(t, state_times_s=begun.get(t.task_id, t.state_times_s)) for t in taken.ray.tasks)
    report = diagnose(msgspec.structs.replace(taken, ray=msgspec.structs.replace(taken.ray, tasks=tasks)))
    assert {f.certainty for f in report.findings} == {Certainty.LIKELY if earlier_s > 900 else Certainty.POSSIBLE}


@pytest.mark.parametrize(("hung_s", "expected"), [(300.0, Certainty.POSSIBLE), (2400.0, Certainty.LIKELY)], ids=["five minutes", "forty"])
@pytest.mark.parametrize("name", ["quiet/recorded/slow_producer-1", "quiet/recorded/evaluates_in_c-1", "kinds/recorded/named_before_made-hang"])
def test_who_says_that_a_run_has_hung_for_long_is_believed(name: str, hung_s: float, expected: Certainty) -> None:
    """Sleepers and one that computes, of whom only time could speak."""
    taken = load((RECORDED.parents[2] / f"{name}.json.gz",)).snapshot
    assert taken is not None
    assert diagnose(said_to_hang(taken, hung_s)).findings[0].certainty is expected
