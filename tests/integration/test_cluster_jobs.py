"""Two jobs on one cluster are told apart: by their Ray id, in the whole capture and in one that is narrowed to a job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.clusters import cluster, command, program

from ray_rl_debug.model.codec import read_snapshot
from ray_rl_debug.model.snapshot import Process, Snapshot

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def jobs() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Address of a cluster of two nodes, and two jobs that run there at once."""
    with (
        cluster(2) as c,
        program("job_program.py", c["address"], "Policy", 4) as policy,
        program("job_program.py", c["address"], "Judge", 3) as judge,
    ):
        yield c["address"], policy, judge


def take(tmp_path: Path, *arguments: object) -> tuple[Snapshot, dict[str, Any]]:
    done = command("snapshot", *arguments, "--samples", 2, "--interval", 0.5, "--json", "-o", tmp_path)
    assert done.returncode in (0, 1, 3), done.stderr
    return read_snapshot(tmp_path / "snapshot.json.gz"), json.loads(done.stdout)


def processes(snapshot: Snapshot) -> dict[int, Process]:
    return {p.pid: p for n in snapshot.nodes for p in n.processes}


def pids(job: dict[str, Any]) -> set[int]:
    return {job["driver"], *job["pids"]}


def test_a_capture_of_all_knows_whose_each_process_is(jobs: tuple[str, dict[str, Any], dict[str, Any]], tmp_path: Path) -> None:
    address, policy, judge = jobs
    assert policy["job"] != judge["job"]
    snapshot, _ = take(tmp_path, "--address", address)
    seen = processes(snapshot)
    for job in (policy, judge):
        assert {pid for pid, p in seen.items() if p.job_id == job["job"] and p.kind in ("ray-worker", "driver")} == pids(job)


@pytest.mark.parametrize("which", [0, 1])
def test_a_capture_of_one_job_leaves_the_other_alone(which: int, jobs: tuple[str, dict[str, Any], dict[str, Any]], tmp_path: Path) -> None:
    address, *both = jobs
    wanted, other = both[which], both[1 - which]
    snapshot, report = take(tmp_path, "--address", address, "--job", wanted["job"])
    seen = processes(snapshot)
    assert pids(wanted) <= set(seen)
    assert not pids(other) & set(seen), "neither listed nor sampled"
    assert all(len(seen[pid].samples) >= 2 for pid in pids(wanted))
    assert snapshot.job_id == wanted["job"]
    assert snapshot.ray is not None
    assert {j.job_id for j in snapshot.ray.jobs} == {wanted["job"]}
    assert {a.job_id for a in snapshot.ray.actors} == {wanted["job"]}
    assert {w.job_id for w in snapshot.ray.core_workers} == {wanted["job"]}
    assert {t.job_id for t in snapshot.ray.tasks} <= {wanted["job"]}
    named = {w["pid"] for f in report["findings"] for w in (*f["who"], *f["victims"])} | {p["who"]["pid"] for p in report["processes"]}
    assert not named & pids(other)


def test_one_job_on_this_node_by_the_tables_alone(jobs: tuple[str, dict[str, Any], dict[str, Any]], tmp_path: Path) -> None:
    address, policy, judge = jobs
    snapshot, _ = take(tmp_path, "--here", "--address", address, "--job", policy["job"])
    seen = processes(snapshot)
    assert pids(policy) <= set(seen)
    assert not pids(judge) & set(seen)
    assert snapshot.job_id == policy["job"]


def test_a_capture_without_ray_cannot_tell_jobs_apart() -> None:
    """Ray starts spare workers before any job; which one they serve stands in Ray's tables alone."""
    done = command("snapshot", "--here", "--job", "01000000")
    assert done.returncode == 2
    assert "--job needs Ray's tables" in done.stderr
