"""How fast a run goes, as its companion has learned: no answer that it had to wait for ever took longer than its longest step."""

from __future__ import annotations

import msgspec

from ray_rl_debug.analyze.limits import RARE_CALL_S
from ray_rl_debug.analyze.pauses import ANSWER_S
from ray_rl_debug.model.snapshot import Snapshot

LONGEST_STEP = "longest_step_s"
"""Option of a snapshot: the longest of the last steps, in seconds."""
STEPS = 2.5
"""So many of the longest steps is more than any answer takes,"""
FLOOR_S = 10.0
"""and at least this long."""


def with_pace(snapshot: Snapshot, longest_step_s: float | None) -> Snapshot:
    """The snapshot with what its companion knows of the run; None where it knows too little."""
    if longest_step_s is None:
        return snapshot
    return msgspec.structs.replace(snapshot, options={**snapshot.options, LONGEST_STEP: longest_step_s})


def answer_s(snapshot: Snapshot) -> float:
    """For how many seconds an answer of a service may be awaited: a quarter of an hour, or at most a minute where the run's steps are known."""
    step_s = snapshot.options.get(LONGEST_STEP)
    return min(ANSWER_S, max(FLOOR_S, STEPS * float(step_s))) if isinstance(step_s, int | float) else RARE_CALL_S


def still_in_time(snapshot: Snapshot, quiet_s: float) -> str | None:
    """Why a service that has been quiet for so long may still answer, in words; None where no answer takes so long."""
    most_s = answer_s(snapshot)
    return f"quiet for {quiet_s:.0f} s, and an answer may take {most_s:.0f} s" if quiet_s < most_s else None
