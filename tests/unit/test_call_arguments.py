"""Calls whose arguments are the results of other calls: who stands idle for want of an argument is a victim of the one that should produce it."""

from __future__ import annotations

import msgspec
import pytest
from scenes import EXECUTOR, IDLE, MAIN, RAY_GET, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, Report
from ray_rl_debug.model.snapshot import OwnedTask, RayTask

DRIVER, ROLLOUT, TRAINER, SERVER = 1, 100, 101, 102
GENERATE, TRAIN, SERVE, SAVE = 1, 2, 3, 4
NEEDS, RUNS = "PENDING_ARGS_AVAIL", "RUNNING"


def run(*, awaited: int = TRAIN, generates: bool = True, serves_since_s: float = 50.0) -> Report:
    """``ray.get(trainer.train.remote(rollout.generate.remote()))``, beside a service loop whose call nobody waits for."""
    stacks = Stacks()
    reads = f"Rollout.generate@app/rollout.py:7 {EXECUTOR} {MAIN}"
    serving = f"Server.serve@app/serve.py:4 {EXECUTOR} {MAIN}"
    processes = [
        process(stacks, DRIVER, "driver", f"{RAY_GET} main@app/main.py:30", kind="driver", refs=[task_id(awaited)]),
        process(stacks, ROLLOUT, "ray::Rollout.generate" if generates else "ray::Rollout", reads if generates else IDLE, wchan="wait_for_partner"),
        process(stacks, TRAINER, "ray::Trainer", IDLE),
        process(stacks, SERVER, "ray::Server.serve", serving, wchan="wait_for_partner"),
    ]
    calls = [(GENERATE, "Rollout.generate", 0, RUNS), (TRAIN, "Trainer.train", 1, NEEDS), (SERVE, "Server.serve", 2, RUNS)]
    calls += [(SAVE, "Trainer.save", 1, "SUBMITTED_TO_WORKER")] if awaited == SAVE else []
    calls = [c for c in calls if generates or c[0] != GENERATE]
    submitted = {GENERATE: 150.0, TRAIN: 150.001, SERVE: serves_since_s, SAVE: 150.002}
    tasks = [RayTask(task_id=task_id(n), name=name, state=s, actor_id=f"{a:032x}", state_times_s={NEEDS: submitted[n]}) for n, name, a, s in calls]
    owned = [OwnedTask(task_id=task_id(n), name=name, actor_id=f"{a:032x}", status=s) for n, name, a, s in calls]
    cores = [
        msgspec.structs.replace(core(DRIVER, owned=owned), kind="DRIVER"),
        core(ROLLOUT, running=[GENERATE] if generates else [], actor_number=0),
        core(TRAINER, actor_number=1),
        core(SERVER, running=[SERVE], actor_number=2),
    ]
    actors = [actor(0, "Rollout", ROLLOUT), actor(1, "Trainer", TRAINER), actor(2, "Server", SERVER)]
    return diagnose(snapshot(stacks.node(processes), ray_state(actors=actors, tasks=tasks, cores=cores)))


@pytest.mark.parametrize("awaited", [TRAIN, SAVE], ids=["the call itself", "a call that stands behind it"])
def test_the_call_that_should_produce_the_argument_is_named(awaited: int) -> None:
    report = run(awaited=awaited)
    (root,) = (f for f in report.findings if f.root)
    assert (root.cause, [w.pid for w in root.who]) == (Cause.BLOCKED_IO, [ROLLOUT])
    assert DRIVER in {v.pid for v in root.victims}
    assert [link.why for link in root.chain][-1] == "ray.argument"


def test_an_idle_actor_is_never_accused_of_a_call_that_has_not_reached_it() -> None:
    accused = {w.pid for f in run(generates=False).findings for w in f.who}
    assert TRAINER not in accused


def test_a_service_that_was_called_long_before_produces_no_argument() -> None:
    assert SERVER not in {w.pid for f in run().findings for w in f.who}
    assert SERVER in {w.pid for f in run(serves_since_s=150.0).findings for w in f.who}


def test_a_call_whose_producer_is_not_known_does_not_lack_resources() -> None:
    assert [f.id for f in run(generates=False, serves_since_s=160.0).findings if "Trainer.train" in f.summary] == []


def test_tasks_of_one_name_that_wait_for_resources_are_one_finding() -> None:
    stacks = Stacks()
    driver = process(stacks, DRIVER, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver", refs=[task_id(n) for n in range(300)])
    tasks = [RayTask(task_id=task_id(n), name="tokenize", state="PENDING_NODE_ASSIGNMENT", resources={"CPU": 1.0}) for n in range(300)]
    owned = [OwnedTask(task_id=task_id(n), name="tokenize", status="PENDING_NODE_ASSIGNMENT") for n in range(300)]
    cores = [msgspec.structs.replace(core(DRIVER, owned=owned), kind="DRIVER")]
    (finding,) = diagnose(snapshot(stacks.node([driver]), ray_state(tasks=tasks, cores=cores))).findings
    assert "and 299 more of its name" in finding.summary
