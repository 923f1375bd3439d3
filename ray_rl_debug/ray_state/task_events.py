"""All task events Ray keeps, finished or not, with every state's time: what the timeline and the queue times are made of."""

from __future__ import annotations

from typing import Any

import msgspec

from ray_rl_debug.ray_state.channel import open_channel

SCHEMA = "rayrl-debug/tasks/1"
MAX_EVENTS = 100_000
"""What the GCS keeps by default (``RAY_task_events_max_num_task_in_gcs``)."""


class TaskEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One attempt of one task. Times are Unix nanoseconds of the node where the state was entered."""

    task_id: str
    attempt: int = 0
    name: str
    kind: str | None = None
    """``NORMAL_TASK``, ``ACTOR_TASK``, ``ACTOR_CREATION_TASK`` or ``DRIVER_TASK``."""
    job_id: str | None = None
    parent_task_id: str | None = None
    actor_id: str | None = None
    node_id: str | None = None
    worker_id: str | None = None
    pid: int | None = None
    times_ns: dict[str, int] = {}
    """By the name of the state: ``RUNNING``, ``FINISHED``, ``RUNNING_IN_RAY_GET``, ..."""
    error: str | None = None
    """Kind of the failure, where it failed."""


class TaskEvents(msgspec.Struct, frozen=True, kw_only=True):
    """All task events of a cluster at one moment."""

    schema: str = SCHEMA
    read_time_s: float
    events: tuple[TaskEvent, ...] = ()
    dropped: int = 0
    """Tasks that Ray did not keep, or that were left out here."""


def read_task_events(address: str, *, now_s: float, job_id: str | None = None, limit: int = MAX_EVENTS, deadline_s: float = 30.0) -> TaskEvents:
    """Task events of the cluster with this GCS.

    Args:
        address: GCS ``host:port``.
        now_s: Unix time, stored with the events.
        job_id: Hex id of the job whose tasks are wanted; None for all.
        limit: Most tasks read.
        deadline_s: For the call.

    Raises:
        grpc.RpcError: the GCS does not answer, or not to us.
    """
    from ray.core.generated import common_pb2, gcs_service_pb2_grpc
    from ray.core.generated import gcs_service_pb2 as pb

    request = pb.GetTaskEventsRequest(limit=limit)
    if job_id:
        job = request.filters.job_filters.add()
        job.job_id = bytes.fromhex(job_id)
        job.predicate = pb.FilterPredicate.EQUAL
    if "exclude_driver" in request.filters.DESCRIPTOR.fields_by_name:
        request.filters.exclude_driver = False
    reply = gcs_service_pb2_grpc.TaskInfoGcsServiceStub(open_channel(address)).GetTaskEvents(request, timeout=deadline_s)
    states = {value.number: name for name, value in common_pb2.TaskStatus.DESCRIPTOR.values_by_name.items()}
    return TaskEvents(
        read_time_s=now_s,
        events=tuple(_event(e, states) for e in reply.events_by_task),
        dropped=sum(int(getattr(reply, f, 0)) for f in ("num_status_task_events_dropped", "num_truncated")),
    )


def _event(event: Any, states: dict[int, str]) -> TaskEvent:
    info, updates = event.task_info, event.state_updates
    return TaskEvent(
        task_id=event.task_id.hex(),
        attempt=event.attempt_number,
        name=info.name or info.func_or_class_name or "task",
        kind=info.DESCRIPTOR.fields_by_name["type"].enum_type.values_by_number[info.type].name if event.HasField("task_info") else None,
        job_id=event.job_id.hex() or None,
        parent_task_id=info.parent_task_id.hex() or None,
        actor_id=info.actor_id.hex() or None,
        node_id=updates.node_id.hex() or None,
        worker_id=updates.worker_id.hex() or None,
        pid=updates.worker_pid or None,
        times_ns={states[n]: t for n, t in updates.state_ts_ns.items() if n in states},
        error=_error(updates),
    )


def _error(updates: Any) -> str | None:
    if "error_info" not in updates.DESCRIPTOR.fields_by_name or not updates.HasField("error_info"):
        return None
    info = updates.error_info
    return str(info.DESCRIPTOR.fields_by_name["error_type"].enum_type.values_by_number[info.error_type].name)
