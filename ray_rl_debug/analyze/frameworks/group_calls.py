"""Calls of process groups in C++ of which Python shows a wrapper alone: collectives that torch does not know, sends and receives of a pipeline."""

from __future__ import annotations

from ray_rl_debug.analyze.frameworks.table import Spot

COORDINATED: tuple[Spot, ...] = (
    *(
        Spot(f"Buffer.{name}", "deep_ep/buffer.py")
        for name in ("dispatch", "combine", "internode_dispatch", "internode_combine", "low_latency_dispatch", "low_latency_combine")
    ),
    *(Spot(name, "tensorrt_llm/_utils.py") for name in ("mpi_barrier", "mpi_allgather", "mpi_broadcast")),
)
"""DeepEP 1.2 and the MPI calls of TensorRT-LLM 1.0."""

_PIPELINE = "pipeline_parallel/p2p_communication.py"
PAIRED: tuple[Spot, ...] = tuple(
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
    )
)
"""Megatron-core 0.6 to 0.14: what one stage of a pipeline sends, its neighbour must receive."""
