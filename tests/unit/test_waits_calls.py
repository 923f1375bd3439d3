"""Actors that only keep what calls bring, from recorded runs with one fact changed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Certainty, Report
from ray_rl_debug.model.snapshot import AsyncTask, AwaitFrame, Process, Snapshot

RECORDED = Path(__file__).parents[1] / "kinds" / "recorded"


def recorded(name: str) -> Snapshot:
    snapshot = load((RECORDED / f"{name}.json.gz",)).snapshot
    assert snapshot is not None
    return snapshot


def with_process(snapshot: Snapshot, process: Process) -> Snapshot:
    (node,) = snapshot.nodes
    others = tuple(process if p.pid == process.pid else p for p in node.processes)
    return msgspec.structs.replace(snapshot, nodes=(msgspec.structs.replace(node, processes=others),))


def keeper(snapshot: Snapshot, name: str) -> Process:
    return next(p for p in snapshot.nodes[0].processes if name in p.title)


def named(report: Report) -> set[str]:
    return {w.label for f in report.findings if f.certainty is not Certainty.POSSIBLE for w in f.who}


def test_those_who_wait_at_a_mailbox_wait_for_each_other() -> None:
    assert named(diagnose(recorded("debates_in_pool-hang"))) == {"driver", "Player"}


def test_a_task_of_its_own_may_be_what_the_calls_wait_for() -> None:
    snapshot = recorded("debates_in_pool-hang")
    mailbox = keeper(snapshot, "Mailbox")
    assert mailbox.async_tasks
    call = mailbox.async_tasks[0]
    own = AsyncTask(
        name="deliver", address=1, chain=(AwaitFrame(function="Mailbox.deliver", file="/srv/mail.py", line=3),), awaited=call.awaited, stable=True
    )
    changed = with_process(snapshot, msgspec.structs.replace(mailbox, async_tasks=(*mailbox.async_tasks, own)))
    assert named(diagnose(changed)).isdisjoint({"driver", "Player"})


def test_without_other_methods_nothing_tells_that_others_should_call() -> None:
    snapshot = recorded("debates_in_pool-hang")
    assert snapshot.ray is not None
    history = tuple(h for h in snapshot.ray.history if h.name != "Mailbox.put")
    changed = msgspec.structs.replace(snapshot, ray=msgspec.structs.replace(snapshot.ray, history=history))
    assert named(diagnose(changed)).isdisjoint({"driver", "Player"})


def test_a_client_that_is_idle_may_have_left_the_call_out() -> None:
    report = diagnose(recorded("some_of_rollouts-hang"))
    assert not named(report)
    assert report.findings[0].id == "RRD401"


def test_a_permit_that_one_call_takes_another_may_give_back() -> None:
    healthy = diagnose(recorded("streams_in_order-healthy"))
    assert not named(healthy)
    assert healthy.verdict.state.value == "slow"


def test_with_async_with_the_coroutine_that_took_a_permit_has_to_give_it_back() -> None:
    snapshot = recorded("streams_in_order-healthy")
    licences = keeper(snapshot, "Licences")
    assert licences.async_tasks
    (call,) = licences.async_tasks
    entered = AwaitFrame(function="_ContextManagerMixin.__aenter__", file="asyncio/locks.py", line=14)
    inside = msgspec.structs.replace(call, chain=(*call.chain[:-1], entered, call.chain[-1]))
    changed = with_process(snapshot, msgspec.structs.replace(licences, async_tasks=(inside,)))
    assert named(diagnose(changed)) == {"Licences"}


def test_who_still_wants_a_permit_has_none_to_give_back() -> None:
    assert named(diagnose(recorded("permits_of_rollouts-hang"))) == {"Permits"}


@pytest.mark.parametrize(
    ("state", "sure"),
    [(None, {"driver"}), ("PENDING_NODE_ASSIGNMENT", set()), ("RUNNING", set())],
    ids=["all have ended", "it is not begun", "its process was not seen"],
)
def test_a_plain_task_that_has_not_ended_may_still_call(state: str | None, sure: set[str]) -> None:
    snapshot = recorded("signal_of_evaluation-hang")
    assert snapshot.ray is not None
    (driver,) = [t for t in snapshot.ray.tasks if t.kind == "DRIVER_TASK"]
    evaluate = msgspec.structs.replace(driver, task_id="ab" * 24, name="evaluate", kind="NORMAL_TASK", state=state or "", state_times_s={})
    tasks = (*snapshot.ray.tasks, evaluate) if state else snapshot.ray.tasks
    assert named(diagnose(msgspec.structs.replace(snapshot, ray=msgspec.structs.replace(snapshot.ray, tasks=tasks)))) == sure
