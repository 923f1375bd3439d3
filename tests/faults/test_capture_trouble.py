"""Captures of a cluster that does not help: nothing comes through Ray, what comes is damaged, the disk is full, the GCS is stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from integration.clusters import ENVIRONMENT, cluster, command, processes_titled, program

from ray_rl_debug.capture.cluster import Capture, ClusterOptions
from ray_rl_debug.cluster.driver_handle import Driver
from ray_rl_debug.cluster.driver_messages import Facts, Gather, Lost, Message
from ray_rl_debug.collect.discover import find_raylets_by_node
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.model import codec, gaps
from ray_rl_debug.model.snapshot import Node, Snapshot

pytestmark = pytest.mark.integration

QUICK = CollectOptions(samples=2, interval_s=0.2)


@pytest.fixture(scope="module")
def running() -> Iterator[dict[str, Any]]:
    """Two raylets; the captures are told that the second one runs elsewhere."""
    with cluster(2) as c, program("job_program.py", c["address"], "Stage", 4) as job:
        raylets = {pid: node_id for node_id, pid in find_raylets_by_node().items()}
        yield {**c, **job, "head": raylets[c["raylets"][0]], "far": raylets[c["raylets"][1]]}


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


class Scripted(Driver):
    """In the place of our Ray driver: says what a test lets it say, when the order to gather has come."""

    def __init__(self, *says: Message) -> None:
        self._says = list(says)
        self.order_given: Gather | None = None

    pid = None
    asks_actors = False

    def __enter__(self) -> Scripted:
        return self

    def connect(self, address: str, namespace: str, *, use_token: bool) -> None:
        return None

    def order(self, order: Any) -> None:
        self.order_given = order

    def halt(self) -> None:
        return None

    def leave(self) -> None:
        return None

    def receive(self, timeout_s: float) -> Message | None:
        if self._says:
            return self._says.pop(0)
        threading.Event().wait(timeout_s)
        return None


def capture(running: dict[str, Any], driver: Driver | None = None, timeout_s: float = 30.0) -> tuple[Snapshot, float]:
    """A snapshot taken on the head's machine, and how long it took."""
    options = ClusterOptions(address=running["address"], collect=QUICK, timeout_s=timeout_s)
    began = time.monotonic()
    here = {running["head"]: running["raylets"][0]}
    taken = Capture(options, lambda _: None, threading.Event(), here=lambda: here).run(driver)
    return taken, time.monotonic() - began


def seen(snapshot: Snapshot) -> dict[str | None, set[int]]:
    return {n.node_id: {p.pid for p in n.processes if len(p.samples) == 2} for n in snapshot.nodes}


def agents_of(raylet: int) -> set[int]:
    return {pid for pid in processes_titled("ray::RayRlDebugAgent") if psutil.pid_exists(pid) and psutil.Process(pid).ppid() == raylet}


def gap_of(snapshot: Snapshot, kind: str) -> list[str]:
    return [g.reason for g in snapshot.gaps if g.id == kind]


def test_this_machine_is_looked_at_without_an_agent(running: dict[str, Any]) -> None:
    """Nothing is wrong: one node is this machine, the other is far.

    No worker is started on this machine, both nodes are whole, and their windows begin together.
    """
    started: set[int] = set()
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.05):
            started.update(agents_of(running["raylets"][0]))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        snapshot, _ = capture(running)
    finally:
        stop.set()
        thread.join()
    assert not started
    found = seen(snapshot)
    assert set(found) == {running["head"], running["far"]}
    assert {running["driver"], *running["pids"]} <= found[running["head"]] | found[running["far"]]
    assert not gap_of(snapshot, gaps.NODE_SILENT) + gap_of(snapshot, gaps.AGENT_SILENT)
    assert len(snapshot.clocks) >= 2
    first = {n.node_id: n.started_time_s for n in snapshot.nodes}
    assert abs(first[running["head"]] - first[running["far"]]) < 3.0


def test_nothing_comes_through_ray(running: dict[str, Any]) -> None:
    """Our Ray driver says nothing at all, as when the object store is full and a spill worker hangs.

    This machine is in the snapshot, in time, and the far node's gap says what to type there.
    """
    driver = Scripted()
    snapshot, took = capture(running, driver, timeout_s=12.0)
    assert took < 15.0
    assert driver.order_given is not None
    assert [s.node_id for s in driver.order_given.agent_nodes] == [running["far"]]
    assert running["driver"] in seen(snapshot)[running["head"]]
    (gap,) = [g for g in snapshot.gaps if g.id == gaps.NODE_SILENT]
    assert "snapshot --here" in (gap.remedy or "")


