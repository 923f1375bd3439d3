"""Processes of which a file says that they reported an error and ended: whose last stack is where they failed, and nobody waits any more."""

from __future__ import annotations

import re

from ray_rl_debug.analyze.kinds_of_places import WAITS_FOR_RANKS, WAITS_FOR_RAY
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.snapshot import Remark


def ended(one: Seen) -> Remark | None:
    """What was said of its end; None where it lives.

    One that failed in a wait for others (a time-out, a connection that was closed) is no reason for anybody: others failed it.
    """
    if one.kind in WAITS_FOR_RANKS or one.kind in WAITS_FOR_RAY:
        return None
    return next((r for r in one.process.remarks if _is_end(r)), None)


def _is_end(remark: Remark) -> bool:
    """Not what its user did to it, which shows where it stood; a tool that found no such process tells an end too."""
    if remark.kind == "failed":
        return not remark.text.startswith(("KeyboardInterrupt", "SystemExit"))
    return remark.kind == "unread" and _GONE.search(remark.text) is not None


_GONE = re.compile(r"\(os error [23]\)|\b(?:ENOENT|ESRCH)\b|[Nn]o such process")
