"""A Ray call that goes round until another call sets its flag: where that one stands behind it, neither ends."""

from __future__ import annotations

import msgspec
import pytest
from scenes import EXECUTOR, MAIN, RAY_GET, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, Certainty, Report, State
from ray_rl_debug.model.snapshot import RayTask

RUNS = f"Rollout.run@app/roll.py:24 {EXECUTOR} {MAIN}"
STANDS = "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY"
SERVES = "serve@app/roll.py:40 Thread.run@threading.py:982"


def report(behind: str, *, since_s: float = 20.0, state: str = STANDS, running: tuple[int, ...] = (1,), beside: bool = False) -> Report:
    """The driver waits for a rollout's `run`, which `stop` would end; a call of this name is under way."""
    stacks = Stacks()
    threads = [("control", SERVES)] if beside else []
    rollout = process(stacks, 200, "ray::Rollout.run", RUNS, wchan="hrtimer_nanosleep", syscall=230, extra_threads=threads)
    driver = process(stacks, 1, "driver", f"{RAY_GET} main@app/main.py:30", kind="driver", refs=[task_id(1)])
    node = stacks.node([rollout, driver])
    frames = tuple(msgspec.structs.replace(f, calls=("sleep",), goes_round=False, ended_by=("stop",)) if f.line == 24 else f for f in node.frames)
    actor_id = f"{0:032x}"
    tasks = [
        RayTask(
            task_id=task_id(1), name="Rollout.run", state="RUNNING", job_id="01000000", actor_id=actor_id, pid=200, state_times_s={"RUNNING": 170.0}
        ),
        RayTask(task_id=task_id(2), name=behind, state=state, job_id="01000000", actor_id=actor_id, state_times_s={state: 200.0 - since_s}),
    ]
    ray = ray_state(actors=[actor(0, "Rollout", 200)], tasks=tasks, cores=[core(200, running=running, actor_number=0)])
    return diagnose(snapshot(msgspec.structs.replace(node, frames=frames), ray))


def test_the_call_that_would_end_it_stands_behind_it() -> None:
    said = report("Rollout.stop")
    first = said.findings[0]
    assert (said.verdict.state, first.cause, first.certainty, [w.pid for w in first.who]) == (
        State.HANG,
        Cause.RAY_QUEUED_CALL,
        Certainty.LIKELY,
        [200],
    )
    assert "runs run until stop is called" in first.summary


@pytest.mark.parametrize(
    ("behind", "more"),
    [
        ("Rollout.metrics", {}),
        ("Rollout.stop", {"since_s": 1.0}),
        ("Rollout.stop", {"state": "RUNNING"}),
        ("Rollout.stop", {"running": (1, 3)}),
        ("Rollout.stop", {"beside": True}),
    ],
    ids=["another call", "it has just come", "it runs", "a second lane is taken", "a thread beside may end it"],
)
def test_it_may_be_ended(behind: str, more: dict[str, object]) -> None:
    assert all("stands behind it" not in f.summary for f in report(behind, **more).findings)  # type: ignore[arg-type]
