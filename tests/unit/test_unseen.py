"""Actors whose stacks may not be read: what titles, states, CPU times and the actor table allow to say, and what not."""

from __future__ import annotations

import msgspec
from scenes import IDLE, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, Certainty, Report, State
from ray_rl_debug.model.snapshot import Gpu, OwnedTask, Process, RayNode, RayPlacementGroup, RayTask, Snapshot, TaskHistory

METHOD = "Trainer.update_policy"
DRIVER = 1


def run(*cpu_s: float, states: str = "", gpus: int = 0, overdue: bool = True, dead: bool = False) -> Snapshot:
    """A driver that waits for one call on each of the actors, which used `cpu_s` of a window of 2 s; nobody has a stack."""
    stacks = Stacks()
    found: list[Process] = [process(stacks, DRIVER, "python train.py", IDLE, kind="driver")]
    for i, spent in enumerate(cpu_s):
        found.append(process(stacks, 100 + i, f"ray::{METHOD}", IDLE, cpu_s=spent, state=states[i] if states else "S"))
    found = [msgspec.structs.replace(p, samples=(), threads=(), env={"RAY_JOB_ID": "01000000"}, env_now=None) for p in found]
    cards = tuple(Gpu(index=i, uuid=f"GPU-{i}", name="card") for i in range(gpus))
    actors = [actor(i, "Trainer", 100 + i) for i in range(len(cpu_s))]
    if dead:
        actors.append(actor(90, "Trainer", 190, state="DEAD", death="killed by signal 9"))
    ray = ray_state(
        actors=actors,
        cores=[core(100 + i, running=[i], actor_number=i) for i in range(len(cpu_s))]
        + [msgspec.structs.replace(core(DRIVER, owned=[OwnedTask(task_id=task_id(i), name=METHOD) for i in range(len(cpu_s))]), kind="DRIVER")],
        tasks=[
            RayTask(task_id=task_id(i), name=METHOD, state="RUNNING", actor_id=f"{i:032x}", state_times_s={"RUNNING": 100.0})
            for i in range(len(cpu_s))
        ],
        history=[TaskHistory(name=METHOD, count=9, longest_s=0.5)] if overdue else [],
    )
    return snapshot(stacks.node(found, gpus=cards or None), ray)


def accused(report: Report) -> list[tuple[Cause, Certainty, list[int | None]]]:
    return [(f.cause, f.certainty, [w.pid for w in f.who]) for f in report.findings]


def test_the_one_that_runs_while_its_equals_sleep() -> None:
    report = diagnose(run(0.01, 0.01, 1.99, 0.01))
    assert accused(report) == [(Cause.STRAGGLER, Certainty.LIKELY, [102])]
    assert any("used 100 % of a core" in e.text for f in report.findings for e in f.evidence)


def test_the_one_in_the_kernel_while_its_equals_sleep() -> None:
    report = diagnose(run(0.01, 0.01, 0.0, states="SSD"))
    assert [pids for _, _, pids in accused(report)] == [[102]]


def test_without_history_it_is_only_possible() -> None:
    assert [sure for _, sure, _ in accused(diagnose(run(0.01, 0.01, 1.99, overdue=False)))] == [Certainty.POSSIBLE]


def test_when_all_sleep_nobody_is_singled_out() -> None:
    report = diagnose(run(0.01, 0.01, 0.01))
    assert (report.verdict.state, accused(report)) == (State.UNKNOWN, [])


def test_when_most_run_or_cards_may_be_at_work_nobody_is_singled_out() -> None:
    assert not [a for a in accused(diagnose(run(1.9, 1.9, 0.01, 1.9))) if a[1] is not Certainty.POSSIBLE]
    assert not [a for a in accused(diagnose(run(0.01, 0.01, 1.99, gpus=3))) if a[1] is not Certainty.POSSIBLE]


def test_a_dead_actor_of_their_class_is_waited_for() -> None:
    report = diagnose(run(0.01, 0.01, 0.01, dead=True))
    assert [(cause, sure) for cause, sure, _ in accused(report)] == [(Cause.RANK_DIED, Certainty.LIKELY)]


def pending(cpus: float, *, done: int = 0) -> Snapshot:
    """The same run with a placement group that waits for `cpus` in a cluster of eight."""
    taken = run(0.01, 0.01)
    assert taken.ray is not None
    ray = msgspec.structs.replace(
        taken.ray,
        nodes=(RayNode(node_id="n", ip="10.0.0.1", host="node1", alive=True, resources={"CPU": 8.0}),),
        placement_groups=(RayPlacementGroup(placement_group_id="ab" * 18, state="PENDING", name="pool", bundles=({"CPU": cpus},)),),
        core_workers=tuple(msgspec.structs.replace(w, executed_tasks=7 + done) for w in taken.ray.core_workers),
    )
    return msgspec.structs.replace(taken, ray=ray)


def test_a_group_that_never_fits_is_told_although_nobody_is_seen_to_wait() -> None:
    assert [(cause, sure) for cause, sure, _ in accused(diagnose(pending(9)))] == [(Cause.RAY_PENDING, Certainty.LIKELY)]
    assert [(cause, sure) for cause, sure, _ in accused(diagnose(pending(4)))] == [(Cause.RAY_PENDING, Certainty.POSSIBLE)]


def test_a_group_that_waits_while_calls_end_is_no_finding() -> None:
    assert accused(diagnose(pending(9, done=3))) == []


def test_one_that_ends_calls_does_not_make_the_others_healthy() -> None:
    taken = run(0.01, 0.01)
    assert taken.ray is not None
    first, *rest = taken.ray.core_workers
    ray = msgspec.structs.replace(taken.ray, core_workers=(msgspec.structs.replace(first, executed_tasks=9), *rest))
    assert diagnose(msgspec.structs.replace(taken, ray=ray)).verdict.state is State.UNKNOWN
