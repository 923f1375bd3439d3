"""Ray's own tables, read by plain gRPC: no ``ray.init``, no dashboard, no new worker process.

The protobufs are private to Ray: fields are looked up before use, and what a version does not have stays None.
"""

from ray_rl_debug.ray_state.core_workers import counted_workers, finish_core_workers, is_crowd, read_core_workers
from ray_rl_debug.ray_state.raylets import look_at_raylets, probe_raylets
from ray_rl_debug.ray_state.tables import read_nodes, read_ray_state

__all__ = [
    "counted_workers",
    "finish_core_workers",
    "is_crowd",
    "look_at_raylets",
    "probe_raylets",
    "read_core_workers",
    "read_nodes",
    "read_ray_state",
]
