"""Which job is meant, and what belongs to it."""

from __future__ import annotations

import pytest

from ray_rl_debug.capture.jobs import choose_job, keep_job, pids_of_others, with_jobs
from ray_rl_debug.cluster.node_choice import with_own
from ray_rl_debug.model.errors import UsageError
from ray_rl_debug.model.snapshot import CoreWorker, Node, Process, RayActor, RayJob, RayState, Snapshot

JOBS = (
    RayJob(job_id="01000000", driver_pid=10, driver_ip="10.0.0.1", submission_id="raysubmit_a", entrypoint="python train.py"),
    RayJob(job_id="02000000", driver_pid=20, driver_ip="10.0.0.1", alive=False),
)
SPARE = "ffffffff"


@pytest.mark.parametrize(("wanted", "found"), [(None, None), ("01000000", "01000000"), ("raysubmit_a", "01000000"), ("02000000", "02000000")])
def test_a_job_is_meant_by_its_id_or_its_submission(wanted: str | None, found: str | None) -> None:
    assert choose_job(wanted, JOBS) == found


def test_a_job_that_is_not_there_lists_those_that_are() -> None:
    with pytest.raises(UsageError) as refused:
        choose_job("03000000", JOBS)
    assert refused.value.hint == "jobs here: 01000000 raysubmit_a python train.py; 02000000 (ended)"
    with pytest.raises(UsageError) as refused:
        choose_job("01000000", ())
    assert refused.value.hint == "the cluster has no jobs"


def worker(pid: int, job: str | None, node: str = "aa") -> CoreWorker:
    return CoreWorker(pid=pid, worker_id=f"{pid:x}", node_id=node, job_id=job)


def test_workers_of_others_and_spare_ones_need_not_be_looked_at() -> None:
    state = RayState(address="10.0.0.1:1", actors=(RayActor(actor_id="a", job_id="01000000", class_name="A", state="ALIVE", pid=3, node_id="aa"),))
    workers = (worker(1, "01000000"), worker(2, "02000000"), worker(3, SPARE), worker(4, SPARE), worker(2, "02000000", "bb"))
    assert pids_of_others("01000000", state, workers) == {"aa": (2, 4), "bb": (2,)}
    assert pids_of_others(None, state, workers) == {}


def test_our_own_numbers_are_left_out_on_this_machine_only() -> None:
    assert with_own({"aa": (2,), "bb": (2,)}, ["aa", "cc"], (70, 71)) == {"aa": (2, 70, 71), "bb": (2,), "cc": (70, 71)}


def test_a_spare_worker_learns_its_job_from_the_tables_and_a_child_from_its_parent() -> None:
    processes = (
        Process(pid=5, title="raylet", kind="raylet"),
        Process(pid=10, title="python train.py", kind="driver"),
        Process(pid=11, ppid=10, title="loader", kind="child"),
        Process(pid=12, ppid=5, title="ray::Judge", kind="ray-worker"),
        Process(pid=13, ppid=5, title="ray::IDLE", kind="ray-worker"),
    )
    node = Node(name="n", node_id="aa", ip="10.0.0.1", started_time_s=0, window_s=1, processes=processes)
    state = RayState(address="10.0.0.1:1", jobs=JOBS, core_workers=(worker(12, "02000000"), worker(13, SPARE)))
    whole = with_jobs(Snapshot(taken_time_s=0, nodes=(node,), ray=state))
    assert {p.pid: p.job_id for p in whole.nodes[0].processes} == {5: None, 10: "01000000", 11: "01000000", 12: "02000000", 13: None}
    kept = keep_job(whole, "01000000")
    assert [p.pid for p in kept.nodes[0].processes] == [5, 10, 11]
    assert kept.ray is not None
    assert [j.job_id for j in kept.ray.jobs] == ["01000000"]
    assert keep_job(whole, None) is whole
