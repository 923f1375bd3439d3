"""Nodes, jobs, actors, workers, placement groups and tasks from the GCS."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from ray_rl_debug.model import gaps
from ray_rl_debug.model.equal_text import hold_equal_text_once
from ray_rl_debug.model.errors import AuthenticationRefusedError, ClusterUnreachableError
from ray_rl_debug.model.snapshot import Gap, RayActor, RayJob, RayNode, RayPlacementGroup, RayState, RayTask, RayWorker, TaskHistory
from ray_rl_debug.privacy.allowlist import allowed_entry_point
from ray_rl_debug.privacy.redact import redact
from ray_rl_debug.ray_state.bundles import asked, public
from ray_rl_debug.ray_state.channel import OUR_NAMESPACE, SILENCE, describe_failure, is_refused, open_channel, why_unreachable
from ray_rl_debug.ray_state.state_api import read_by_state_api
from ray_rl_debug.ray_state.tasks import read_failed, read_tasks

LEAST_S = 0.5
"""A call whose time is up is given this much: it says at least who is silent."""
_FIELDS = {"jobs": "jobs", "actors": "actors", "workers": "workers", "placement groups": "placement_groups", "tasks": "tasks"}


def read_ray_state(address: str, *, job_id: str | None = None, deadline_s: float = 10.0) -> tuple[RayState, tuple[Gap, ...]]:
    """Ray's tables at one moment; a table that does not come is a gap.

    Args:
        address: GCS ``host:port``.
        job_id: Hex id of the job whose tasks are wanted; None for all.
        deadline_s: For all of them together.

    Raises:
        ClusterUnreachableError: the GCS does not answer at all.
        AuthenticationRefusedError: it answers, but not to us.
    """
    until = time.monotonic() + deadline_s
    try:
        channel = open_channel(address)
        from ray.core.generated import gcs_service_pb2_grpc  # noqa: F401 needs grpcio, which plain ray does not bring
    except ImportError as e:
        return _by_state_api(address, job_id, deadline_s, str(e))
    try:
        state, failed = _read(channel, address, job_id, until)
    finally:
        channel.close()
    return _mended(state, failed, job_id, until)


def _by_state_api(address: str, job_id: str | None, deadline_s: float, why: str) -> tuple[RayState, tuple[Gap, ...]]:
    state, found = read_by_state_api(address, job_id=job_id, deadline_s=deadline_s)
    what = "live statistics of Ray workers and raylets, exact times of tasks"
    reason = f"the tables came from the dashboard, because gRPC cannot be used ({why})"
    missing = Gap(id=gaps.RAY_TABLES, where="cluster", what=what, reason=reason, remedy="pip install 'ray[default]'")
    return msgspec.structs.replace(state, version=_ray_version()), (missing, *found)


def _mended(state: RayState, failed: Mapping[str, Exception], job_id: str | None, until: float) -> tuple[RayState, tuple[Gap, ...]]:
    """Tables that this version of Ray does not give by gRPC, from the state API. A GCS that is silent is not asked again by another way."""
    reasons = {what: describe_failure(e) for what, e in failed.items()}
    if any(what in _FIELDS and not reason.startswith(SILENCE) for what, reason in reasons.items()):
        try:
            second, unread = read_by_state_api(state.address, job_id=job_id, deadline_s=_left(until))
        except ClusterUnreachableError as e:
            reasons = {what: f"{reason}; {e}" for what, reason in reasons.items()}
        else:
            came = [what for what in reasons if what in _FIELDS and what not in {g.what for g in unread}]
            state = msgspec.structs.replace(state, **{_FIELDS[what]: getattr(second, _FIELDS[what]) for what in came})
            reasons = {what: reason for what, reason in reasons.items() if what not in came}
    return state, tuple(Gap(id=gaps.RAY_TABLES, where="cluster", what=what, reason=reason) for what, reason in reasons.items())


def _left(until: float) -> float:
    return max(LEAST_S, until - time.monotonic())


def _read(channel: Any, address: str, job_id: str | None, until: float) -> tuple[RayState, dict[str, Exception]]:
    """The tables, and those that failed with their errors."""
    from ray.core.generated import gcs_service_pb2 as pb
    from ray.core.generated import gcs_service_pb2_grpc as stubs

    nodes = _ask_nodes(channel, address, _left(until))
    deadline_s = _left(until)
    failed: dict[str, Exception] = {}

    def call(what: str, fetch: Callable[[], Any]) -> Any:
        try:
            return fetch()
        except Exception as e:  # noqa: BLE001 every table is worth having alone
            failed[what] = e
            return None

    with ThreadPoolExecutor(7) as pool:
        jobs_request = _fill(pb.GetAllJobInfoRequest(), skip_submission_job_info_field=False, skip_is_running_tasks_field=True)
        jobs_ = pool.submit(call, "jobs", lambda: stubs.JobInfoGcsServiceStub(channel).GetAllJobInfo(jobs_request, timeout=deadline_s).job_info_list)
        actors_ = pool.submit(
            call,
            "actors",
            lambda: stubs.ActorInfoGcsServiceStub(channel).GetAllActorInfo(pb.GetAllActorInfoRequest(), timeout=deadline_s).actor_table_data,
        )
        workers_ = pool.submit(
            call,
            "workers",
            lambda: stubs.WorkerInfoGcsServiceStub(channel).GetAllWorkerInfo(pb.GetAllWorkerInfoRequest(), timeout=deadline_s).worker_table_data,
        )
        groups_ = pool.submit(
            call,
            "placement groups",
            lambda: (
                stubs.PlacementGroupInfoGcsServiceStub(channel)
                .GetAllPlacementGroup(pb.GetAllPlacementGroupRequest(), timeout=deadline_s)
                .placement_group_table_data
            ),
        )
        tasks_ = pool.submit(call, "tasks", lambda: read_tasks(channel, job_id, deadline_s))
        failed_ = pool.submit(call, "failed tasks", lambda: read_failed(channel, job_id, deadline_s))
        available_ = pool.submit(call, "available resources", lambda: _available(channel, deadline_s))

    ours = {j.job_id.hex() for j in jobs_.result() or () if _namespace(j) == OUR_NAMESPACE}
    own_workers = {a.address.worker_id for a in actors_.result() or () if a.job_id.hex() in ours or a.ray_namespace == OUR_NAMESPACE}
    own_drivers = {(j.driver_ip_address, j.driver_pid) for j in jobs_.result() or () if j.job_id.hex() in ours}
    no_tasks: tuple[tuple[RayTask, ...], tuple[TaskHistory, ...], int] = ((), (), 0)
    tasks, history, dropped = tasks_.result() or no_tasks
    available = available_.result() or {}
    state = RayState(
        address=address,
        version=_ray_version(),
        nodes=tuple(_node(n, available.get(n.node_id.hex())) for n in nodes),
        jobs=tuple(_job(j) for j in jobs_.result() or () if j.job_id.hex() not in ours),
        actors=tuple(_actor(a) for a in actors_.result() or () if a.job_id.hex() not in ours and a.ray_namespace != OUR_NAMESPACE),
        workers=tuple(_worker(w) for w in workers_.result() or () if not _is_ours(w, own_workers, own_drivers)),
        tasks=tuple(t for t in tasks if t.job_id not in ours),
        failed=tuple(t for t in failed_.result() or () if t.job_id not in ours),
        tasks_dropped=dropped,
        history=history,
        placement_groups=tuple(_group(g) for g in groups_.result() or ()),
    )
    hold_equal_text_once(state.actors, state.workers, state.tasks)
    return state, failed


def read_nodes(address: str, *, deadline_s: float = 10.0) -> tuple[RayNode, ...]:
    """The table of nodes alone; raises like `read_ray_state`."""
    try:
        channel = open_channel(address)
    except ImportError:
        return read_by_state_api(address, deadline_s=deadline_s)[0].nodes
    try:
        return tuple(_node(n, None) for n in _ask_nodes(channel, address, deadline_s))
    finally:
        channel.close()


def _ask_nodes(channel: Any, address: str, deadline_s: float) -> Any:
    from ray.core.generated import gcs_service_pb2 as pb
    from ray.core.generated import gcs_service_pb2_grpc as stubs

    try:
        return stubs.NodeInfoGcsServiceStub(channel).GetAllNodeInfo(pb.GetAllNodeInfoRequest(), timeout=deadline_s).node_info_list
    except Exception as e:
        if is_refused(e):
            raise AuthenticationRefusedError(f"the Ray cluster at {address} did not let us in: {describe_failure(e)}") from e
        raise ClusterUnreachableError(why_unreachable(address, e)) from e


def _is_ours(w: Any, own_workers: set[bytes], own_drivers: set[tuple[str, int]]) -> bool:
    return w.worker_address.worker_id in own_workers or (w.worker_address.ip_address, w.pid) in own_drivers


def _fill(message: Any, **fields: Any) -> Any:
    """Set the fields that this version of the message has."""
    for name, value in fields.items():
        if name in message.DESCRIPTOR.fields_by_name:
            setattr(message, name, value)
    return message


def _ray_version() -> str:
    import ray

    return str(ray.__version__)


def _available(channel: Any, deadline_s: float) -> dict[str, dict[str, float]]:
    from ray.core.generated import gcs_service_pb2 as pb
    from ray.core.generated import gcs_service_pb2_grpc as stubs

    reply = stubs.NodeResourceInfoGcsServiceStub(channel).GetAllAvailableResources(pb.GetAllAvailableResourcesRequest(), timeout=deadline_s)
    return {r.node_id.hex(): public(r.resources_available) for r in reply.resources_list}


def _enum_name(message: Any, field: str) -> str:
    return _enum_names(message.DESCRIPTOR, field)[getattr(message, field)]


@functools.cache
def _enum_names(of: Any, field: str) -> dict[int, str]:
    """By number; of each message's descriptor, of which there are a few."""
    return {number: str(value.name) for number, value in of.fields_by_name[field].enum_type.values_by_number.items()}


