"""Actors that wait for a call that nobody is left to make, from a recorded run with one fact changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model import gaps
from ray_rl_debug.model.report import State
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, Gap, Process, RayActor, Snapshot, Socket

RECORDED = Path(__file__).parents[1] / "kinds" / "recorded" / "engine_of_old_handle-hang.json.gz"


def recorded() -> Snapshot:
    snapshot = load((RECORDED,)).snapshot
    assert snapshot is not None
    return snapshot


def with_process(title: str, change: Callable[[Process], Process]) -> Snapshot:
    snapshot = recorded()
    (node,) = snapshot.nodes
    assert any(title in p.title for p in node.processes)
    processes = tuple(change(p) if title in p.title else p for p in node.processes)
    return msgspec.structs.replace(snapshot, nodes=(msgspec.structs.replace(node, processes=processes),))


def pauses(process: Process) -> Process:
    chain = (AwaitFrame(function="look_after_engines", file="/srv/train.py", line=3),)
    task = AsyncTask(name="Task-1", address=1, chain=chain, awaited=Awaited(kind="sleep", delay_s=30.0), stable=True)
    return msgspec.structs.replace(process, async_tasks=(task,))


def listens(process: Process) -> Process:
    socket = Socket(fd=40, family="tcp", state="LISTEN", local="127.0.0.1:8000", inode=1)
    return msgspec.structs.replace(process, sockets=(*(process.sockets or ()), socket))


def unseen(snapshot: Snapshot) -> Snapshot:
    assert snapshot.ray is not None
    other = RayActor(actor_id="ab" * 16, job_id="01000000", class_name="Supervisor", state="ALIVE")
    return msgspec.structs.replace(snapshot, ray=msgspec.structs.replace(snapshot.ray, actors=(*snapshot.ray.actors, other)))


def silent(snapshot: Snapshot) -> Snapshot:
    return msgspec.structs.replace(snapshot, gaps=(*snapshot.gaps, Gap(id=gaps.NODE_SILENT, where="node2", what="its facts", reason="no answer")))


def test_where_all_others_wait_for_it_or_are_idle_it_hangs() -> None:
    report = diagnose(recorded())
    assert report.verdict.state is State.HANG
    assert {w.label for w in report.findings[0].who} == {"Engine"}


@pytest.mark.parametrize(
    "snapshot",
    [
        with_process("ray::Registry", listens),
        with_process("ray::Registry", pauses),
        with_process("ray::Rollout", pauses),
        unseen(recorded()),
        silent(recorded()),
    ],
    ids=["one serves others", "a coroutine of an idle one pauses", "so does one of a waiter", "an actor was not seen", "nor a node"],
)
def test_whoever_may_call_by_itself_leaves_it_open(snapshot: Snapshot) -> None:
    assert diagnose(snapshot).verdict.state is not State.HANG
