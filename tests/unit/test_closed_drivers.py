"""Drivers that wait for threads of their own while all actors are idle, from a recorded run with one fact changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import State
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, OwnedTask, Process, Snapshot, Socket

RECORDED = Path(__file__).parents[1] / "kinds" / "recorded" / "threads_of_driver-hang.json.gz"


def recorded() -> Snapshot:
    snapshot = load((RECORDED,)).snapshot
    assert snapshot is not None
    return snapshot


def with_driver(snapshot: Snapshot, change: Callable[[Process], Process]) -> Snapshot:
    (node,) = snapshot.nodes
    processes = tuple(change(p) if p.kind == "driver" else p for p in node.processes)
    return msgspec.structs.replace(snapshot, nodes=(msgspec.structs.replace(node, processes=processes),))


def connected(process: Process) -> Process:
    socket = Socket(fd=40, family="tcp", state="ESTABLISHED", local="127.0.0.1:5000", remote="127.0.0.1:5001", inode=1)
    return msgspec.structs.replace(process, sockets=(*(process.sockets or ()), socket))


def on_loop(process: Process) -> Process:
    chain = (AwaitFrame(function="watch_files", file="/srv/train.py", line=3),)
    task = AsyncTask(name="Task-1", address=1, chain=chain, awaited=Awaited(kind="sleep", delay_s=1.0), stable=True)
    return msgspec.structs.replace(process, async_tasks=(task,))


def same(process: Process) -> Process:
    return process


@pytest.mark.parametrize(
    ("change", "state"),
    [(same, State.HANG), (connected, State.HEALTHY), (on_loop, State.HEALTHY)],
    ids=["all of its threads wait", "a connection may bring something", "its loop goes on"],
)
def test_threads_of_a_driver_that_wait_for_each_other(change: Callable[[Process], Process], state: State) -> None:
    report = diagnose(with_driver(recorded(), change))
    assert report.verdict.state is state
    assert {w.label for f in report.findings for w in f.who} == ({"driver"} if state is State.HANG else set())


def test_a_call_under_way_may_go_on_for_them() -> None:
    snapshot = recorded()
    assert snapshot.ray is not None
    call = OwnedTask(task_id="ab" * 24, name="Rollout.play")
    workers = tuple(msgspec.structs.replace(w, owned=(call,)) if w.kind == "DRIVER" else w for w in snapshot.ray.core_workers)
    report = diagnose(msgspec.structs.replace(snapshot, ray=msgspec.structs.replace(snapshot.ray, core_workers=workers)))
    assert not report.findings
