"""Actors that Ray starts anew: a restart that has just begun, and a call that ends its actor's process in every try."""

from __future__ import annotations

import pytest
from scenes import IDLE, RAY_GET, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.analyze.solve import Outlook
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waits import find_waits
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import State
from ray_rl_debug.model.snapshot import OwnedTask, RayTask, Snapshot

DRIVER, ENGINE, LOGGER = 100, 201, 202
NODE = f"actor:{1:032x}"


def run(state: str, *, tries: int, restarts: int, since_s: float = 5.0, pid: int | None = None) -> Snapshot:
    """A driver waits for a call of an actor that was started anew; a logger is idle."""
    stacks = Stacks()
    call = RayTask(
        task_id=task_id(1), name="Engine.generate", kind="ACTOR_TASK", state="SUBMITTED_TO_WORKER", actor_id=f"{1:032x}", attempt=tries,
        state_times_s={"PENDING_ARGS_AVAIL": 200.0 - since_s},
    )  # fmt: skip
    owned = OwnedTask(task_id=task_id(1), name="Engine.generate", status="SUBMITTED_TO_WORKER", actor_id=f"{1:032x}")
    ray = ray_state(
        actors=[actor(1, "Engine", pid, state=state, restarts=restarts), actor(2, "Logger", LOGGER)],
        tasks=[call],
        cores=[core(DRIVER, owned=[owned]), core(LOGGER, actor_number=2)],
    )
    main = process(stacks, DRIVER, "python train.py", f"{RAY_GET} main@app/train.py:9", kind="driver", wchan="futex_do_wait", refs=[task_id(1)])
    others = [process(stacks, LOGGER, "ray::Logger", IDLE)]
    others += [process(stacks, ENGINE, "ray::Engine", IDLE)] if pid == ENGINE else []
    return snapshot(stacks.node([main, *others]), ray)


@pytest.mark.parametrize(("state", "pid"), [("ALIVE", ENGINE), ("ALIVE", 7), ("RESTARTING", None)], ids=["seen", "not seen", "restarting"])
def test_a_call_that_ends_its_process_in_every_try_is_named(state: str, pid: int | None) -> None:
    report = diagnose(run(state, tries=6, restarts=7, pid=pid))
    assert report.verdict.state is State.HANG
    assert "ended in each of 6 tries of Engine.generate" in report.findings[0].summary


@pytest.mark.parametrize(("tries", "restarts"), [(1, 9), (6, 1)], ids=["another call before", "tried for other reasons"])
def test_a_restart_that_has_just_begun_accuses_nobody(tries: int, restarts: int) -> None:
    for state, pid in (("RESTARTING", None), ("ALIVE", 7)):
        given = run(state, tries=tries, restarts=restarts, pid=pid)
        assert find_waits(build_view(given)).graph.hope(NODE) is Outlook.WAKES
        verdict = diagnose(given).verdict
        assert verdict.state is State.SLOW
        assert "its restart began 5 s ago" in verdict.summary


def test_a_restart_that_takes_long_stands() -> None:
    given = run("RESTARTING", tries=1, restarts=1, since_s=120.0)
    assert find_waits(build_view(given)).graph.hope(NODE) is Outlook.STANDS


@pytest.mark.parametrize(("tries", "is_hang"), [(9, True), (1, False)], ids=["in every try", "once"])
def test_a_task_that_fails_in_every_try_is_named(tries: int, is_hang: bool) -> None:
    """Its tries run in one worker after another, which is always at work."""
    stacks = Stacks()
    call = RayTask(task_id=task_id(1), name="grade", kind="NORMAL_TASK", state="RUNNING", attempt=tries, pid=ENGINE)
    cores = [core(DRIVER, owned=[OwnedTask(task_id=task_id(1), name="grade", status="RUNNING")]), core(ENGINE, running=[1])]
    main = process(stacks, DRIVER, "python train.py", f"{RAY_GET} main@app/train.py:9", kind="driver", wchan="futex_do_wait", refs=[task_id(1)])
    worker = process(stacks, ENGINE, "ray::grade", *(f"parse@app/{line}.py:7 grade@app/judge.py:20" for line in "abc"), cpu_s=1.5)
    report = diagnose(snapshot(stacks.node([main, worker]), ray_state(tasks=[call], cores=cores)))
    assert (report.verdict.state is State.HANG) is is_hang
    assert ("grade has failed in each of 9 tries" in report.findings[0].summary) is is_hang
