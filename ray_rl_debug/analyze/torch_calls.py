"""Names of torch's calls: collectives, sends and receives, the rendezvous; and such calls of which somebody wrote the name alone."""

from __future__ import annotations

import re

from ray_rl_debug.model.snapshot import Frame

COLLECTIVES = frozenset(
    "all_reduce all_gather all_gather_into_tensor all_gather_object all_gather_coalesced all_to_all all_to_all_single barrier monitored_barrier"
    " broadcast broadcast_object_list gather gather_object reduce reduce_scatter reduce_scatter_tensor scatter scatter_object_list"
    " all_reduce_coalesced wait_tensor _all_gather_base _reduce_scatter_base all_gather_single reduce_scatter_single"
    " gather_for_metrics wait_for_everyone pad_across_processes".split()
)
"""The last three are accelerate's."""
P2P = frozenset(
    "send recv isend irecv batch_isend_irecv send_object_list recv_object_list recv_object recv_tensor_dict send_object"
    " recv_forward recv_backward send_forward send_backward send_forward_recv_backward send_backward_recv_forward".split()
)
"""The last six are Megatron's."""
CALLS_OF_TORCH = (COLLECTIVES | P2P) - {"send", "recv", "reduce", "gather", "scatter"} | {
    "TCPStore",
    "init_process_group",
    "destroy_process_group",
    "new_group",
}
"""Names that are nobody else's, also where no file stands beside them."""
LOADER = "dataloader"
"""*It sits in the data loader*: which of its functions that is, nobody said."""
CALLS_OF_RAY = frozenset({"ray.get", "ray.wait"})
ROOTED = frozenset("broadcast reduce gather scatter broadcast_object_list scatter_object_list gather_object".split())
"""Collectives in which the ranks name one rank as source or destination."""
MEETS_ALL = COLLECTIVES - ROOTED - {"wait_tensor"}
"""Collectives that nobody leaves before all have come."""
IN_C = {
    ("_verify_param_shape_across_processes", "torch/distributed/utils.py"): "all_gather",
    ("_sync_params_and_buffers", "torch/distributed/utils.py"): "broadcast",
    ("_broadcast_tensors", "torch/distributed/_state_dict_utils.py"): "broadcast",
    ("_distributed_broadcast_coalesced", "torch/nn/parallel/distributed.py"): "broadcast",
    ("_pre_forward", "torch/nn/parallel/distributed.py"): "broadcast",
}
"""Functions of torch's wrappers of models whose collective is made in C, so that no frame of Python names it: the check of parameters when
the wrapper is built, and what ranks get from the first one."""
RAYS_COLLECTIVES = "ray/util/collective/"
RAYS_CALLS = {
    "allreduce": "all_reduce",
    "barrier": "barrier",
    "reduce": "reduce",
    "broadcast": "broadcast",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
}
"""Of ray.util.collective, by torch's names."""
RAYS_RENDEZVOUS = frozenset({"meet", "get_nccl_id", "init_collective_group", "_rendezvous"})
STORE = "TCPStore"
RENDEZVOUS = frozenset(
    "init_process_group _create_c10d_store _env_rendezvous_handler _store_based_barrier _tcp_rendezvous_handler rendezvous"
    " _new_process_group_helper init_model_parallel_group TCPStore".split()
)
_RESULTS = frozenset("item tolist cpu synchronize".split())  # methods of tensors, streams and events that wait for the GPU
_OF_VARIABLES = re.compile(r"[a-z_][a-z0-9_]{0,60}(?:\.[a-z_][a-z0-9_]{0,60}){1,6}$")
"""``result.copy_done``: a function's own name has no object of an object before it."""
_TORCH_MODULES = frozenset({"dist", "torch.distributed", "accelerator", "self.accelerator"})
"""What stands in front of them where somebody wrote the call as its line has it: ``dist.barrier() @ train.py:211``."""


def is_bare_call(frame: Frame) -> bool:
    """Is it a call of torch's or Ray's of which somebody wrote the name alone, in a sentence, or as its line has it?"""
    if not frame.file and not frame.line and frame.function in CALLS_OF_TORCH | CALLS_OF_RAY | {LOADER}:
        return True
    module, _, name = frame.function.rpartition(".")
    if is_bare_wrapper(frame):
        return True
    return (module in _TORCH_MODULES and name in COLLECTIVES | P2P | RENDEZVOUS | {"new_group"}) or is_bare_result(frame)


def is_bare_wrapper(frame: Frame) -> bool:
    """Is it a function that is called after the collective in it, told without its file? ``poll_and_all_reduce``, ``broadcast_pyobj``"""
    return not frame.file and not frame.line and _IN_NAME.search(frame.function.rpartition(".")[2]) is not None


_IN_NAME = re.compile(r"(?:^|_)(?:all_?reduce|all_?gather_?v?|all_?to_?all_?v?|reduce_?scatter_?v?|barrier)(?:_|$)|^broadcast_[a-z]")


def is_bare_result(frame: Frame) -> bool:
    """``loss.item()`` as somebody tells it: a result is asked for that the GPU still has to give.

    Its place may stand beside it, where what it is asked of is a variable's.
    """
    of, dot, name = frame.function.rpartition(".")
    return bool(dot) and name in _RESULTS and (not (frame.file or frame.line) or _OF_VARIABLES.match(of) is not None)
