"""Hanging jobs whose processes may not be looked into: Ray's tables, titles, states and CPU times still make a report that says what is missing."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.clusters import command, environment

from ray_rl_debug.model import gaps
from ray_rl_debug.model.codec import read_snapshot

pytestmark = pytest.mark.integration

HERE = Path(__file__).resolve().parent
LAB = HERE.parents[1] / "examples" / "hang_lab.py"
NAMESPACE = ("unshare", "-Ur")
CLOSED = (gaps.STACKS_REFUSED, gaps.MEMORY_REFUSED, gaps.DESCRIPTORS_REFUSED)


def is_allowed(*prefix: str) -> bool:
    return subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0


if not is_allowed(*NAMESPACE):
    pytest.skip("this kernel or container does not allow unshare -Ur", allow_module_level=True)


@contextlib.contextmanager
def hanging(name: str, *, closed: bool) -> Iterator[dict[str, Any]]:
    """An example that hangs. `closed`: neither we nor our agents may look into its processes."""
    env = environment(PYTHONPATH=str(HERE / "closed")) if closed else environment()
    without_rights = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if closed and os.geteuid() == 0 else ()
    if without_rights and not is_allowed(*without_rights):
        pytest.skip("setpriv is not there")
    lab = subprocess.Popen(
        [*without_rights, sys.executable, str(LAB), "run", name, "--hold", "150"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=env,
    )
    assert lab.stdin is not None
    assert lab.stdout is not None
    try:
        yield json.loads(lab.stdout.readline())
    finally:
        lab.stdin.close()
        lab.wait(30)
        lab.stdout.close()


def report_of(lab: dict[str, Any], folder: Path, *more: str) -> dict[str, Any]:
    done = command("snapshot", *more, "--address", lab["gcs_address"], "--json", "-o", folder, prefix=NAMESPACE)
    assert done.returncode in (1, 3), done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_a_queue_behind_an_endless_call_is_told_by_titles_and_tables(tmp_path: Path) -> None:
    with hanging("call_behind_endless_call", closed=True) as lab:
        report = report_of(lab, tmp_path)
    closed = [g for g in report["gaps"] if g["id"] in CLOSED]
    (node,) = report["nodes"]
    assert Counter((g["id"], g["where"]) for g in closed) == {(id_, node["name"]): 1 for id_ in CLOSED}, "once per node, not per process"
    assert all(g["remedy"] for g in closed)
    assert report["verdict"]["state"] in ("hang", "unknown")
    if report["verdict"]["state"] == "unknown":
        assert report["verdict"]["next"] == closed[0]["remedy"]
    seen = {p["who"]["pid"]: p for p in report["processes"]}
    endless = seen[lab["pids"]["rollout_loop"]]
    assert endless["who"]["actor"] == "rollout_loop"
    assert endless["doing"] == "runs serve_requests"
    assert endless["state"] in ("S", "R")
    assert endless["cpu_percent"] is not None
    assert endless["stack"] == []
    snapshot = read_snapshot(tmp_path / "snapshot.json.gz")
    assert snapshot.ray is not None
    stats = next(w for w in snapshot.ray.core_workers if w.pid == lab["pids"]["rollout_loop"])
    assert (stats.queue_length, len(stats.running_task_ids)) == (1, 1)
    assert "rollout_loop  runs serve_requests, state" in (tmp_path / "report.txt").read_text()


def test_a_stopped_rank_is_told_by_its_state(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    with hanging("rank_stopped_by_operator", closed=True) as lab:
        report = report_of(lab, tmp_path)
    assert report["verdict"]["state"] == "hang"
    first = report["findings"][0]
    assert (first["cause"], [w["pid"] for w in first["who"]]) == ("process-stopped", [lab["pids"]["trainer_3"]])
    nodes = [n["name"] for n in report["nodes"]]
    assert sorted(g["where"] for g in report["gaps"] if g["id"] == gaps.STACKS_REFUSED) == sorted(nodes)


def test_agents_open_the_doors_that_are_closed_to_ourselves(tmp_path: Path) -> None:
    """Our own look is blind; the agents, started by the raylets, are not in our namespace."""
    with hanging("call_behind_endless_call", closed=False) as lab:
        blind = report_of(lab, tmp_path / "here", "--here")
        report = report_of(lab, tmp_path / "cluster")
    assert {g["id"] for g in blind["gaps"]} >= set(CLOSED)
    assert all("namespace" in g["remedy"] for g in blind["gaps"] if g["id"] in CLOSED)
    assert not {g["id"] for g in report["gaps"]} & set(CLOSED)
    assert report["verdict"]["state"] == "hang"
    assert report["findings"][0]["who"][0]["pid"] == lab["pids"]["rollout_loop"]
