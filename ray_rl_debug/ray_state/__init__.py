"""Ray's own tables, read by plain gRPC: no ``ray.init``, no dashboard, no new worker process.

The protobufs are private to Ray: fields are looked up before use, and what a version does not have stays None.
"""

from ray_rl_debug.ray_state.core_workers import finish_core_workers, read_core_workers
from ray_rl_debug.ray_state.raylets import probe_raylets, read_object_stores
from ray_rl_debug.ray_state.tables import read_nodes, read_ray_state

__all__ = ["finish_core_workers", "probe_raylets", "read_core_workers", "read_nodes", "read_object_stores", "read_ray_state"]