def _node(n: Any, available: dict[str, float] | None) -> RayNode:
    death = n.death_info.reason_message if "death_info" in n.DESCRIPTOR.fields_by_name and n.HasField("death_info") else ""
    return RayNode(
        node_id=n.node_id.hex(),
        ip=n.node_manager_address,
        host=n.node_manager_hostname,
        alive=_enum_name(n, "state") == "ALIVE",
        resources=public(n.resources_total),
        available=available,
        death=redact(death.split("\n", 1)[0], max_chars=200) or None,
        port=n.node_manager_port,
        is_head=n.is_head_node if "is_head_node" in n.DESCRIPTOR.fields_by_name else None,
        labels=_labels(n, "labels"),
    )


def _labels(of: Any, field: str) -> dict[str, str] | None:
    """None of a Ray that knows no labels."""
    return {str(k): str(v) for k, v in getattr(of, field).items()} if field in of.DESCRIPTOR.fields_by_name else None


def _namespace(j: Any) -> str | None:
    return j.config.ray_namespace or None


def _job(j: Any) -> RayJob:
    return RayJob(
        job_id=j.job_id.hex(),
        driver_pid=j.driver_pid or None,
        driver_ip=j.driver_ip_address or None,
        alive=not j.is_dead,
        entrypoint=allowed_entry_point(j.entrypoint),
        namespace=_namespace(j),
        submission_id=dict(j.config.metadata).get("job_submission_id"),
        start_time_s=j.start_time / 1000 if j.start_time else None,
        end_time_s=j.end_time / 1000 if j.end_time else None,
    )


