"""Event loops that sleep although a coroutine of theirs could go on."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, Report, State
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame

LOOP = "EpollSelector.select@selectors.py:468 _run_once@asyncio/base_events.py:1884 run_forever@asyncio/base_events.py:607 main@/job/t.py:53"


def told(*, stable: bool = True, slices: int = 6, wakes_in_s: float | None = None, kind: str = "ready") -> Report:
    stacks = Stacks()
    chain = (AwaitFrame(function="train", file="/job/t.py", line=47),)
    task = AsyncTask(address=1, name="Task-1", chain=chain, awaited=Awaited(kind=kind), stable=stable, tid=20)
    main = process(stacks, 10, "python m.py", "main@/job/m.py:71", kind="named", ppid=1, wchan="do_wait", syscall=61, arg0=20)
    one = process(stacks, 20, "python t.py", LOOP, kind="child", wchan="do_epoll_wait", async_tasks=(task,))
    thread = replace(one.threads[0], call="epoll_wait", run_slices=slices, wakes_in_s=wakes_in_s)
    return diagnose(snapshot(stacks.node([main, replace(one, threads=(thread,))])))


def test_a_future_that_another_thread_completed_wakes_no_loop() -> None:
    report = told()
    first = report.findings[0]
    assert (report.verdict.state, first.id, first.cause, [w.pid for w in first.who]) == (State.HANG, "RRD201", Cause.ASYNCIO_STUCK, [20])
    assert "that could go on" in first.summary


@pytest.mark.parametrize("more", [{"stable": False}, {"slices": 60}, {"wakes_in_s": 3.0}, {"kind": "future"}])
def test_it_is_none_otherwise(more: dict[str, object]) -> None:
    """It went on between the reads, its loop turned, a timer wakes the loop, or nothing has come."""
    assert not any("that could go on" in f.summary for f in told(**more).findings)  # type: ignore[arg-type]
