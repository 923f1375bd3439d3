"""Who waits for a signal is no root for good while somebody beside it goes on, who may send it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, State

WAIT, SLEEP, PAUSE, SIGTIMEDWAIT, SIGSUSPEND = 61, 230, 34, 128, 130


@pytest.mark.parametrize(("wakes_in_s", "state"), [(20.0, State.SLOW), (None, State.HANG)], ids=["a clock runs", "nobody is left"])
@pytest.mark.parametrize("call", [PAUSE, SIGTIMEDWAIT, SIGSUSPEND])
def test_a_signal_may_come_from_whoever_goes_on(call: int, wakes_in_s: float | None, state: State) -> None:
    """Its launcher waits for its end, and a program beside it sends the signals."""
    stacks = Stacks()
    driver = process(stacks, 10, "python run.py", "main@/job/run.py:20", kind="named", ppid=1, wchan="do_wait", syscall=WAIT, arg0=20)
    worker = process(stacks, 20, "python worker.py", "work@/job/worker.py:7", kind="child", ppid=10, wchan="do_sigtimedwait", syscall=call)
    kicks = process(stacks, 30, "python kick.py", "kick@/job/kick.py:7", kind="child", ppid=10, wchan="hrtimer_nanosleep", syscall=SLEEP)
    kicks = replace(kicks, threads=(replace(kicks.threads[0], wakes_in_s=wakes_in_s),))
    report = diagnose(snapshot(stacks.node([driver, worker, *([kicks] if wakes_in_s else [])])))
    assert report.verdict.state is state
    assert [w.pid for w in report.findings[0].who] == [20]
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings) is (state is State.SLOW)
