"""Which thread is waited for inside a process. One that goes round in a function of its own hands nothing to the rest: nobody waits for it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, State
from ray_rl_debug.model.snapshot import Snapshot

SLEEP = 230
RUN = "Thread.run@threading.py:982 Thread._bootstrap_inner@threading.py:1045"
TAKES = "Condition.wait@threading.py:327 Queue.get@queue.py:171 main@app/train.py:40"
BEATS = f"beat@app/health.py:7 {RUN}"
BEATS_BELOW = f"pause@app/health.py:3 {BEATS}"
WANTS = f"save@app/train.py:12 {RUN}"


def taken(beats: str, *, apart: bool | None, beside: str | None = None) -> Snapshot:
    """A main thread at a queue, a thread that sleeps, and perhaps a third at a lock."""
    stacks = Stacks()
    threads = [("beat", beats), *([("saver", beside)] if beside else [])]
    one = process(stacks, 100, "python train.py", TAKES, kind="named", wchan="futex_do_wait", extra_threads=threads)
    one = replace(one, threads=(one.threads[0], replace(one.threads[1], wchan="hrtimer_nanosleep", syscall=SLEEP), *one.threads[2:]))
    node = stacks.node([one])
    frames = tuple(replace(f, apart=apart) if f.file == "app/health.py" else f for f in node.frames)
    return snapshot(replace(node, frames=frames))


def seen(whole: Snapshot) -> Seen:
    return build_view(whole).seen["node1/100"]


@pytest.mark.parametrize(
    ("beats", "apart", "is_apart"),
    [(BEATS, True, True), (BEATS, False, False), (BEATS, None, False), (BEATS_BELOW, True, False)],
    ids=["it hands on nothing", "it may hand something on", "its source was not read", "it sleeps in what it calls"],
)
def test_a_thread_that_hands_nothing_on(beats: str, apart: bool | None, is_apart: bool) -> None:
    one = seen(taken(beats, apart=apart))
    thread = next(t for t in one.threads if t.name == "beat")
    assert thread.is_apart is is_apart
    assert (one.followed is thread) is not is_apart


def test_another_thread_is_followed_beside_a_heartbeat() -> None:
    one = seen(taken(BEATS, apart=True, beside=WANTS))
    assert one.followed is not None
    assert one.followed.name == "saver"
    assert seen(taken(BEATS, apart=None, beside=WANTS)).followed is None  # either of the two may fill the queue


@pytest.mark.parametrize(
    ("apart", "state", "certainty"),
    [(True, State.HANG, Certainty.LIKELY), (False, State.SLOW, Certainty.POSSIBLE), (None, State.SLOW, Certainty.POSSIBLE)],
)
def test_a_queue_that_only_a_heartbeat_is_beside(apart: bool | None, state: State, certainty: Certainty) -> None:
    report = diagnose(taken(BEATS, apart=apart))
    assert report.verdict.state is state
    assert bool(report.findings) or not apart
    assert all(f.certainty is certainty for f in report.findings)
