"""Who submitted a Ray task, and its times in one clock.

Ray takes a task's times in two processes: the owner notes the submission and the end, the executor the beginning. On two nodes these are two
clocks; their difference, not the task, would then decide how long it seems to run or to queue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ray_rl_debug.ray_state.task_events import TaskEvent, TaskEvents

Key: TypeAlias = "tuple[str | None, int | None]"
"""Any name of the node, and the process id."""
ToReference: TypeAlias = Callable[["str | None", int], int]
"""Any name of a node, a moment of its wall clock → the same moment in the reference clock."""
OUR_CLASS = "RayRlDebugAgent"


def is_ours(event: TaskEvent) -> bool:
    """Is it a call to an agent of ours? Ray puts the name of a named actor before the class: ``rayrl_debug_0.1.0_ab12:RayRlDebugAgent.collect``."""
    return event.name.rpartition(":")[2].startswith(OUR_CLASS)


def same_clock(node: str | None, at_ns: int) -> int:
    """For one node, and where nothing is known of the clocks."""
    return at_ns


class Owners:
    """The owners of all tasks of one reading."""

    def __init__(self, events: TaskEvents, drivers: Mapping[str, Key] | None = None, to_reference: ToReference = same_clock) -> None:
        """
        Args:
            events: All tasks.
            drivers: Node and pid of each job's driver: Ray's task table does not tell them.
            to_reference: How the clocks of the nodes stand to each other.
        """
        self._of_task: dict[str, Key] = {e.task_id: (e.node_id, e.pid) for e in events.events if e.pid}
        self._drivers = drivers or {}
        self.to_reference = to_reference

    def key(self, event: TaskEvent) -> Key | None:
        """The process that submitted it."""
        return self._of_task.get(event.parent_task_id or "") or self._drivers.get(event.job_id or "")

    def began_ns(self, event: TaskEvent) -> int | None:
        """When it began to run, in the executor's clock."""
        return event.times_ns.get("RUNNING")

    def ended_ns(self, event: TaskEvent) -> int | None:
        """When it ended, in the executor's clock, not before it began."""
        end = ended_raw_ns(event)
        if end is None:
            return None
        moved = self._moved(event, end)
        began = self.began_ns(event)
        return moved if began is None else max(moved, began)

    def queued_ns(self, event: TaskEvent) -> int | None:
        """How long it waited between submission and beginning; None when it did not begin."""
        began, submitted = self.began_ns(event), submitted_ns(event)
        if began is None or submitted is None:
            return None
        return max(0, began - self._moved(event, submitted))

    def _moved(self, event: TaskEvent, at_ns: int) -> int:
        """A moment of the owner's clock in the executor's."""
        owner = self.key(event)
        if owner is None or event.node_id is None or owner[0] == event.node_id:
            return at_ns
        reference = self.to_reference(owner[0], at_ns)
        return reference - (self.to_reference(event.node_id, reference) - reference)


def submitted_ns(event: TaskEvent) -> int | None:
    """When it was submitted, in the owner's clock."""
    return min((t for s, t in event.times_ns.items() if s.startswith("PENDING_ARGS")), default=min(event.times_ns.values(), default=None))


def ended_raw_ns(event: TaskEvent) -> int | None:
    """When it ended, in the owner's clock."""
    return event.times_ns.get("FINISHED") or event.times_ns.get("FAILED")