SRUN = """#!/bin/sh
# in the place of Slurm: one task on the node that is asked for, which is this machine
while [ "${1#--}" != "$1" ]; do
  case "$1" in --nodelist=*) SLURMD_NODENAME="${1#--nodelist=}"; export SLURMD_NODENAME;; esac
  echo "$1" >> "$0.log"; shift
done
exec "$@"
"""


def test_far_node_is_asked_by_slurm(running: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes through Ray from a far node of a cluster that runs in a Slurm job.

    A step of the job beside what runs there looks at it, before the deadline.
    """
    (tmp_path / "srun").write_text(SRUN)
    (tmp_path / "srun").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    snapshot, took = capture(running, Scripted(), timeout_s=60.0)
    assert took < 63.0
    assert set(seen(snapshot)) == {running["head"], running["far"]}
    assert set(running["pids"]) <= set().union(*seen(snapshot).values())
    assert any("by a step of the Slurm job" in reason for reason in gap_of(snapshot, gaps.AGENT_SILENT))
    said = (tmp_path / "srun.log").read_text().split()
    assert {"--jobid=77", "--overlap", "--nodes=1"} <= set(said)


@pytest.mark.parametrize("data", [b"", b"{}", b"\x1f\x8b garbage", b"[" * 100_000, b'{"name": "\xff"}', b"\x1f\x8b" + bytes(10_000)])
def test_damaged_facts_of_one_node(running: dict[str, Any], data: bytes) -> None:
    """What one node hands over is damaged: empty, cut off, no gzip, not UTF-8, nested without end.

    That node is told as lost with the reason, and the others are whole.
    """
    snapshot, took = capture(running, Scripted(Facts(running["far"], data)), timeout_s=12.0)
    assert took < 12.0
    assert running["driver"] in seen(snapshot)[running["head"]]
    assert "came damaged" in gap_of(snapshot, gaps.NODE_SILENT)[0]


def test_a_node_that_says_it_is_another(running: dict[str, Any]) -> None:
    """A far node gives facts in the name of this machine.

    They stand under its own name, and this machine's are its own.
    """
    lie = Node(name="elsewhere", node_id=running["head"], ip="10.0.0.9", started_time_s=1.0, window_s=0.2)
    snapshot, _ = capture(running, Scripted(Facts(running["far"], codec.encode_compressed(lie)), Lost("not a node", "?")), timeout_s=12.0)
    by_id = {n.node_id: n for n in snapshot.nodes}
    assert not by_id[running["far"]].processes
    assert by_id[running["far"]].name != by_id[running["head"]].name
    assert running["driver"] in {p.pid for p in by_id[running["head"]].processes}


def test_a_disk_that_takes_no_byte(running: dict[str, Any]) -> None:
    """No file can be written anywhere: not the one for our driver's last words, nor Ray's own logs.

    The report comes on standard output, with the processes of this machine.
    """
    if shutil.which("prlimit") is None:
        pytest.skip("needs prlimit")
    done = command("snapshot", "--address", running["address"], "--samples", 2, "--timeout", 25, "--json", prefix=("prlimit", "--fsize=0", "--"))
    assert done.returncode in (0, 1, 3), done.stderr
    report = json.loads(done.stdout)
    assert report["schema"] == "rayrl-debug/report/1"
    assert sum(n["stacks"] or 0 for n in report["nodes"]) >= len(running["pids"])


def test_stopped_gcs(running: dict[str, Any], tmp_path: Path) -> None:
    """The GCS is stopped: it takes connections and does not answer.

    This machine is looked at all the same, and the report says what is missing.
    """
    (gcs,) = [p.pid for p in psutil.Process(running["raylets"][0]).parent().children() if p.name() == "gcs_server"]
    os.kill(gcs, signal.SIGSTOP)
    try:
        done = command("snapshot", "--address", running["address"], "--samples", 2, "--timeout", 18, "-o", tmp_path)
    finally:
        os.kill(gcs, signal.SIGCONT)
    assert done.returncode in (0, 1, 3), done.stderr
    snapshot = codec.read_snapshot(tmp_path / "snapshot.json.gz")
    assert set(running["pids"]) <= set().union(*seen(snapshot).values())
    assert {gaps.RAY_TABLES, gaps.NODE_SILENT} <= {g.id for g in snapshot.gaps}
