"""What rules say of a process that waits for its own GPU: nobody but its GPU keeps it, and stacks do not show what that does."""

from __future__ import annotations

import msgspec

from ray_rl_debug.analyze.gpu_waits import GPU_COLLECTIVE
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.seen import Seen, describe_place

REMEDY_GPU = (
    "see whether the GPU works (nvidia-smi: 100 % at little power is a kernel that spins), and dmesg for Xid",
    "cuda-gdb -p PID, then info cuda kernels, names the kernel; with CUDA_LAUNCH_BLOCKING=1 the stack shows who started it",
)


def waits_for_own_gpu(one: Seen, *, is_behind: bool) -> bool:
    """Does it wait for its GPU? Where counts show it behind the others, what looks like their collective is something before it."""
    return one.kind is Kind.CUDA or (is_behind and one.place is not None and one.place.op == GPU_COLLECTIVE)


def at_own_gpu(one: Seen) -> str:
    """``waits for the GPU in train_step (train.py:16)``."""
    return describe_place(msgspec.structs.replace(one.place, kind=Kind.CUDA)) if one.place is not None else one.does()
