"""A thread that has ended, where the other programs of its kind wait in theirs."""

from __future__ import annotations

import msgspec
import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, State
from ray_rl_debug.model.snapshot import SemaphoreUse, SharedSemaphore
from tests.unit.scenes import Stacks, process, snapshot

SLEEP = 230
START = "run@threading.py:982 _bootstrap_inner@threading.py:1045 _bootstrap@threading.py:1002"
CLOCK = "simulate@/job/worlds.py:35"
MEETS = f"wait@multiprocessing/synchronize.py:266 play@/job/worlds.py:26 {START}"
PLAYS = f"act@/job/worlds.py:22 play@/job/worlds.py:25 {START}"


@pytest.mark.parametrize(
    ("threads", "clock", "is_hang"), [((), CLOCK, True), ((("play", PLAYS),), CLOCK, False), ((), "record@/job/worlds.py:41", False)]
)
def test_of_three_simulators_one_has_no_thread_any_more(threads: tuple[tuple[str, str], ...], clock: str, is_hang: bool) -> None:
    """One that still has the thread, or is another program, lacks nothing."""
    stacks = Stacks()
    main = process(stacks, 10, "python worlds.py", "main@/job/worlds.py:51", kind="named", ppid=1, wchan="do_wait", syscall=61, arg0=20)
    at = {"kind": "child", "ppid": 10, "wchan": "hrtimer_nanosleep", "syscall": SLEEP}
    fellows = [process(stacks, pid, "python worlds.py", CLOCK, extra_threads=[("play", MEETS)], **at) for pid in (20, 30)]  # type: ignore[arg-type]
    one = process(stacks, 40, "python worlds.py", clock, extra_threads=threads, **at)  # type: ignore[arg-type]
    clocks = [msgspec.structs.replace(o, threads=(msgspec.structs.replace(o.threads[0], run_slices=9), *o.threads[1:])) for o in (*fellows, one)]
    uses = (SemaphoreUse(pid=20, taken=-1), SemaphoreUse(pid=30, taken=-1), SemaphoreUse(pid=40, taken=2))
    barrier = SharedSemaphore(inode=1, waiters=((20, 1020), (30, 1030)), value=0, maximum=2**31 - 1, uses=uses)
    report = diagnose(snapshot(stacks.node([main, *clocks], semaphores=(barrier,))))
    assert (report.verdict.state is State.HANG) is is_hang
    assert not is_hang or ([w.pid for w in report.findings[0].who] == [40] and report.findings[0].cause is Cause.PRODUCER_DIED)
