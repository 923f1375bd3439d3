"""A thread that has ended, where the other programs of its kind wait in theirs."""

from __future__ import annotations

import msgspec
import pytest

from ray_rl_debug.analyze.lost_threads import lost_caller
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View, build_view
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, State
from ray_rl_debug.model.snapshot import SemaphoreUse, SharedSemaphore
from tests.unit.scenes import Stacks, actor, process, ray_state, snapshot

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


IDLES = "main_loop@ray/_private/worker.py:1069"
BEATS = f"beats@/job/ranks.py:43 {START}"
CALL = f"update@/job/ranks.py:50 actor_method_executor@ray/_private/function_manager.py:698 {START}"


def ranks(thread: str, *own: str, fellows: int = 2) -> tuple[View, Seen]:
    """Actors of a class, each with a thread but for the first one, which has its `own`."""
    stacks = Stacks()
    made = [process(stacks, 20 + n, "ray::Rank", IDLES, extra_threads=[("other", t) for t in ((thread,) if n else own)]) for n in range(fellows + 1)]
    view = build_view(snapshot(stacks.node(made), ray_state(actors=[actor(n, "Rank", 20 + n) for n in range(fellows + 1)])))
    return view, view.seen["node1/20"]


@pytest.mark.parametrize(
    ("thread", "own", "fellows", "function"),
    [(BEATS, (), 2, "beats"), (BEATS, (BEATS,), 2, None), (CALL, (), 2, None), (BEATS, (), 1, None)],
    ids=["it has ended", "it is there", "a call of Ray", "one fellow shows nothing"],
)
def test_an_actor_lacks_the_thread_of_all_its_fellows(thread: str, own: tuple[str, ...], fellows: int, function: str | None) -> None:
    lost = lost_caller(*ranks(thread, *own, fellows=fellows))
    assert (lost.function if lost is not None else None) == function


def test_a_thread_of_an_earlier_look_has_not_ended_for_sure() -> None:
    view, one = ranks(BEATS)
    first, *rest = one.process.samples
    earlier = msgspec.structs.replace(first, threads=(*first.threads, msgspec.structs.replace(first.threads[0], tid=99)))
    one = msgspec.structs.replace(one, process=msgspec.structs.replace(one.process, samples=(earlier, *rest)))
    assert lost_caller(view, one) is None
