"""Threads of one process that have the locks they wait for, in words: which lock each took where, and where it wants the next one."""

from __future__ import annotations

from collections.abc import Sequence

from ray_rl_debug.analyze.held_locks import Lock, keeping, taking, wanted
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.report import Cause, Certainty, Finding
from ray_rl_debug.model.snapshot import Frame
from ray_rl_debug.rules.scene import Scene, make_finding, proc_evidence, stack_evidence

_ONE_ORDER = ["take the locks in the same order everywhere", "release the one before waiting for the other; give acquires a time limit"]
_NOT_TWICE = [
    "take no lock in a signal handler: set a flag there, and act on it between two steps",
    "elsewhere use threading.RLock, or let the inner function expect that its caller has the lock",
]


def finding_of_ring(scene: Scene, one: Seen, ring: Sequence[SeenThread], rule: tuple[str, str, Cause]) -> Finding:
    """What a rule says of such a process. `ring`: each thread wants the lock that the next one has."""
    summary = _of_one(one, ring[0]) if len(ring) == 1 else _of_several(one, ring)
    return make_finding(
        *rule,
        Certainty.LIKELY,
        summary,
        who=[one.who()],
        evidence=[*(stack_evidence(one, thread=t) for t in ring[:4]), proc_evidence(one, scene.reason(one))],
        remedy=_NOT_TWICE if len(ring) == 1 else _ONE_ORDER,
        phase=one.phase,
    )


def _of_one(one: Seen, thread: SeenThread) -> str:
    lock, at = wanted(thread), taking(thread)
    held = keeping(thread, lock) if lock is not None else None
    assert lock is not None
    return f"{one.where()} waits for the lock {lock[1]} in {_place(at)}, and has that lock itself: it took it in {_place(held)}"


def _of_several(one: Seen, ring: Sequence[SeenThread]) -> str:
    told = [_link(thread, wanted(before)) for before, thread in zip((ring[-1], *ring), ring, strict=False)]
    return f"threads of {one.where()} wait for each other's locks: {', '.join(told)}"


def _link(thread: SeenThread, has: Lock | None) -> str:
    wants = wanted(thread)
    assert has is not None
    assert wants is not None
    return f"{thread.called} has {has[1]} in {_place(keeping(thread, has))} and wants {wants[1]} in {_place(taking(thread))}"


def _place(frame: Frame | None) -> str:
    if frame is None:
        return "a place that was not read"
    line = f":{frame.line}" if frame.line else ""
    return f"{frame.function} ({frame.file.rsplit('/', 1)[-1]}{line})"
