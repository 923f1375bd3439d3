"""Who has the lock that a thread waits for, as the source of their lines tells: a ring needs nobody else, and an owner at work is waited for."""

from __future__ import annotations

import msgspec
import pytest
from scenes import RAY_GET, Stacks, process, snapshot

from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, Certainty, Finding
from ray_rl_debug.model.snapshot import Frame, Snapshot

THREAD = "Thread.run@threading.py:982"
WORKS = f"figures@/job/train.py:90 {THREAD}"
PUBLISHES = "publish@/job/train.py:20 main@/job/train.py:80"
TIDIES = f"tidy@/job/train.py:40 {THREAD}"
SAVES = "save@/job/train.py:60 step@/job/train.py:30 main@/job/train.py:80"
WRITES = f"write@/job/train.py:50 tidy@/job/train.py:41 {THREAD}"
Known = dict[int, dict[str, object]]
"""What the source tells, by line."""
RING: Known = {20: {"wants": "table", "under": ("weights",)}, 40: {"wants": "weights", "under": ("table",)}}
TWICE: Known = {60: {"wants": "weights"}, 30: {"under": ("weights",)}}


def taken(known: Known, main: str, *others: str, at_work: tuple[str, ...] = ()) -> Snapshot:
    """A program whose main thread and other threads wait at locks, or work; nobody waits for it."""
    stacks = Stacks()
    extra = [(f"Thread-{n}", stack) for n, stack in enumerate((*others, *at_work), 1)]
    one = process(stacks, 200, "train.py", main, kind="named", wchan="futex_do_wait", syscall=202, extra_threads=extra)
    threads = []
    for thread in one.threads:
        works = thread.tid is not None and thread.tid >= 1200 + len(others)
        of_one = {"state": "R", "cpu_s": 1.5, "wchan": None, "syscall": None} if works else {"state": "S", "wchan": "futex_do_wait", "syscall": 202}
        threads.append(msgspec.structs.replace(thread, run_slices=3, **of_one))  # type: ignore[arg-type]
    node = stacks.node([msgspec.structs.replace(one, threads=tuple(threads))])
    frames = tuple(_told(f, known) for f in node.frames)
    return snapshot(msgspec.structs.replace(node, frames=frames))


def _told(frame: Frame, known: Known) -> Frame:
    return msgspec.structs.replace(frame, **known.get(frame.line or 0, {})) if frame.file.startswith("/job/") else frame  # type: ignore[arg-type]


def finding(of: Snapshot) -> Finding | None:
    return next(iter(diagnose(of).findings), None)


@pytest.mark.parametrize("at_work", [(), (WORKS,)], ids=["alone", "beside a thread that works"])
def test_threads_that_have_each_others_locks_hang(at_work: tuple[str, ...]) -> None:
    found = finding(taken(RING, PUBLISHES, TIDIES, at_work=at_work))
    assert found is not None
    assert (found.cause, found.certainty) == (Cause.LOCK_DEADLOCK, Certainty.LIKELY)
    assert "has weights in publish (train.py:20) and wants table in publish (train.py:20)" in found.summary


@pytest.mark.parametrize("at_work", [(), (WORKS,)], ids=["alone", "beside a thread that works"])
def test_who_wants_the_lock_that_it_has_itself_hangs(at_work: tuple[str, ...]) -> None:
    found = finding(taken(TWICE, SAVES, at_work=at_work))
    assert found is not None
    assert (found.cause, found.certainty) == (Cause.LOCK_DEADLOCK, Certainty.LIKELY)
    assert "waits for the lock weights in save (train.py:60), and has that lock itself: it took it in step (train.py:30)" in found.summary


def test_an_unread_source_tells_no_owner() -> None:
    for known in (RING, TWICE):
        found = finding(taken({}, PUBLISHES if known is RING else SAVES, TIDIES, at_work=(WORKS,)))
        assert found is None or found.certainty is Certainty.POSSIBLE


def test_two_objects_of_a_class_have_two_locks() -> None:
    """Another thread stands in such a block, too: which object's lock the one wants is not known."""
    of_class: Known = {60: {"wants": "Buffer.lock"}, 30: {"under": ("Buffer.lock",)}, 41: {"under": ("Buffer.lock",)}}
    found = finding(taken(of_class, SAVES, at_work=(WRITES,)))
    assert found is None or found.certainty is Certainty.POSSIBLE


def test_the_same_name_in_another_file_is_another_lock() -> None:
    elsewhere = SAVES.replace("step@/job/train.py:30", "step@/job/other.py:30")
    found = finding(taken(TWICE, elsewhere, at_work=(WORKS,)))
    assert found is None or found.certainty is Certainty.POSSIBLE


def test_the_owner_of_a_lock_is_waited_for_and_may_work() -> None:
    known: Known = {20: {"wants": "table"}, 41: {"under": ("table",)}}
    of = taken(known, PUBLISHES, at_work=(WRITES,))
    main = build_view(of).seen["node1/200"]
    assert main.followed is not None
    assert main.followed.frames[0].function == "write"
    assert finding(of) is None


def test_the_owner_of_a_lock_may_wait_for_ray_whoever_works_beside_it() -> None:
    known: Known = {20: {"wants": "table"}, 41: {"under": ("table",)}}
    owner = f"{RAY_GET} tidy@/job/train.py:41 {THREAD}"
    main = build_view(taken(known, PUBLISHES, owner, at_work=(WORKS,))).seen["node1/200"]
    assert main.followed is not None
    assert main.followed.place.path[0][0] == "tidy"
