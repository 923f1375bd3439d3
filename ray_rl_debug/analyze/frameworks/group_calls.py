"""Calls of process groups in C++ of which Python shows a wrapper alone: collectives that torch does not know, sends and receives of a pipeline."""

from __future__ import annotations

from ray_rl_debug.analyze.frameworks.table import Spot

COORDINATED: tuple[Spot, ...] = (
    *(
        Spot(f"{buffer}.{name}", f"deep_ep/{file}.py")
        for buffer, file in (("Buffer", "buffer"), ("ElasticBuffer", "buffer_v2"))
        for name in ("dispatch", "combine", "internode_dispatch", "internode_combine", "low_latency_dispatch", "low_latency_combine")
    ),
    Spot("all_gather_coalesced", "zero/partition_parameters.py"),
    *(Spot(f"{kind}.wait", "zero/partition_parameters.py") for kind in ("AllGatherHandle", "AllGatherCoalescedHandle", "MultipleAllGatherHandles")),
    *(Spot(name, "horovod/torch/mpi_ops.py") for name in ("synchronize", "join", "barrier")),
    *(Spot("broadcast_pyobj", f"sglang/srt/utils{file}.py") for file in ("", "/common")),
    # the gradients of all ranks are reduced on a stream of their own, and this waits until that stream is done
    *(Spot("independent_gradient_partition_epilogue", f"zero/{file}.py") for file in ("stage_1_and_2", "stage2", "stage3")),
    *(Spot(name, "nccl.pyx") for name in ("allReduce", "broadcast", "bcast", "reduce", "allGather", "reduceScatter")),
    *(Spot(name, "multislice.py") for name in ("_merge_globalized_replicas", "broadcast_one_replica_to_all")),
    *(Spot(name, "tensorrt_llm/_utils.py") for name in ("mpi_barrier", "mpi_allgather", "mpi_broadcast")),
)
"""DeepEP 1.2 and 2.0, SGLang's requests for all ranks (0.4, 0.5), DeepSpeed's ZeRO-3 (0.15), Horovod (0.28), CuPy's NCCL (12, 13), Orbax's
restore of one replica for all (0.11), which all processes compile and run together, and the MPI calls of TensorRT-LLM 1.0."""

_PYNCCL = ("device_communicators/pynccl.py", "device_communicators/pynccl_wrapper.py")
BY_CTYPES: tuple[Spot, ...] = (
    *(
        Spot(f"PyNcclCommunicator.{op}", _PYNCCL[0])
        for op in ("all_reduce", "all_gather", "all_gatherv", "reduce_scatter", "reduce_scatterv", "broadcast")
    ),
    *(Spot(f"NCCLLibrary.nccl{op}", _PYNCCL[1]) for op in ("AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce")),
)
"""NCCL's collectives as vLLM and SGLang call them, past torch; so do trainers that send weights to an engine."""
MEETINGS: tuple[Spot, ...] = (Spot("NCCLLibrary.ncclCommInitRank", _PYNCCL[1]),)
"""Where all members of such a group come together when it is made."""

SHARDED: tuple[Spot, ...] = (
    Spot("PartitionedParameterCoordinator.fetch_sub_module", "zero/partitioned_param_coordinator.py"),
    Spot("PrefetchCoordinator.fetch_sub_module", "zero/stage3.py"),  # before 0.6
    Spot("DeepSpeedZeRoOffload.pre_sub_module_forward_function", "zero/parameter_offload.py"),
    Spot("DeepSpeedZeRoOffload.pre_sub_module_backward_function", "zero/parameter_offload.py"),
    Spot("_pre_forward_unshard", "torch/distributed/fsdp/_runtime_utils.py"),
    Spot("FSDPParamGroup.pre_forward", "torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py"),
)
"""DeepSpeed's ZeRO-3 and torch's FSDP: before a module runs, all ranks bring its parameters together. A rank that does not run it never comes."""
_PIPELINE = "p2p_communication.py"
PAIRED: tuple[Spot, ...] = (
    *(Spot(name, "deepspeed/runtime/pipe/p2p.py") for name in ("send", "recv")),
    *(
        Spot(name, _PIPELINE)
        for name in (
            "recv_forward",
            "recv_backward",
            "send_forward",
            "send_backward",
            "send_forward_recv_backward",
            "send_backward_recv_forward",
            "send_forward_recv_forward",
            "send_backward_recv_backward",
            "send_forward_backward_recv_forward_backward",
            "_batched_p2p_ops",
            "_p2p_ops",
        )
    ),
    *(Spot(f"GroupCoordinator.{verb}_{what}", "distributed/parallel_state.py") for verb in ("send", "recv") for what in ("object", "tensor_dict")),
)
"""Megatron-core 0.6 to 0.14; DeepSpeed's pipelines, which paired two ranks by a broadcast; and the groups of vLLM and SGLang, whose stages hand on
tensors with their names. What one stage sends, its neighbour must receive."""
