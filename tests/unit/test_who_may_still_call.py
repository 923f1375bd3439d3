"""Waits that somebody may still end by a call, and calls in one pause, from recorded runs with one fact changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Certainty, Report, State
from ray_rl_debug.model.snapshot import CoreWorker, Process, RayState, RayTask, Snapshot

RECORDED = Path(__file__).parents[1] / "kinds" / "recorded"


def recorded(name: str) -> Snapshot:
    snapshot = load((RECORDED / f"{name}.json.gz",)).snapshot
    assert snapshot is not None
    return snapshot


def with_tables(snapshot: Snapshot, change: Callable[[RayState], RayState]) -> Snapshot:
    assert snapshot.ray is not None
    return msgspec.structs.replace(snapshot, ray=change(snapshot.ray))


def with_processes(snapshot: Snapshot, change: Callable[[Process], Process]) -> Snapshot:
    (node,) = snapshot.nodes
    return msgspec.structs.replace(snapshot, nodes=(msgspec.structs.replace(node, processes=tuple(map(change, node.processes))),))


def accused(report: Report) -> set[str]:
    return {w.label for f in report.findings if f.certainty is not Certainty.POSSIBLE for w in f.who}


def test_a_rank_that_had_as_many_calls_as_its_fellows_has_returned_too_early() -> None:
    snapshot = recorded("dispatched_to_some-healthy")
    assert snapshot.ray is not None
    most = max(w.executed_tasks or 0 for w in snapshot.ray.core_workers)

    def returned(worker: CoreWorker) -> CoreWorker:
        is_rank = worker.kind == "WORKER" and not worker.running_task_ids
        return msgspec.structs.replace(worker, executed_tasks=most, executed_tasks_before=most) if is_rank else worker

    changed = with_tables(snapshot, lambda r: msgspec.structs.replace(r, core_workers=tuple(map(returned, r.core_workers))))
    assert not accused(diagnose(snapshot))
    assert accused(diagnose(changed)) == {"Rank/3"}


def test_a_group_whose_holder_is_not_known_never_comes() -> None:
    snapshot = recorded("groups_of_trials-healthy")
    changed = with_tables(
        snapshot,
        lambda r: msgspec.structs.replace(r, placement_groups=tuple(msgspec.structs.replace(g, creator_actor_id=None) for g in r.placement_groups)),
    )
    assert not accused(diagnose(snapshot))
    assert diagnose(changed).verdict.state is State.HANG


def test_who_made_the_calls_so_far_is_named_alone() -> None:
    snapshot = recorded("paused_after_disk-hang")
    changed = with_tables(snapshot, lambda r: msgspec.structs.replace(r, history=tuple(msgspec.structs.replace(h, callers=None) for h in r.history)))
    assert accused(diagnose(snapshot)) == {"driver"}
    assert accused(diagnose(changed)) == {"driver", "Rollout"}


@pytest.mark.parametrize(("wakes_in_s", "named"), [(900.0, {"Sandbox"}), (None, set())], ids=["it ends late", "its end was not read"])
def test_a_long_pause_is_overdue_where_its_end_is_known(wakes_in_s: float | None, named: set[str]) -> None:
    def older(task: RayTask) -> RayTask:
        return msgspec.structs.replace(task, state_times_s={state: at_s - 6.0 for state, at_s in task.state_times_s.items()})

    snapshot = with_tables(recorded("pending_in_pool-healthy"), lambda r: msgspec.structs.replace(r, tasks=tuple(map(older, r.tasks))))

    def untold(process: Process) -> Process:
        return msgspec.structs.replace(process, threads=tuple(msgspec.structs.replace(t, wakes_in_s=wakes_in_s) for t in process.threads))

    assert not accused(diagnose(snapshot))
    assert accused(diagnose(with_processes(snapshot, untold))) == named


def test_a_driver_whose_queue_a_call_may_still_feed_is_not_stuck() -> None:
    assert accused(diagnose(recorded("makers_of_driver-hang"))) == {"driver"}
    assert not accused(diagnose(recorded("makers_of_driver-healthy")))
