"""How long a process has been in its running Ray call, and how long calls of that name have taken so far."""

from __future__ import annotations

import msgspec

from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.snapshot import TaskHistory


class CallAge(msgspec.Struct, frozen=True, kw_only=True):
    """The running call of a process beside the finished ones of its name. Times in seconds; None where they are not known."""

    age_s: float | None
    usual_s: float | None
    """The longest finished call, without those that stand apart; None when none has finished."""
    longest_s: float
    """The longest finished call, also one that stands apart."""
    finished: int
    """Finished calls of the name."""

    @property
    def text(self) -> str:
        """``its call runs for 12 s; the longest one of that name took 0.3 s``."""
        usual = self.usual_s or 0.0
        took = f"{usual:.1f} s" if usual >= 1 else f"{1000 * usual:.0f} ms"
        apart = f", apart from a few outliers (up to {self.longest_s:.0f} s)" if self.longest_s > usual else ""
        return f"its call runs for {self.age_s or 0.0:.0f} s; the longest one of that name took {took}{apart}"


_ANY_FUNCTION = ".__ray_call__"
"""Ray's way to run any function in an actor: such calls share a name, and tell nothing of each other. Compiled graphs run so until their end."""


def _history(view: View) -> dict[str, list[TaskHistory]]:
    """Finished calls by name."""
    found: dict[str, list[TaskHistory]] = {}
    for calls in view.ray.history if view.ray is not None else ():
        found.setdefault(calls.name, []).append(calls)
    return found


def _ages(view: View) -> dict[str, CallAge]:
    """What `call_age` has told, by process: each one that waits for a rank asks for it."""
    return {}


def call_age(view: View, one: Seen) -> CallAge:
    """Both times of a running call are of the clock of the process's own node."""
    known = view.once(_ages)
    if one.key not in known:
        known[one.key] = _call_age(view, one)
    return known[one.key]


def _call_age(view: View, one: Seen) -> CallAge:
    tasks = [view.tasks[t] for t in (one.core.running_task_ids if one.core is not None else ()) if t in view.tasks]
    starts = [s for t in tasks if (s := t.state_times_s.get("RUNNING")) is not None]
    names = {t.name for t in tasks if not t.name.endswith(_ANY_FUNCTION)}
    history = [h for name in names for h in view.once(_history).get(name, ())]
    return CallAge(
        age_s=max(0.0, one.node.started_time_s + one.node.window_s - min(starts)) if starts else None,
        usual_s=max((h.longest_s if h.usual_s is None else h.usual_s for h in history), default=None),
        longest_s=max((h.longest_s for h in history), default=0.0),
        finished=sum(h.count for h in history),
    )
