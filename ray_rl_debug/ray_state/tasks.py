"""Unfinished tasks with their state times, and how long finished ones of the same name took."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from ray_rl_debug.model.snapshot import RayTask, TaskHistory
from ray_rl_debug.ray_state.bundles import asked
from ray_rl_debug.ray_state.callers import callers_of
from ray_rl_debug.ray_state.usual_durations import usual_longest

MAX_TASKS = 10_000
"""Unfinished tasks kept; more is a queue, and its length says enough."""

LEAST_S = 0.5

MAX_HISTORY = 5_000
"""Finished tasks looked at for what is usual (0.1 s for the GCS)."""


def read_tasks(channel: Any, job_id: str | None, deadline_s: float) -> tuple[tuple[RayTask, ...], tuple[TaskHistory, ...], int]:
    """Unfinished tasks, history of finished ones by name, and how many unfinished ones were left out; `deadline_s` is for all."""
    from ray.core.generated import common_pb2, gcs_service_pb2_grpc
    from ray.core.generated import gcs_service_pb2 as pb

    until = time.monotonic() + deadline_s
    stub = gcs_service_pb2_grpc.TaskInfoGcsServiceStub(channel)
    not_equal = pb.FilterPredicate.NOT_EQUAL
    equal = pb.FilterPredicate.EQUAL

    def request(limit: int, states: tuple[tuple[str, int], ...]) -> Any:
        message = pb.GetTaskEventsRequest(limit=limit)
        for name, predicate in states:
            wanted = message.filters.state_filters.add()
            wanted.state = name
            wanted.predicate = predicate
        if job_id:
            job = message.filters.job_filters.add()
            job.job_id = bytes.fromhex(job_id)
            job.predicate = equal
        return message

    open_states = (("FINISHED", not_equal), ("FAILED", not_equal))
    unfinished = stub.GetTaskEvents(request(MAX_TASKS, open_states), timeout=max(LEAST_S, until - time.monotonic()))
    finished = stub.GetTaskEvents(request(MAX_HISTORY, (("FINISHED", equal),)), timeout=max(LEAST_S, until - time.monotonic()))
    statuses = common_pb2.TaskStatus
    tasks = [_task(e, statuses) for e in unfinished.events_by_task if e.HasField("task_info")]
    names = {t.task_id: t.name for t in tasks}
    return tuple(tasks), _history(finished.events_by_task, statuses, names), int(getattr(unfinished, "num_truncated", 0))


MAX_FAILED = 100
"""Failed calls kept, the latest: what failed long ago was asked for or given up."""
MAX_FAILED_READ = 1_000
"""Failed calls looked at: each comes with the whole text of its error."""


def read_failed(channel: Any, job_id: str | None, deadline_s: float) -> tuple[RayTask, ...]:
    """The latest calls that have raised or were lost, each with the name of its error only."""
    from ray.core.generated import common_pb2, gcs_service_pb2_grpc
    from ray.core.generated import gcs_service_pb2 as pb

    message = pb.GetTaskEventsRequest(limit=MAX_FAILED_READ)
    wanted = message.filters.state_filters.add()
    wanted.state, wanted.predicate = "FAILED", pb.FilterPredicate.EQUAL
    if job_id:
        job = message.filters.job_filters.add()
        job.job_id, job.predicate = bytes.fromhex(job_id), pb.FilterPredicate.EQUAL
    events = gcs_service_pb2_grpc.TaskInfoGcsServiceStub(channel).GetTaskEvents(message, timeout=deadline_s).events_by_task
    failed = [msgspec.structs.replace(_task(e, common_pb2.TaskStatus), error=_error(e)) for e in events if e.HasField("task_info")]
    return tuple(sorted(failed, key=lambda t: t.state_times_s.get("FAILED", 0.0))[-MAX_FAILED:])


def _error(event: Any) -> str | None:
    info = event.state_updates.error_info
    kind = info.DESCRIPTOR.fields_by_name["error_type"].enum_type.values_by_number.get(info.error_type)
    return error_name(info.error_message) or (kind.name if kind is not None else None)


_RAISED = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)(?::|$)", re.MULTILINE)


def error_name(text: str) -> str | None:
    """The class of the exception at the end of a traceback, nothing of its text: that may hold anything of the user's."""
    _, _, raised = text.rpartition("\n  File ")
    found = [m[1] for m in _RAISED.finditer(raised)] if raised else []
    return found[0] if found else None


def _times(event: Any, statuses: Any) -> dict[str, float]:
    names = _names(statuses)  # a state may be newer than our stubs
    return {names[number]: nanoseconds / 1e9 for number, nanoseconds in event.state_updates.state_ts_ns.items() if number in names}


@functools.cache
def _names(statuses: Any) -> dict[int, str]:
    return {number: str(name) for name, number in statuses.items()}


def _task(event: Any, statuses: Any) -> RayTask:
    info, updates = event.task_info, event.state_updates
    times = _times(event, statuses)
    kind = info.DESCRIPTOR.fields_by_name["type"].enum_type.values_by_number[info.type].name
    needs = asked(info.required_resources)
    return RayTask(
        task_id=event.task_id.hex(),
        name=info.name or info.func_or_class_name,
        state=max(times, key=lambda s: (times[s], statuses.Value(s))) if times else "NIL",
        job_id=event.job_id.hex() or None,
        kind=kind,
        parent_task_id=info.parent_task_id.hex() or None,
        actor_id=info.actor_id.hex() or None,
        node_id=updates.node_id.hex() or None,
        pid=updates.worker_pid or None,
        worker_id=updates.worker_id.hex() or None,
        attempt=event.attempt_number,
        state_times_s=times,
        resources=needs.resources,
        placement_group_id=info.placement_group_id.hex() or needs.placement_group_id,
        bundle=needs.bundle,
    )


def _history(events: Any, statuses: Any, unfinished: Mapping[str, str]) -> tuple[TaskHistory, ...]:
    """Of finished calls by name; `unfinished` are the names of the others by id: any of them may have made calls."""
    names = dict(unfinished)
    took: dict[str, list[float]] = {}
    last: dict[str, float] = {}
    made_in: dict[str, set[str]] = {}
    for event in events:
        if not event.HasField("task_info"):
            continue
        times = _times(event, statuses)
        started, ended = times.get("RUNNING"), times.get("FINISHED")
        if started is None or ended is None:
            continue
        name = names[event.task_id.hex()] = event.task_info.name or event.task_info.func_or_class_name
        took.setdefault(name, []).append(ended - started)
        last[name] = max(last.get(name, 0.0), ended)
        made_in.setdefault(name, set()).add(event.task_info.parent_task_id.hex())
    return tuple(
        TaskHistory(
            name=n,
            count=len(d),
            longest_s=round(max(d), 4),
            usual_s=round(usual_longest(d), 4),
            last_end_time_s=last[n],
            callers=callers_of(made_in[n], names),
        )
        for n, d in sorted(took.items())
    )
