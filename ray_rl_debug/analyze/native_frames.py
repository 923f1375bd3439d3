"""Frames below Python: what ``py-spy --native``, pystack and gdb show of C, C++ and Rust.

They name the system call that a thread sleeps in where the kernel was not asked, and the wait for a GPU or for other ranks that Python's
frames do not tell.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from ray_rl_debug.analyze.kernel_calls import family
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.model.snapshot import Frame

_NATIVE_FILE = re.compile(
    r"\.(?:so|dll|pyd)(?:\.[\d.]+)?$|\.(?:c|cc|cpp|cxx|cu|cuh|h|hpp|inl|inc|rs|S|dylib)$|^kernel$|^\[(?:vdso|kernel|unknown)\]$|(?:^|/)[Pp]ython[\d.]{0,6}$|^dyld$"
)
_DECORATION = re.compile(r"^(?:__(?:GI_|libc_|new_|old_|internal_|pthread_)*|_+)|(?:@.*|_nocancel|_cancel|_time64|64)$")
_LOCKS = re.compile(
    r"futex|pthread_(?:cond|mutex|rwlock|join)|cond_(?:timed)?wait|lll_lock|sem_(?:timed)?wait|new_sem_wait|PyThread_acquire_lock"
    r"|internal_atexit|take_gil|absl::.*Mutex::|AbslInternalPerThreadSemWait|AbslInternalSpinLockDelay|ZwWaitForAlertByThreadId|NtWaitForSingleObject|RtlSleepConditionVariable|RtlEnterCriticalSection"
)
_MUTEX = re.compile(
    r"lll_lock_wait|pthread_(?:mutex|rwlock)_\w*lock|absl::.*Mutex::(?:Reader)?(?:Lock|Block)|absl::.*SpinLock::(?:Slow)?Lock|AbslInternalSpinLockDelay|std::(?:recursive_|shared_)?mutex::lock|RtlEnterCriticalSection|absl::.*DeadlockCheck"
    r"|sync::mutex::\S{0,40}lock_contended|RawMutex::lock_slow"
    r"|^(?:__)?internal_atexit$|^_enter_buffered_busy$|^_?PyImport_AcquireLock$"
)
"""``__internal_atexit`` does nothing but take the lock of the list of what runs at the end; a child of a fork may have it taken for ever."""
_CONDITION = re.compile(
    r"\bstd::(?:__\w{1,6}::)?condition_variable(?:_any)?::wait|absl::\w{0,20}:{0,2}CondVar::Wait|(?:std|__1)::future|std::__future_base|arrow::Future"
)
_GIL = re.compile(r"^(?:take_gil|PyEval_(?:RestoreThread|AcquireThread|AcquireLock)|PyGILState_Ensure|_?PyThreadState_Attach)$")
_GPU = re.compile(
    r"^(?:cu|cuda|hip|aclrt|rt|mu|musa)(?:Ctx|Device|Stream|Event)?(?:Device|Stream|Event)?Synchronize|_local_scalar_dense_(?:cuda|npu|hip|xpu)"
    r"|^cudaMemcpy$|^(?:cuda|hip)(?:Event|Stream)Query$"
    r"|^ze(?:Event|CommandQueue|CommandList|Fence)HostSynchronize$|^zeCommandQueueSynchronize$|^(?:ur|pi)(?:Event|Queue)s?(?:Wait|Finish)$|^cl(?:Finish|WaitForEvents)$"
)
_DEVICE = re.compile(
    r"(?:^|/)lib(?:cuda|cudart|amdhip64|hsa-runtime64|torch_npu|ascendcl|runtime|ze_loader|ze_intel_gpu|ur_adapter_\w{1,20}|musa|musart)\b[\w.-]*$"
)
"""Libraries of accelerators: a thread that sleeps below one of them waits for its device."""
OF_DEVICE = "a call of the device's library"
"""Operation of such a wait whose function has no name."""
_GROUP_CALL = re.compile(r"c10d::\w*ProcessGroup\w*::(\w+)")
_GROUP_WAIT = re.compile(r"c10d::.*Work\w*::(?:wait|synchronize\w*)$")
_LIBRARY_CALL = re.compile(r"^(?:nccl|rccl|hccl)(AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|Send|Recv|AllToAll)\b", re.IGNORECASE)
_MPI_CALL = re.compile(
    r"^P?MPI_I?(Allreduce|Allgather|Alltoall|Reduce_scatter|Barrier|Bcast|Reduce|Gather|Scatter|Ssend|Rsend|Send|Recv|Sendrecv)(?:v|w|_c|_init|_block|_replace)*$"
)
_MPI_INSIDE = re.compile(
    r"^(?:ompi_coll_\w{0,40}?_|ompi_comm_|mca_coll_\w{0,40}?_|MPIR_|MPIDI_\w{0,40}?_)"
    r"i?(allreduce|allgather|alltoall|reduce_scatter|barrier|bcast|reduce|gather|scatter)v?(?:_|$)",
    re.IGNORECASE,
)
"""The same inside of Open MPI and MPICH, where the call itself was cut off."""
_MAKES = re.compile(
    r"^p?(?:nccl|rccl|hccl)Comm(?:Init(?!All\b)|Split)|(?:NCCL|HCCL)Comm::create|ProcessGroup\w*::(?:init|get|broadcastUnique)(?:NCCL|HCCL)|c10d::\w*Store::(?:do)?(?:get|wait)\b"
    r"|^P?MPI_(?:Init(?:_thread)?|Comm_(?:split|dup|create)\w*)$|^bootstrap(?:Net|Init|Root|AllGather|Barrier|Split)\w*$|^initTransportsRank$",
    re.IGNORECASE,
)
"""The ranks of a group meet to make their communicator; each comes back when all have come.

