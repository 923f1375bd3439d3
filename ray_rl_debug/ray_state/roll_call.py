"""Who runs on a cluster, asked rarely and cheaply: nodes and jobs, and whose workers the new ones are; no table that grows with the actors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from ray_rl_debug.model.snapshot import RayJob, RayNode
from ray_rl_debug.ray_state.channel import OUR_NAMESPACE, open_channel
from ray_rl_debug.ray_state.raylets import read_worker_jobs
from ray_rl_debug.ray_state.tables import _actor, _ask_nodes, _fill, _job, _node

_RAYS_OWN = "_ray_internal"
"""Namespaces of the dashboard's own jobs begin so."""
RAYLETS_S = 1.5
"""For all raylets that are asked; the next time those for whom no time was left."""


class RollCall(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes, and jobs of others than us and Ray itself."""

    nodes: tuple[RayNode, ...] = ()
    jobs: tuple[RayJob, ...] = ()
    worker_jobs: Mapping[str, Mapping[int, str]] = {}
    """Of the nodes that were asked: by node id, the job of each worker by pid."""


def call_roll(address: str, *, workers_of: Collection[str] = (), deadline_s: float = 3.0) -> RollCall:
    """Ask the GCS, and the raylets of the nodes `workers_of` (ids) for the jobs of their workers.

    A call to the GCS that fails raises as `tables.read_ray_state` does, or gRPC's own error. Raylets that do not answer are made up for by the table
    of actors.
    """
    from ray.core.generated import gcs_service_pb2 as pb
    from ray.core.generated import gcs_service_pb2_grpc as stubs

    channel = open_channel(address)
    try:
        nodes = tuple(_node(n, None) for n in _ask_nodes(channel, address, deadline_s))
        request = _fill(pb.GetAllJobInfoRequest(), skip_submission_job_info_field=False, skip_is_running_tasks_field=True)
        jobs = [_job(j) for j in stubs.JobInfoGcsServiceStub(channel).GetAllJobInfo(request, timeout=deadline_s).job_info_list]
        others = tuple(j for j in jobs if j.namespace != OUR_NAMESPACE and not (j.namespace or "").startswith(_RAYS_OWN))
        asked = [n for n in nodes if n.alive and n.node_id in workers_of]
        told, silent = read_worker_jobs(asked, deadline_s=min(RAYLETS_S, deadline_s))
        rest = _by_actors(channel, silent, deadline_s) if silent else {}
        return RollCall(nodes=nodes, jobs=others, worker_jobs={**told, **rest})
    finally:
        channel.close()


def _by_actors(channel: Any, nodes: Collection[str], deadline_s: float) -> dict[str, dict[int, str]]:
    """The same from Ray's table of actors that live, all of them: where a raylet did not answer: one waits for its stopped workers."""
    from ray.core.generated import gcs_pb2
    from ray.core.generated import gcs_service_pb2 as pb
    from ray.core.generated import gcs_service_pb2_grpc as stubs

    alive = pb.GetAllActorInfoRequest()
    if "filters" in alive.DESCRIPTOR.fields_by_name:
        alive.filters.state = gcs_pb2.ActorTableData.ALIVE  # a long run leaves thousands of dead ones
    found: dict[str, dict[int, str]] = {node_id: {} for node_id in nodes}
    for row in stubs.ActorInfoGcsServiceStub(channel).GetAllActorInfo(alive, timeout=deadline_s).actor_table_data:
        actor = _actor(row)
        if actor.pid and actor.node_id in found:
            found[actor.node_id][actor.pid] = actor.job_id
    return found
