"""Frames below Python: what ``py-spy --native``, pystack and gdb show of C, C++ and Rust.

They name the system call that a thread sleeps in where the kernel was not asked, and the wait for a GPU or for other ranks that Python's
frames do not tell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ray_rl_debug.analyze.kernel_calls import family
from ray_rl_debug.model.snapshot import Frame

_NATIVE_FILE = re.compile(
    r"\.so(?:\.[\d.]+)?$|\.(?:c|cc|cpp|cxx|cu|cuh|h|hpp|inl|rs|S|dylib)$|^kernel$|^\[(?:vdso|kernel|unknown)\]$|(?:^|/)[Pp]ython[\d.]{0,6}$|^dyld$"
)
_DECORATION = re.compile(r"^(?:__(?:GI_|libc_|new_|old_|internal_|pthread_)*|_+)|(?:@.*|_nocancel|_cancel|_time64|64)$")
_LOCKS = re.compile(r"futex|pthread_(?:cond|mutex|rwlock|join)|cond_(?:timed)?wait|lll_lock|sem_(?:timed)?wait|new_sem_wait|PyThread_acquire_lock")
_MUTEX = re.compile(r"lll_lock_wait|pthread_(?:mutex|rwlock)_\w*lock")
_GPU = re.compile(
    r"^(?:cu|cuda|hip|aclrt|rt)(?:Ctx|Device|Stream|Event)?(?:Device|Stream|Event)?Synchronize|_local_scalar_dense_(?:cuda|npu|hip)"
    r"|^cudaMemcpy$|^(?:cuda|hip)EventQuery$"
)
_DEVICE = re.compile(r"(?:^|/)lib(?:cuda|cudart|amdhip64|hsa-runtime64|torch_npu|ascendcl|runtime|ze_loader)\b[\w.-]*$")
"""Libraries of accelerators: a thread that sleeps below one of them waits for its device."""
_GROUP_CALL = re.compile(r"c10d::\w*ProcessGroup\w*::(\w+)")
_GROUP_WAIT = re.compile(r"c10d::.*Work\w*::(?:wait|synchronize\w*)$")
_LIBRARY_CALL = re.compile(r"^(?:nccl|rccl|hccl)(AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|Send|Recv|AllToAll)\b", re.IGNORECASE)
_WORDS = {
    "allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter", "alltoall": "all_to_all",
    "broadcast": "broadcast", "reduce": "reduce", "barrier": "barrier", "gather": "gather", "scatter": "scatter", "send": "send", "recv": "recv",
}  # fmt: skip
_FEW = 12
"""Innermost frames that are asked: what lies below is who called."""


def is_native(frame: Frame) -> bool:
    """Is it a frame of C, C++ or Rust? One with neither file nor line is, unless Python's text lacks them; ``??`` has no symbols."""
    return _NATIVE_FILE.search(frame.file) is not None or (not frame.file and ("::" in frame.function or frame.function.startswith(("0x", "??"))))


def native_call(frames: Sequence[Frame]) -> str | None:
    """The system call that the innermost native frames show (``read``, ``poll``, ``futex``); None where they show none."""
    for frame in frames[:_FEW]:
        if not is_native(frame):
            return None
        name = frame.function.partition("(")[0].rsplit("::", 1)[-1].strip()
        if _LOCKS.search(name):
            return "futex"
        found = family(_bare(name))
        if found is not None:
            return found
    return None


def is_at_mutex(frames: Sequence[Frame]) -> bool:
    """Does it want a mutex, which only its holder gives back? A condition may be signalled by anybody."""
    return any(is_native(f) and _MUTEX.search(f.function.partition("(")[0]) for f in frames[:_FEW])


def native_wait(frames: Sequence[Frame]) -> tuple[str, bool] | None:
    """What native frames tell of a wait for other ranks: the operation; and whether it is only a wait for the GPU, of unknown kind."""
    for frame in frames[:_FEW]:
        if not is_native(frame):
            return None
        name = frame.function.partition("(")[0].strip()
        found = _LIBRARY_CALL.match(name) or _GROUP_CALL.search(frame.function)
        op = _WORDS.get(re.sub(r"_|base|coalesced|into_tensor|single", "", found[1].lower())) if found else None
        if op is not None:
            return op, False
        if _GROUP_WAIT.search(name):
            return "work.wait", False
        if _GPU.search(name.rsplit("::", 1)[-1]) or _DEVICE.search(frame.file):
            return name.rsplit("::", 1)[-1], True
    return None


_RAY = re.compile(
    r"(?:^|\b)ray::core::(?:CoreWorker::(?P<call>Get|Wait)|(?P<idle>CoreWorker::RunTaskExecutionLoop|CoreWorkerProcessImpl::RunWorkerTask\w*))\b"
)
_RAY_TASK = re.compile(r"ray::core::CoreWorker::ExecuteTask|task_execution_handler")


def native_ray_call(frames: Sequence[Frame]) -> str | None:
    """What a thread without Python frames does in Ray: ``Get`` or ``Wait`` for results, ``idle`` until it is called; None where nothing tells."""
    for frame in frames:
        if _RAY_TASK.search(frame.function):
            return None
        if found := _RAY.search(frame.function):
            return found["call"] or "idle"
    return None


def _bare(name: str) -> str:
    """``__libc_recvmsg`` and ``__GI___clock_nanosleep`` → the name of the system call."""
    while True:
        short = _DECORATION.sub("", name)
        if short == name or not short:
            return name
        name = short
