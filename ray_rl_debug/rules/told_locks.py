"""Locks of which somebody's words tell, beside stacks that show no lock: two threads that each hold what the other waits for."""

from __future__ import annotations

from ray_rl_debug.analyze.kinds_of_places import THREAD_WAITS
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.report import Cause, Certainty, Evidence, Finding
from ray_rl_debug.rules.scene import make_finding, stack_evidence


def told_of(one: Seen) -> str | None:
    """The words, of a process of which somebody says so."""
    return next((r.text for r in one.process.remarks if r.kind == "locks"), None) if one.process.remarks else None


def gone_thread(one: Seen) -> str | None:
    """The thread of which somebody says that it has ended, where another one of the process waits for some thread."""
    name = next((r.name for r in one.process.remarks if r.kind == "missing" and r.name is not None and r.name.endswith("hread")), None)
    return name if one.kind in THREAD_WAITS else None


def finding_of_gone(one: Seen, name: str, rule: tuple[str, str, Cause]) -> Finding:
    """What they say of it, as the finding of a rule."""
    said = next(r for r in one.process.remarks if r.name == name)
    return make_finding(
        *rule,
        Certainty.POSSIBLE,
        f"{one.where()} {one.does()}; whoever wrote this says of its {name} that it has ended: nobody is left who would end that wait",
        who=[one.who()],
        evidence=[stack_evidence(one), Evidence(kind="log", where=one.where(), text=said.text[:300])],
        remedy=["read the error of that thread: it is the first failure", "let a thread hand its error on, and give queues and waits a time limit"],
        phase=one.phase,
    )


def finding_of(one: Seen, text: str, rule: tuple[str, str, Cause]) -> Finding:
    """What they say, as the finding of a rule."""
    return make_finding(
        *rule,
        Certainty.POSSIBLE,
        f"{one.where()} {one.does()}, and whoever wrote this says of its locks that they are taken in two orders",
        who=[one.who()],
        evidence=[
            *(stack_evidence(one, thread=t) for t in one.threads[:4] if t.frames),
            Evidence(kind="log", where=one.where(), text=text),
        ],
        remedy=["take the two locks in the same order everywhere", "release the one before waiting for the other; give acquires a time limit"],
        phase=one.phase,
    )
