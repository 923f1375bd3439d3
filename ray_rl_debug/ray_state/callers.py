"""Who made a call, by the id of the task in which it was made: Ray's task ids end with the id of their actor.

24 bytes: 8 of its own, 12 of the actor, 4 of the job. A driver's have nothing but ones before the job; a plain task's have ones for the actor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ray_rl_debug.model.snapshot import TASK_CALLER

DRIVER = "driver"
MAX_CALLERS = 16
"""More callers of one method tell nobody who should call next."""
_TASK_HEX, _ACTOR_HEX, _JOB_HEX = 48, 32, 8


def caller_of(parent_task_id: str) -> str | None:
    """The id of an actor, or ``driver``; None for a plain task and what is no task id."""
    if len(parent_task_id) != _TASK_HEX:
        return None
    own, actor_id = parent_task_id[:-_ACTOR_HEX], parent_task_id[-_ACTOR_HEX:]
    if set(actor_id[:-_JOB_HEX]) != {"f"}:
        return actor_id
    return DRIVER if set(own) == {"f"} and set(actor_id[-_JOB_HEX:]) != {"f"} else None


def callers_of(parent_task_ids: Iterable[str], tasks: Mapping[str, str]) -> tuple[str, ...] | None:
    """Of all calls of one name, plain tasks by their function, `tasks` being the names of tasks by id; None where one of them is not known, or
    where they are many.
    """
    found = {caller_of(p) or (f"{TASK_CALLER}{tasks[p]}" if tasks.get(p) else None) for p in parent_task_ids}
    known = sorted(c for c in found if c is not None)
    return tuple(known) if known and None not in found and len(known) <= MAX_CALLERS else None
