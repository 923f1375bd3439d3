"""Locks of which somebody's words tell, beside stacks that show no lock: two threads that each hold what the other waits for."""

from __future__ import annotations

from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.report import Cause, Certainty, Evidence, Finding
from ray_rl_debug.rules.scene import make_finding, stack_evidence


def told_of(one: Seen) -> str | None:
    """The words, of a process of which somebody says so."""
    return next((r.text for r in one.process.remarks if r.kind == "locks"), None) if one.process.remarks else None


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
