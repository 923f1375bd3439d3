"""The second path to Ray's tables: the public state API, by HTTP. Needs the dashboard, and knows less than the GCS itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ray_rl_debug.model import gaps
from ray_rl_debug.model.errors import ClusterUnreachableError
from ray_rl_debug.model.snapshot import Gap, RayActor, RayJob, RayNode, RayPlacementGroup, RayState, RayTask, RayWorker
from ray_rl_debug.privacy.allowlist import allowed_entry_point
from ray_rl_debug.privacy.redact import redact
from ray_rl_debug.ray_state.bundles import asked, public
from ray_rl_debug.ray_state.channel import OUR_NAMESPACE, describe_failure

_OUR_DRIVER = "from ray_rl_debug.cluster.driver import main"
LEAST_S = 0.5
LIMIT = 10_000
"""The most that the API gives."""
ALIVE = frozenset({"PENDING", "RUNNING"})

T = TypeVar("T")


def read_by_state_api(address: str, *, job_id: str | None = None, deadline_s: float = 10.0) -> tuple[RayState, tuple[Gap, ...]]:
    """Ray's tables at one moment; a table that does not come is a gap. Arguments as of `read_ray_state`; `deadline_s` is for all calls.

    Raises:
        ClusterUnreachableError: there is no cluster at this address, or it runs without its dashboard.
    """
    until = time.monotonic() + deadline_s
    try:
        client = within(deadline_s, lambda: _client(address))
        nodes = within(_left(until), lambda: _list(client, "NODES", _left(until)))
    except Exception as e:
        raise ClusterUnreachableError(f"the dashboard of the Ray cluster at {address} does not answer ({describe_failure(e)})") from e
    found: list[Gap] = []

    def rows(what: str, resource: str, *filters: tuple[str, str, str]) -> list[Any]:
        try:
            return within(_left(until), lambda: _list(client, resource, _left(until), filters))
        except Exception as e:  # noqa: BLE001 every table is worth having alone
            found.append(Gap(id=gaps.RAY_TABLES, where="cluster", what=what, reason=describe_failure(e)))
            return []

    of_job = (("job_id", "=", job_id),) if job_id else ()
    jobs = rows("jobs", "JOBS")
    actors = rows("actors", "ACTORS")
    workers = rows("workers", "WORKERS")
    groups = rows("placement groups", "PLACEMENT_GROUPS")
    tasks = rows("tasks", "TASKS", ("state", "!=", "FINISHED"), ("state", "!=", "FAILED"), *of_job)
    our_jobs = {j.job_id for j in jobs if _OUR_DRIVER in (j.entrypoint or "")}
    our_pids = {(a.node_id, a.pid) for a in actors if a.ray_namespace == OUR_NAMESPACE}
    state = RayState(
        address=address,
        nodes=tuple(_node(n) for n in nodes),
        jobs=tuple(_job(j) for j in jobs if j.job_id and j.job_id not in our_jobs),
        actors=tuple(_actor(a) for a in actors if a.ray_namespace != OUR_NAMESPACE and a.job_id not in our_jobs),
        workers=tuple(_worker(w) for w in workers if (w.node_id, w.pid) not in our_pids),
        tasks=tuple(_task(t) for t in tasks if t.job_id not in our_jobs),
        placement_groups=tuple(_group(g) for g in groups),
    )
    return state, tuple(found)


def _left(until: float) -> float:
    return max(LEAST_S, until - time.monotonic())


def within(deadline_s: float, call: Callable[[], T]) -> T:
    """What `call` returns, when it does so in time; a call that does not end is left behind.

    Raises:
        TimeoutError: it did not; or whatever `call` raises.
    """
    results: list[T] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            results.append(call())
        except Exception as e:  # noqa: BLE001 raised again in the caller's thread
            errors.append(e)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(deadline_s)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError(f"no answer in {deadline_s:g} s")
    return results[0]


def _client(address: str) -> Any:
    from ray.util.state.api import StateApiClient

    return StateApiClient(address=address)


def _list(client: Any, resource: str, deadline_s: float, filters: Iterable[tuple[str, str, str]] = ()) -> list[Any]:
    from ray.util.state.common import ListApiOptions, StateResource

    options = ListApiOptions(limit=LIMIT, timeout=max(1, int(deadline_s)), detail=True, filters=list(filters))
    if hasattr(options, "exclude_driver"):
        options.exclude_driver = False
    # With a filter the API takes what the filter left out for lost, and refuses.
    return list(client.list(getattr(StateResource, resource), options=options, raise_on_missing_output=False))


def _seconds(milliseconds: float | None) -> float | None:
    return milliseconds / 1000 if milliseconds else None


def _node(n: Any) -> RayNode:
    return RayNode(
        node_id=n.node_id,
        ip=n.node_ip,
        host=n.node_name,
        alive=n.state == "ALIVE",
        resources=public(n.resources_total),
        death=redact(getattr(n, "state_message", None) or "", max_chars=200) or None,
        is_head=getattr(n, "is_head_node", None),
    )


def _job(j: Any) -> RayJob:
    driver = j.driver_info
    pid = str(getattr(driver, "pid", "") or "")
    return RayJob(
        job_id=j.job_id,
        driver_pid=int(pid) if pid.isdigit() else None,
        driver_ip=getattr(driver, "node_ip_address", None),
        alive=str(getattr(j.status, "value", j.status)) in ALIVE,
        entrypoint=allowed_entry_point(j.entrypoint or ""),
        submission_id=j.submission_id,
        start_time_s=_seconds(j.start_time),
        end_time_s=_seconds(j.end_time),
    )


def _actor(a: Any) -> RayActor:
    death = next(iter((a.death_cause or {}).values()), None)
    text = str(death.get("error_message") or "") if isinstance(death, dict) else ""
    needs = asked(a.required_resources)
    return RayActor(
        actor_id=a.actor_id,
        job_id=a.job_id,
        class_name=a.class_name,
        state=a.state,
        name=a.name or None,
        namespace=a.ray_namespace or None,
        pid=a.pid or None,
        node_id=a.node_id or None,
        restarts=int(a.num_restarts or 0),
        death=redact(" ".join(text.split()), max_chars=300) or None,
        death_kind="unknown" if a.state == "DEAD" else None,
        resources=needs.resources,
        placement_group_id=needs.placement_group_id,
        bundle=needs.bundle,
    )


def _worker(w: Any) -> RayWorker:
    return RayWorker(
        worker_id=w.worker_id,
        pid=w.pid,
        kind=w.worker_type,
        alive=bool(w.is_alive),
        node_id=w.node_id or None,
        exit=redact((w.exit_detail or "").split("\n", 1)[0], max_chars=200) or None,
    )


def _task(t: Any) -> RayTask:
    needs = asked(t.required_resources)
    return RayTask(
        task_id=t.task_id,
        name=t.name or t.func_or_class_name,
        state=t.state,
        job_id=t.job_id or None,
        kind=t.type,
        parent_task_id=t.parent_task_id or None,
        actor_id=t.actor_id or None,
        node_id=t.node_id or None,
        pid=t.worker_pid or None,
        worker_id=t.worker_id or None,
        attempt=int(t.attempt_number or 0),
        state_times_s={e["state"]: e["created_ms"] / 1000 for e in t.events or () if e.get("created_ms")},
        resources=needs.resources,
        placement_group_id=t.placement_group_id or needs.placement_group_id,
        bundle=needs.bundle,
    )


def _group(g: Any) -> RayPlacementGroup:
    bundles = g.bundles or ()
    return RayPlacementGroup(
        placement_group_id=g.placement_group_id,
        state=g.state,
        name=g.name or None,
        job_id=g.creator_job_id or None,
        bundles=tuple(public(b.get("unit_resources")) for b in bundles),
        bundle_nodes=tuple(b.get("node_id") or None for b in bundles),
        scheduling=(g.stats or {}).get("scheduling_state"),
    )