_DEATHS = {
    "creation_task_failure_context": "creation-failed",
    "runtime_env_failed_context": "creation-failed",
    "actor_died_error_context": "exited",
    "actor_unschedulable_context": "unschedulable",
    "oom_context": "oom",
}


def _death(a: Any) -> tuple[str | None, str | None]:
    """One line and a kind of why an actor died."""
    which = a.death_cause.WhichOneof("context") if a.HasField("death_cause") else None
    if which is None:
        return None, None
    context = getattr(a.death_cause, which)
    text = str(getattr(context, "error_message", "") or getattr(context, "formatted_exception_string", "") or "")
    kind = _DEATHS.get(which, "unknown")
    low = text.lower()
    if which == "actor_died_error_context":
        if "out of scope" in low or "out of all scope" in low or "all references" in low:
            kind = "out-of-scope"
        elif "node" in low and ("died" in low or "dead" in low) and "worker" not in low[:60]:
            kind = "node-died"
        elif "ray.kill" in low or "exit_actor" in low or "intended" in low:
            kind = "exited"
        else:
            kind = "killed"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (redact(" ".join(lines), max_chars=300) or kind), kind


def _actor(a: Any) -> RayActor:
    text, kind = _death(a)
    needs = asked(a.required_resources)
    return RayActor(
        actor_id=a.actor_id.hex(),
        job_id=a.job_id.hex(),
        class_name=a.class_name,
        state=_enum_name(a, "state"),
        name=a.name or None,
        namespace=a.ray_namespace or None,
        pid=a.pid or None,
        node_id=(a.node_id if "node_id" in a.DESCRIPTOR.fields_by_name and a.node_id else a.address.node_id).hex() or None
        if "node_id" in a.address.DESCRIPTOR.fields_by_name
        else a.address.raylet_id.hex() or None,
        worker_id=a.address.worker_id.hex() or None,
        address=f"{a.address.ip_address}:{a.address.port}" if a.address.port else None,
        owner_worker_id=a.owner_address.worker_id.hex() or None,
        restarts=int(a.num_restarts),
        death=text,
        death_kind=kind,
        resources=needs.resources,
        wanted_labels=_labels(a, "label_selector") or {},
        placement_group_id=needs.placement_group_id,
        bundle=needs.bundle,
        start_time_s=a.start_time / 1000 if a.start_time else None,
        end_time_s=a.end_time / 1000 if a.end_time else None,
    )


