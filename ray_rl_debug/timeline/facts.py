"""What snapshots tell a timeline besides their own samples: unfinished tasks, drivers, pings of the nodes' clocks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ray_rl_debug.model.snapshot import NodeClock, Snapshot
from ray_rl_debug.ray_state.task_events import TaskEvent, TaskEvents
from ray_rl_debug.timeline.layout import Layout
from ray_rl_debug.timeline.sources.ray_owners import Key, Owners, same_clock


def events_of_snapshots(snapshots: Sequence[Snapshot]) -> TaskEvents | None:
    """The unfinished tasks that snapshots keep, when the whole table was not saved."""
    found: dict[tuple[str, int], TaskEvent] = {}
    for snapshot in sorted(snapshots, key=lambda s: s.taken_time_s):
        for task in snapshot.ray.tasks if snapshot.ray else ():
            found[(task.task_id, task.attempt)] = TaskEvent(
                task_id=task.task_id,
                attempt=task.attempt,
                name=task.name,
                kind=task.kind,
                job_id=task.job_id,
                parent_task_id=task.parent_task_id,
                actor_id=task.actor_id,
                node_id=task.node_id,
                worker_id=task.worker_id,
                pid=task.pid,
                times_ns={k: int(v * 1e9) for k, v in task.state_times_s.items()},
            )
    if not found:
        return None
    return TaskEvents(read_time_s=max(s.taken_time_s for s in snapshots), events=tuple(found.values()))


def drivers_of(snapshots: Sequence[Snapshot]) -> dict[str, Key]:
    """Address and pid of each job's driver."""
    jobs = [j for s in snapshots if s.ray for j in s.ray.jobs]
    return {j.job_id: (j.driver_ip, j.driver_pid) for j in jobs if j.driver_pid is not None}


def pings_of(snapshots: Sequence[Snapshot]) -> dict[str, list[NodeClock]]:
    """All pings, by node name."""
    found: dict[str, list[NodeClock]] = defaultdict(list)
    for snapshot in snapshots:
        for clock in snapshot.clocks:
            found[clock.node].append(clock)
    return dict(found)


def stuck_since(events: TaskEvents | None, layout: Layout, owners: Owners | None) -> Mapping[tuple[str, int], int]:
    """When the unfinished task of each process began, in the reference clock; of several the latest."""
    to_reference = owners.to_reference if owners is not None else same_clock
    found: dict[tuple[str, int], int] = {}
    for event in events.events if events else ():
        start, node = event.times_ns.get("RUNNING"), layout.node(event.node_id)
        if start is None or node is None or event.pid is None or event.kind == "DRIVER_TASK" or {"FINISHED", "FAILED"} & event.times_ns.keys():
            continue
        found[(node, event.pid)] = max(to_reference(event.node_id, start), found.get((node, event.pid), 0))
    return found
