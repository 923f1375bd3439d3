"""Why an actor is dead, in a few words, and how a process ended. Ray's own sentence lists guesses that hide what is known."""

from __future__ import annotations

import re

from ray_rl_debug.model.snapshot import RayActor

_DETAIL = re.compile(r"Worker exit detail: (?P<detail>.*?)(?= Some common causes include|$)", re.DOTALL)
_MOST = 160


def how_dead(actor: RayActor) -> str:
    """``its process vanished (connection error code 2)``; Ray's words, shortened, where they are not among those we know."""
    told = " ".join((actor.death or "").split())
    if not told:
        return actor.death_kind or "unknown why"
    found = _DETAIL.search(told)
    detail = (found["detail"] if found else told).strip().rstrip(".")
    lost = re.search(r"unexpectedly exits with a connection error code (\d+)", detail)
    if lost:
        # Ray only sees the socket close: a kill, a crash and the OOM killer look the same from there.
        return f"its process vanished: killed, crashed or out of memory (connection error code {lost[1]})"
    return detail if len(detail) <= _MOST else f"{detail[: _MOST - 1]}…"


def how_ended(exit_code: int | None) -> str:
    """`` with status 1`` or ``, killed by signal 9``, behind *it has ended*; empty where the code is not known."""
    return "" if exit_code is None else f" with status {exit_code}" if exit_code >= 0 else f", killed by signal {-exit_code}"
