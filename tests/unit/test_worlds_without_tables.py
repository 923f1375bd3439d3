"""Ranks of one world on several nodes, looked at without Ray: some do not know their job."""

from __future__ import annotations

import msgspec
from scenes import ALL_REDUCE, EXECUTOR, MAIN, RENDEZVOUS, Stacks, process, snapshot

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, State
from ray_rl_debug.model.snapshot import Process, Snapshot, TorchGroup, TorchGroups

TRAIN = f"Trainer.train@app/trainer.py:20 {EXECUTOR} {MAIN}"


def rank(stacks: Stacks, pid: int, number: int, stack: str, job: str | None, **more: object) -> Process:
    env = {"RANK": str(number), "WORLD_SIZE": "2", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "45877"}
    one = process(stacks, pid, "ray::Trainer.train", stack, **more)  # type: ignore[arg-type]
    return msgspec.structs.replace(one, env=env, env_now=env, job_id=job)


def taken(first_job: str | None, second_job: str | None) -> Snapshot:
    here, there = Stacks(), Stacks()
    waiting = here.node([rank(here, 101, 0, f"{ALL_REDUCE} {TRAIN}", first_job)])
    reading = "Trainer.score@app/trainer.py:30"
    stuck = there.node([rank(there, 201, 1, f"{reading} {TRAIN}", second_job, wchan="wait_for_partner")])
    nodes = (waiting, msgspec.structs.replace(stuck, name="node2"))
    return msgspec.structs.replace(snapshot(waiting), nodes=nodes)


def test_a_worker_that_ray_started_ahead_of_any_job_belongs_to_the_world_it_meets() -> None:
    report = diagnose(taken(None, "01000000"))
    assert [(w.ranks, w.missing) for w in report.worlds] == [((0, 1), ())]
    assert report.verdict.state is State.HANG
    assert (report.findings[0].who[0].node, report.findings[0].who[0].pid) == ("node2", 201)


def test_ranks_of_two_jobs_stay_apart() -> None:
    assert sorted(w.missing for w in diagnose(taken("02000000", "01000000")).worlds) == [(0,), (1,)]


def two_ports(*ranks: int) -> Snapshot:
    """Ranks of a world of two; those after the first name another port."""
    here = Stacks()
    stacks = [f"{RENDEZVOUS} {TRAIN}", MAIN]
    found = [rank(here, 100 + i, number, stacks[i], None) for i, number in enumerate(ranks)]
    elsewhere = {**found[1].env, "MASTER_PORT": "45999"}
    return snapshot(here.node([found[0], msgspec.structs.replace(found[1], title="ray::Trainer", env=elsewhere, env_now=elsewhere)]))


def test_a_rank_that_was_not_told_of_the_new_meeting_point_is_the_missing_one() -> None:
    report = diagnose(two_ports(0, 1))
    assert [(w.ranks, w.missing) for w in report.worlds] == [((0, 1), ())]
    assert (report.findings[0].cause, [w.pid for w in report.findings[0].who]) == (Cause.INIT_DEADLOCK, [101])


def test_two_worlds_that_both_lack_the_same_rank_stay_apart() -> None:
    assert [w.missing for w in diagnose(two_ports(0, 0)).worlds] == [(1,), (1,)]


def with_loader(address: int) -> Snapshot:
    """Two ranks, and a process forked from the first one, whose default group lies at this address."""
    here = Stacks()
    ranks = [rank(here, 101 + n, n, f"{ALL_REDUCE} {TRAIN}", None, kind="child") for n in (0, 1)]
    loader = rank(here, 103, 0, "load@app/data.py:7", None, kind="child", ppid=101)
    groups = [TorchGroup(name="0", size=2, ranks=((0, 1, 1),), rank=n, is_default=True, address=1000 + n) for n in (0, 1)]
    groups.append(msgspec.structs.replace(groups[0], address=address))
    found = [msgspec.structs.replace(p, torch=TorchGroups(groups=(g,))) for p, g in zip([*ranks, loader], groups, strict=True)]
    return snapshot(here.node(found))


def test_a_process_forked_from_a_rank_has_a_copy_of_its_group_and_is_no_rank() -> None:
    assert [w.ranks for w in diagnose(with_loader(1000)).worlds] == [(0, 1)]
    assert [w.ranks for w in diagnose(with_loader(2000)).worlds] == [(0, 0, 1)]