def _worker(w: Any) -> RayWorker:
    address = w.worker_address
    node = address.node_id if "node_id" in address.DESCRIPTOR.fields_by_name else address.raylet_id
    return RayWorker(
        worker_id=address.worker_id.hex(),
        pid=w.pid,
        kind=_enum_name(w, "worker_type"),
        alive=w.is_alive,
        node_id=node.hex() or None,
        ip=f"{address.ip_address}:{address.port}",
        job_id=w.job_id.hex() or None if "job_id" in w.DESCRIPTOR.fields_by_name else None,
        exit=redact((w.exit_detail or "").split("\n", 1)[0], max_chars=200) or None if not w.is_alive else None,
    )


def _creator(actor_id: str) -> str | None:
    """Of what a driver asks for, the id says nothing but the job."""
    return actor_id if set(actor_id[:24]) - {"f"} else None


def _group(g: Any) -> RayPlacementGroup:
    stats = g.stats if g.HasField("stats") else None
    return RayPlacementGroup(
        placement_group_id=g.placement_group_id.hex(),
        state=_enum_name(g, "state"),
        name=g.name or None,
        job_id=g.creator_job_id.hex() or None,
        creator_actor_id=_creator(g.creator_actor_id.hex()),
        bundles=tuple(public(b.unit_resources) for b in g.bundles),
        bundle_nodes=tuple(b.node_id.hex() or None for b in g.bundles),
        strategy=_enum_name(g, "strategy"),
        scheduling=_enum_name(stats, "scheduling_state") if stats is not None else None,
    )