``ncclCommInitAll`` is of one process for its own GPUs."""
_ENDS = re.compile(
    r"^p?(?:nccl|rccl|hccl)Comm(?:Abort|Destroy|Finalize)|^comm(?:Destroy\w*|Reclaim)$|^P?MPI_Finalize$|^ompi_mpi_finalize$|^MPID_Finalize$|(?:NCCL|HCCL)Comm::(?:abort|\w*Abort)|ProcessGroup\w*::(?:abort|shutdown)"
)
_LAUNCHES = re.compile(r"^p?(?:nccl|rccl|hccl)(?:Group(?:End|EndInternal)|LaunchKernel\w*|StrongStreamLaunchKernel|EnqueueCheck)$")
"""NCCL hands an operation to the card: which one does not show."""
_AUTOGRAD = "autograd::ReadyQueue::pop"
"""Its threads hand each other the work of a backward pass there; the one that began it waits until all is done."""
_SERVES = re.compile(
    r"(?:ncclCommWatchdog|watchdogHandler|[hH]eartbeatMonitor|workCleanupLoop|Watchdog::run|^ncclProxy(?:Service|Progress|GetPostedOps)\b|^ncclIbAsyncThread)"
)
"""Threads of torch's and NCCL's own that look after the operations of others."""
_SIGNAL = "<signal handler called>"
_WORDS = {
    "allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter", "alltoall": "all_to_all",
    "broadcast": "broadcast", "bcast": "broadcast", "reduce": "reduce", "barrier": "barrier", "gather": "gather",
    "ssend": "send", "rsend": "send", "sendrecv": "send", "scatter": "scatter", "send": "send", "recv": "recv",
}  # fmt: skip
_OF_C = re.compile(r"p?(?:nccl|rccl|hccl)[A-Z]|(?:cu|cuda|hip|aclrt)[A-Z]|P?MPI_|pthread_")
"""Names of libraries that are not Python's, where somebody wrote a name alone."""
_FEW = 12
"""Innermost frames that are asked: what lies below is who called."""
_DEEP = 24
"""The same of a wait for other ranks: below a call of NCCL stand a dozen frames of the driver without names."""


def is_native(frame: Frame) -> bool:
    """Is it a frame of C, C++ or Rust? One with neither file nor line is, unless Python's text lacks them; ``??`` has no symbols.

    A function of Python that has the name of one of NCCL's does nothing but call that.
    """
    if _NATIVE_FILE.search(frame.file) is not None or _LIBRARY_CALL.match(frame.function):
        return True
    if "::" in frame.function and not frame.file.endswith((".py", ".pyx", ">")):
        return True  # where a form cut the line, its library may end anywhere
    return frame.file.strip("?") == "" and (frame.function.startswith(("0x", "??")) or _OF_C.match(frame.function) is not None)


