"""What a rule says of an event loop that sleeps although a coroutine of it could go on."""

from __future__ import annotations

from ray_rl_debug.analyze.coroutines import line_of
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.unwoken_loops import unwoken
from ray_rl_debug.model.report import Cause, Certainty, Evidence, Finding
from ray_rl_debug.rules.scene import make_finding, stack_evidence


def finding_of_unwoken(one: Seen, rule: tuple[str, str, Cause]) -> Finding | None:
    """The finding, where there is such a loop; `rule`: id, name and cause."""
    task = unwoken(one)
    if task is None:
        return None
    at = line_of(task)
    return make_finding(
        *rule,
        Certainty.LIKELY,
        f"{one.where()} has a coroutine, {task.name} at {at}, that could go on: what it awaited has come, but nobody wakes its event loop",
        who=[one.who()],
        evidence=[
            Evidence(kind="stack", where=one.identity.label, text=f"coroutine {task.name} at {at}: ready in both reads"),
            *(stack_evidence(one, thread=t) for t in one.threads if t.tid == task.tid),
        ],
        remedy=["complete a future from another thread by loop.call_soon_threadsafe(future.set_result, value), never by set_result itself"],
        phase=one.phase,
    )
