"""The second path to Ray's tables: without grpcio, without a stub that another version of Ray has, and without the dashboard."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.clusters import cluster, command, environment, program, wait_for

from ray_rl_debug.model import gaps
from ray_rl_debug.model.codec import read_snapshot

pytestmark = pytest.mark.integration

READ = """
import json, sys
from ray_rl_debug.ray_state import read_ray_state
if sys.argv[2] == "old":
    from ray.core.generated import gcs_service_pb2_grpc
    del gcs_service_pb2_grpc.ActorInfoGcsServiceStub
state, gaps = read_ray_state(sys.argv[1])
print(json.dumps({
    "nodes": sorted((n.node_id, n.ip, n.alive, n.is_head) for n in state.nodes),
    "jobs": sorted((j.job_id, j.driver_pid, j.driver_ip, j.alive) for j in state.jobs),
    "actors": sorted((a.actor_id, a.name, a.class_name, a.state, a.pid, a.node_id, a.job_id, a.namespace) for a in state.actors),
    "workers": sorted((w.worker_id, w.pid, w.kind, w.node_id) for w in state.workers if w.alive),
    "tasks": sorted((t.task_id, t.name, t.state, t.kind, t.actor_id, t.pid, t.parent_task_id) for t in state.tasks),
    "times": sorted(sorted(t.state_times_s) for t in state.tasks),
    "gaps": [(g.id, g.what, g.remedy) for g in gaps],
}))
"""


@pytest.fixture(scope="module")
def running() -> Iterator[dict[str, Any]]:
    with cluster(2, "dashboard") as c, program("job_program.py", c["address"], "Stage", 3) as job:
        yield {**c, **job}


@pytest.fixture
def without_grpc(tmp_path: Path) -> dict[str, str]:
    """An environment in which grpcio is not installed."""
    package = tmp_path / "hidden" / "grpc"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('grpcio is not installed')\n")
    return environment(PYTHONPATH=str(package.parent))


def tables(address: str, how: str = "new", env: dict[str, str] | None = None) -> dict[str, Any]:
    argv = [sys.executable, "-c", READ, address, how]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=env or environment())
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_both_paths_tell_the_same(running: dict[str, Any], without_grpc: dict[str, str]) -> None:
    # Task events reach the GCS about once a second.
    wait_for(lambda: [t[2] for t in tables(running["address"])["tasks"]].count("RUNNING") == 4, 60)
    first, second = tables(running["address"]), tables(running["address"], env=without_grpc)
    assert first.pop("gaps") == []
    ((id_, what, remedy),) = second.pop("gaps")
    assert (id_, remedy) == (gaps.RAY_TABLES, "pip install 'ray[default]'")
    assert "live statistics" in what
    assert {a[4] for a in first["actors"]} == set(running["pids"])
    assert second == first


def test_a_stub_that_this_version_does_not_have_is_made_up_for(running: dict[str, Any]) -> None:
    first, patched = tables(running["address"]), tables(running["address"], "old")
    assert patched == first


def test_a_whole_snapshot_without_grpcio(running: dict[str, Any], without_grpc: dict[str, str], tmp_path: Path) -> None:
    done = command("snapshot", "--address", running["address"], "--samples", 2, "--json", "-o", tmp_path, env=without_grpc)
    assert done.returncode in (0, 1, 3), done.stderr
    snapshot = read_snapshot(tmp_path / "snapshot.json.gz")
    seen = {p.pid: p for n in snapshot.nodes for p in n.processes}
    assert all(len(seen[pid].samples) == 2 for pid in (*running["pids"], running["driver"]))
    actors = {p["who"]["actor"] for p in json.loads(done.stdout)["processes"]}
    assert {"Stage_0", "Stage_1", "Stage_2"} <= actors
    assert gaps.RAY_TABLES in {g.id for g in snapshot.gaps}


def test_neither_grpcio_nor_a_dashboard(without_grpc: dict[str, str]) -> None:
    with cluster(1) as c:
        done = command("snapshot", "--address", c["address"], "--timeout", 20, "--json", env=without_grpc)
    # this machine hosts a raylet of the cluster: it is looked at without Ray's tables, and the report says what is missing
    assert done.returncode in (0, 1), done.stderr
    missing = {g["id"]: g["reason"] for g in json.loads(done.stdout)["gaps"]}
    assert f"the dashboard of the Ray cluster at {c['address']} does not answer" in missing[gaps.RAY_TABLES]
    assert gaps.NODE_SILENT in missing
