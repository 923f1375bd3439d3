"""Where the frames of torch, JAX, Ray and the standard library above a program's own code say that a thread is."""

from __future__ import annotations

from collections.abc import Sequence

from ray_rl_debug.analyze.data_loaders import waits_at_loader
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.launchers import meets_nodes
from ray_rl_debug.analyze.library_places import stdlib_place
from ray_rl_debug.analyze.native_frames import is_native
from ray_rl_debug.analyze.torch_calls import (
    CALLS_OF_RAY,
    COLLECTIVES,
    IN_C,
    LOADER,
    P2P,
    RAYS_CALLS,
    RAYS_COLLECTIVES,
    RAYS_RENDEZVOUS,
    RENDEZVOUS,
    is_bare_call,
    is_bare_result,
    is_bare_wrapper,
)
from ray_rl_debug.model.snapshot import Frame, Thread

GROUP_WAIT = "placement_group.wait"
_TORCH_DISTRIBUTED = ("torch/distributed", "torch_npu/distributed", "torch_xla/distributed", "torch_mlu/distributed", "torch_musa/distributed")
"""torch's own, and what makers of other devices put around it."""
_TORCH_WAIT = frozenset("trigger_wait wait_tensor full_tensor redistribute_local_tensor _wait_for_work".split())
_NEW_GROUP = frozenset("new_group _new_group_with_tag new_subgroups new_subgroups_by_enumeration".split())
_CUDA_WAITS = frozenset("synchronize wait wait_event wait_stream".split())
_JAX_WAITS = frozenset("block_until_ready _value __array__ device_get _single_device_array_to_np_array_did_copy".split())
"""Of JAX's arrays: a result is asked for, which the device still has to give."""
_JAX_TOGETHER = frozenset("sync_global_devices process_allgather broadcast_one_to_all assert_equal".split())
"""Of JAX's between hosts."""
_JAX_STARTS = frozenset({"initialize", "connect"})
"""Of jax/_src/distributed.py: each process comes back when all have come to the coordinator."""
_CHECKPOINT = "torch/distributed/checkpoint/"
"""Its functions are called like collectives, and do work of their own between those of torch."""
_NEXT_OF_LOADER = ("dataloader.__next__", "data_loader.__next__", "dataloaderiter.__next__")
"""How people write it where they name functions alone."""
_RAY_STARTS = frozenset("_init_gcs_client __init__ start_head_processes start_ray_processes".split())
"""Of ray/_private/node.py: a driver or ``ray start`` that gets no further."""

_RAY_FETCHES = frozenset("fetch_registered_method _wait_for_function".split())
"""Of ray/_private/function_manager.py: a worker has a call, and not yet the function, which the driver gave to the GCS."""


