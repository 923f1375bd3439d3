"""What Ray does again: actors that it starts anew, calls that end their actor in every try, and tasks that fail in every try.

Ray tries a call again when its process has ended (``max_task_retries``), and a task that has raised (``retry_exceptions``), without a limit where
that is -1. Then the caller waits for ever, although processes start and end all the time: a new try of the same call is no progress.
"""

from __future__ import annotations

from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.snapshot import RayActor, RayTask

MANY_TRIES = 4
"""Tries of one call that ended with the process: a node or a machine that was lost costs one or two, and Ray's default for tasks is three."""
FRESH_S = 30.0
"""A restart loads the program again, and a model: so long it is no standstill."""


def tried_in_vain(view: View, actor: RayActor) -> RayTask | None:
    """The call that ended the actor's process in each of many tries and waits for the next; None where there is none."""
    if actor.state == "DEAD" or actor.restarts < MANY_TRIES:
        return None
    tried = [t for t in view.once(_retried) if t.actor_id == actor.actor_id]
    return max(tried, key=lambda t: (t.attempt, t.task_id), default=None)


def fails_again(task: RayTask | None) -> bool:
    """Is it a task without an actor that has failed in many tries, by an exception or with its process?"""
    return task is not None and task.kind == "NORMAL_TASK" and task.attempt >= MANY_TRIES and task.state != "FINISHED"


def _retried(view: View) -> list[RayTask]:
    return [t for t in view.tasks.values() if t.attempt >= MANY_TRIES and t.kind == "ACTOR_TASK"]


def words(task: RayTask) -> str:
    """``its process has ended in each of 6 tries of Engine.generate, and Ray starts it anew``."""
    if fails_again(task):
        return f"{task.name} has failed in each of {task.attempt} tries, and Ray tries it again"
    return f"its process has ended in each of {task.attempt} tries of {task.name}, and Ray starts it anew"


def restarting_s(view: View, actor: RayActor) -> float | None:
    """Seconds since a call of an actor that is or was started anew last changed its state; None where no restart is known, or no call."""
    if actor.state != "RESTARTING" and (actor.state != "ALIVE" or not actor.restarts):
        return None
    times = [max(t.state_times_s.values()) for t in view.tasks.values() if t.actor_id == actor.actor_id and t.state_times_s]
    return max(0.0, view.snapshot.taken_time_s - max(times)) if times else None
