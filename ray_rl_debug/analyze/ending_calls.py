"""Ray calls that go round until another call sets their flag, while that call stands behind them."""

from __future__ import annotations

from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.snapshot import RayTask

_BEHIND = "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY"
"""What Ray calls one that has come to the actor and is not begun."""
WAITED_S = 5.0
"""One that an actor is free for is begun within fractions of a second."""


def call_behind(view: View, one: Seen) -> tuple[RayTask, float] | None:
    """The call that would end the only one that an actor runs, and for how many seconds it has stood behind that one."""
    thread, running = one.followed or one.telling, one.core.running_task_ids if one.core is not None else ()
    if thread is None or thread.place.kind is not Kind.SLEEP or thread.place.own != 0 or len(running) != 1 or one.motion is Motion.MOVING:
        return None
    ends, actor_id = thread.frames[0].ended_by, one.core.actor_id if one.core is not None else None
    beside = [t for t in one.threads if t is not thread and t.place.path and t.score > 0]
    if not ends or actor_id is None or beside:
        return None
    now_s = one.node.started_time_s + one.node.window_s
    for task in view.tasks.values():
        since_s = task.state_times_s.get(_BEHIND) if task.state == _BEHIND else None
        if task.actor_id == actor_id and since_s is not None and task.name.rpartition(".")[2] in ends and now_s - since_s >= WAITED_S:
            return task, now_s - since_s
    return None