def is_gpu_wait(frame: Frame) -> bool:
    """Is it the call with which a program waits for its card?"""
    return _GPU.search(frame.function.partition("(")[0].strip().rsplit("::", 1)[-1]) is not None


def native_call(frames: Sequence[Frame]) -> str | None:
    """The system call that the innermost native frames show (``read``, ``poll``, ``futex``); None where they show none."""
    for frame in frames[:_FEW]:
        if not is_native(frame):
            return None
        name = frame.function.partition("(")[0].rsplit("::", 1)[-1].strip()
        if _LOCKS.search(name) or _MUTEX.search(frame.function.partition("(")[0].strip()):
            return "futex"
        found = family(_bare(name))
        if found is not None and not (found == "wait" and "::" in frame.function):
            return found  # `Work::wait` of C++ waits for no child
    return None


def is_at_mutex(frames: Sequence[Frame]) -> bool:
    """Does it want a mutex, which only its holder gives back? A condition may be signalled by anybody.

    A signal's handler that wants a lock has it only when the code that it interrupted goes on, and that waits for the handler.
    """
    native = [f for f in frames[:_FEW] if is_native(f)]
    return any(_MUTEX.search(f.function.partition("(")[0]) for f in native) or is_in_handler(frames)


def is_at_condition(frames: Sequence[Frame]) -> bool:
    """Does it wait in C++ until other threads of its library have done something? Python's own locks are built on conditions too, and are none."""
    native = [f.function for f in itertools.takewhile(is_native, frames[:_FEW])]
    return any(_CONDITION.search(f) for f in native) and not any("PyThread_acquire_lock" in f for f in native)


def wants_interpreter(frames: Sequence[Frame]) -> bool:
    """Does it wait in C for the lock of Python's interpreter? Each thread does for moments; nothing of Python lies inside of that wait."""
    for frame in frames[:_FEW]:
        if not is_native(frame):
            return False
        if _GIL.match(frame.function.partition("(")[0].strip()):
            return True
    return False


def is_in_handler(frames: Sequence[Frame]) -> bool:
    """Does a signal's handler run, on top of what it interrupted?"""
    return any(f.function == _SIGNAL for f in frames[:_FEW])


def native_wait(frames: Sequence[Frame]) -> tuple[Kind, str] | None:
    """What native frames tell of a wait for other ranks, and the operation; else of one for autograd's threads, or for the GPU, of unknown kind."""
    device: tuple[Kind, str] | None = None
    if any(_SERVES.search(f.function) for f in frames[:_DEEP]):
        return None
    for frame in frames[:_DEEP]:
        if not is_native(frame):
            break
        name = frame.function.partition("(")[0].strip()
        short = name.rsplit("::", 1)[-1]
        if _MAKES.search(name):
            return Kind.RENDEZVOUS, short
        if _ENDS.search(name):
            return Kind.DESTROY, short
        found = _LIBRARY_CALL.match(name) or _MPI_CALL.match(name) or _MPI_INSIDE.match(name) or _GROUP_CALL.search(frame.function)
        op = _WORDS.get(re.sub(r"_|impl|base|coalesced|into_tensor|single", "", found[1].lower())) if found else None
        if op is not None:
            return Kind.COLLECTIVE, op
        if _GROUP_WAIT.search(name):
            return Kind.COLLECTIVE, "work.wait"
        if device is not None and device[0] is not Kind.COLLECTIVE and _LAUNCHES.match(name):
            device = (Kind.COLLECTIVE, "a call of NCCL")
        if _AUTOGRAD in name:
            return Kind.EVENT, "the threads of autograd"
        if is_gpu_wait(frame) and (device is None or device[1] == OF_DEVICE):
            device = (Kind.CUDA, short)
        elif device is None and _DEVICE.search(frame.file) and not _MUTEX.search(frames[0].function.partition("(")[0]):
            device = (Kind.CUDA, OF_DEVICE if short.startswith(("?", "0x")) else short)
    return device


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
