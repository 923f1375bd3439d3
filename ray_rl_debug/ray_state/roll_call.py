"""Who runs on a cluster, asked rarely and cheaply: nodes, jobs and actors, without tasks and workers."""

from __future__ import annotations

import msgspec

from ray_rl_debug.model.snapshot import RayActor, RayJob, RayNode
from ray_rl_debug.ray_state.channel import OUR_NAMESPACE, open_channel
from ray_rl_debug.ray_state.tables import _actor, _ask_nodes, _fill, _job, _node

_RAYS_OWN = "_ray_internal"
"""Namespaces of the dashboard's own jobs begin so."""


class RollCall(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes, jobs and actors of others than us and Ray itself."""

    nodes: tuple[RayNode, ...] = ()
    jobs: tuple[RayJob, ...] = ()
    actors: tuple[RayActor, ...] | None = None
    """Those that live; None: not asked for."""


def call_roll(address: str, *, with_actors: bool, deadline_s: float = 3.0) -> RollCall:
    """Ask the GCS. A call that fails raises as `tables.read_ray_state` does, or gRPC's own error."""
    from ray.core.generated import gcs_pb2
    from ray.core.generated import gcs_service_pb2 as pb
    from ray.core.generated import gcs_service_pb2_grpc as stubs

    channel = open_channel(address)
    try:
        nodes = tuple(_node(n, None) for n in _ask_nodes(channel, address, deadline_s))
        request = _fill(pb.GetAllJobInfoRequest(), skip_submission_job_info_field=False, skip_is_running_tasks_field=True)
        jobs = [_job(j) for j in stubs.JobInfoGcsServiceStub(channel).GetAllJobInfo(request, timeout=deadline_s).job_info_list]
        others = tuple(j for j in jobs if j.namespace != OUR_NAMESPACE and not (j.namespace or "").startswith(_RAYS_OWN))
        actors = None
        if with_actors:
            alive = pb.GetAllActorInfoRequest()
            if "filters" in alive.DESCRIPTOR.fields_by_name:
                alive.filters.state = gcs_pb2.ActorTableData.ALIVE  # a long run leaves thousands of dead ones
            table = stubs.ActorInfoGcsServiceStub(channel).GetAllActorInfo(alive, timeout=deadline_s).actor_table_data
            actors = tuple(_actor(a) for a in table)
        return RollCall(nodes=nodes, jobs=others, actors=actors)
    finally:
        channel.close()