def place_in_libraries(frames: Sequence[Frame], names: Sequence[str], inner: range, thread: Thread | None) -> tuple[Kind | None, str]:
    """Kind and function when library frames above the own code tell; outermost telling frame wins within torch (all_reduce over wait)."""
    if meets_nodes(frames[i] for i in inner):
        return Kind.RENDEZVOUS, "the rendezvous of the nodes"
    torch_dist = [
        i
        for i in inner
        if (frames[i].file.startswith(_TORCH_DISTRIBUTED) and not _works_itself(frames, i)) or names[i] in _TORCH_WAIT or is_bare_call(frames[i])
    ]
    for wanted, kind in ((_NEW_GROUP, Kind.NEW_GROUP), (RENDEZVOUS, Kind.RENDEZVOUS), ({"destroy_process_group"}, Kind.DESTROY)):
        if found := [i for i in torch_dist if names[i] in wanted]:
            outermost = names[found[-1]]  # private where a framework builds its group from torch's parts
            return kind, "the creation of a process group" if outermost.startswith("_") else outermost
    for i in reversed(torch_dist):
        if names[i] == "_wait_batch_p2p":
            return Kind.P2P, "batch_isend_irecv"
        if names[i] in P2P:
            return Kind.P2P, names[i]
        if names[i] in COLLECTIVES or names[i] in _TORCH_WAIT:
            return Kind.COLLECTIVE, "wait_tensor" if names[i] in _TORCH_WAIT else names[i]
    if (told := _in_c(frames, names, inner) or _of_rays(frames, names, inner)) is not None:
        return told
    if 0 in inner and is_bare_wrapper(frames[0]):
        return Kind.COLLECTIVE, names[0]
    for i in inner:
        n, f = names[i], frames[i].file
        if waits_at_loader(frames, names, i):
            return Kind.DATALOADER, n
        if i == 0 and not f and n.lower().endswith(_NEXT_OF_LOADER):
            return Kind.DATALOADER, n
        if not f and n == LOADER:
            return Kind.DATALOADER, n
        if not f and frames[i].function in CALLS_OF_RAY:
            return (Kind.RAY_GET, "get") if n == "get" else (Kind.RAY_WAIT, "wait")
        at_device = (f.startswith("torch/cuda/") and n in _CUDA_WAITS) or (f.startswith("jax/_src/") and n in _JAX_WAITS)
        if n in _JAX_TOGETHER and f.endswith("jax/experimental/multihost_utils.py"):
            return Kind.COLLECTIVE, n
        if n in _JAX_STARTS and f.endswith("jax/_src/distributed.py"):
            return Kind.RENDEZVOUS, "jax.distributed.initialize"
        if at_device or is_bare_result(frames[i]):
            return Kind.CUDA, n
        if f.endswith("ray/_private/node.py") and n in _RAY_STARTS:
            return Kind.RAY_INIT, "connect to the GCS" if n == "_init_gcs_client" else n
        if f.endswith("ray/_private/function_manager.py") and n in _RAY_FETCHES:
            return Kind.SOCKET, n
        if f.endswith("ray/util/placement_group.py") and n == "wait":
            return Kind.RAY_WAIT, GROUP_WAIT
        if f == "ray/_raylet.pyx" and n == "wait":
            return Kind.RAY_WAIT, "wait"
        if f == "ray/worker.py" and n == "main_loop":  # before Ray 2.0
            return (Kind.RAY_IDLE, n) if i <= 1 else (None, "")
        if f.endswith("ray/_private/worker.py") or f == "ray/worker.py":
            if n in ("get_objects", "get"):
                return Kind.RAY_GET, "get"
            if n == "wait":
                return Kind.RAY_WAIT, "wait"
            if n == "connect" or (n == "init" and any(x == "connect" for x in names[: i + 1])):
                return Kind.RAY_INIT, "connect"
            if n == "main_loop":
                return (Kind.RAY_IDLE, n) if i == 0 else (None, "")
    return stdlib_place(frames, names, inner, thread)


def _in_c(frames: Sequence[Frame], names: Sequence[str], inner: range) -> tuple[Kind, str] | None:
    """The collective that the innermost frame of Python makes in C."""
    at = next((i for i in inner if not is_native(frames[i])), None)
    op = IN_C.get((names[at], frames[at].file)) if at is not None else None
    return (Kind.COLLECTIVE, op) if op is not None else None


def _of_rays(frames: Sequence[Frame], names: Sequence[str], inner: range) -> tuple[Kind, str] | None:
    """The call of ray.util.collective: of NCCL's groups no frame of torch stands above it."""
    for i in inner:
        if not frames[i].file.startswith(RAYS_COLLECTIVES):
            continue
        if names[i] in RAYS_RENDEZVOUS:
            return Kind.RENDEZVOUS, "the rendezvous of a group of Ray's"
        name = names[i].removesuffix("_multigpu")
        if frames[i].file.endswith("/collective.py") and (name in P2P or name in RAYS_CALLS):
            return (Kind.P2P, name) if name in P2P else (Kind.COLLECTIVE, RAYS_CALLS[name])
    return None


def _works_itself(frames: Sequence[Frame], at: int) -> bool:
    """Is it a function of the checkpoint's that has called something else than torch's collectives?"""
    inside = frames[:at]
    return bool(inside) and _CHECKPOINT in frames[at].file and all(_CHECKPOINT in f.file or not f.file.startswith(_TORCH_DISTRIBUTED) for f in inside)
