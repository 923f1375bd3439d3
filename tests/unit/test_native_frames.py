"""Native frames above Python's do not hide where a thread stands; they add what Python does not show."""

from __future__ import annotations

import pytest
from unit.scenes import Stacks, process

from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.main_activity import see_threads
from ray_rl_debug.analyze.native_frames import OF_DEVICE
from ray_rl_debug.analyze.places import place_of
from ray_rl_debug.model.snapshot import Frame, Sample, ThreadSample

STEP = Frame(function="step", file="train.py", line=40)
GATHER = Frame(function="all_gather_into_tensor", file="torch/distributed/distributed_c10d.py", line=4381)


def native(function: str, file: str = "libc.so.6") -> Frame:
    return Frame(function=function, file=file)


@pytest.mark.parametrize(
    ("frames", "kind", "op"),
    [
        ((native("sched_yield"), native("c10d::ops::wait()", "libtorch_cpu.so"), GATHER, STEP), Kind.COLLECTIVE, "all_gather_into_tensor"),
        ((native("__libc_recv"), STEP), Kind.SOCKET, "step"),
        ((native("__GI___clock_nanosleep"), STEP), Kind.SLEEP, "step"),
        ((native("read", "libpthread-2.31.so"), STEP), Kind.FILE, "step"),
        ((native("pthread_cond_timedwait@@GLIBC_2.3.2"), STEP), Kind.LOCK, "step"),
        ((native("cuStreamSynchronize", "libcuda.so.550.54"), STEP), Kind.CUDA, "cuStreamSynchronize"),
        ((native("cudaStreamSynchronize", ""), STEP), Kind.CUDA, "cudaStreamSynchronize"),
        ((native("ncclAllReduce", ""), STEP), Kind.COLLECTIVE, "all_reduce"),
        ((native("sched_yield"), native("0x7f01", "libze_intel_gpu.so.1.17"), STEP), Kind.CUDA, OF_DEVICE),
        ((native("ur::level_zero::urEventWait", "libur_adapter_level_zero.so.0"), STEP), Kind.CUDA, "urEventWait"),
        (
            (native("ioctl"), native("at::native::_local_scalar_dense_cuda(at::Tensor const&)", "libtorch_cuda.so"), STEP),
            Kind.CUDA,
            "_local_scalar_dense_cuda",
        ),
        (
            (native("poll"), native("c10d::ProcessGroupGloo::AsyncWork::wait(std::chrono::duration<long>)", "libtorch_cpu.so"), STEP),
            Kind.COLLECTIVE,
            "work.wait",
        ),
        (
            (native("futex"), native("c10d::ProcessGroupNCCL::allreduce(std::vector<at::Tensor>&)", "libtorch_cuda.so"), STEP),
            Kind.COLLECTIVE,
            "all_reduce",
        ),
        ((native("ncclAllReduce", "vllm/distributed/device_communicators/pynccl_wrapper.py"), STEP), Kind.COLLECTIVE, "all_reduce"),
        (
            (native("pthread_cond_wait"), native("torch::autograd::ReadyQueue::pop()", "libtorch_cpu.so"), STEP),
            Kind.EVENT,
            "the threads of autograd",
        ),
        ((native("sem_wait"), Frame(function="acquire", file="threading.py", line=123), STEP), Kind.LOCK, "acquire"),
        ((native("ncclAllReduce", "libnccl.so.2"), STEP), Kind.COLLECTIVE, "all_reduce"),
        ((native("work", "mylib.so"), STEP), Kind.CODE, "step"),
    ],
)
def test_native_frames_tell(frames: tuple[Frame, ...], kind: Kind, op: str) -> None:
    place = place_of(frames)
    assert (place.kind, place.op) == (kind, op)
    assert place.own == len(frames) - 1
    assert place.path == (("step", "train.py", 40),)


BACKWARD = "_engine_run_backward@torch/autograd/graph.py:825 backward@torch/autograd/__init__.py:347 step@train.py:40 <module>@train.py:90"
HOOK = "reduce_scatter_tensor@torch/distributed/distributed_c10d.py:4100 _post_backward_hook@torch/distributed/fsdp/_runtime_utils.py:760"


def seen_first(*threads: tuple[str, str | None]) -> tuple[str, Kind]:
    stacks = Stacks()
    one = process(stacks, 7, "python train.py", kind="named")
    sample = Sample(at_s=0.0, threads=tuple(ThreadSample(stack=stacks.add(text), tid=7 + i, name=name) for i, (text, name) in enumerate(threads)))
    first = see_threads(stacks.node([one]), one, sample)[0]
    return first.frames[0].function, first.place.kind


def test_collective_of_autograd_is_the_place_of_its_rank() -> None:
    assert seen_first((BACKWARD, "MainThread"), (HOOK, None)) == ("reduce_scatter_tensor", Kind.COLLECTIVE)


def test_thread_of_python_is_no_thread_of_autograd() -> None:
    other = "all_gather@torch/distributed/distributed_c10d.py:4100 run@threading.py:975 _bootstrap@threading.py:1002"
    assert seen_first((BACKWARD, "MainThread"), (other, "prefetch"))[0] == "_engine_run_backward"


def test_main_thread_that_does_something_else_is_told_by_itself() -> None:
    code = "grade@reward.py:5 step@train.py:40 <module>@train.py:90"
    assert seen_first((code, "MainThread"), (HOOK, None))[0] == "grade"


def test_a_semaphore_below_frames_without_symbols_is_no_lock() -> None:
    """Python without symbols waits so for locks, events and queues alike."""
    place = place_of((native("do_futex_wait.constprop.1"), native("sem_wait@@GLIBC_2.2.5"), Frame(function="??", file="")))
    assert place.kind is Kind.EVENT


def test_a_thread_with_the_interpreter_in_its_hands_does_not_wait_for_work() -> None:
    frames = (native("cuLaunchKernel", "libcuda.so.1"), Frame(function="run", file="torch/_inductor/runtime/triton_heuristics.py", line=350))
    idle, owner = (ThreadSample(stack=0, tid=8, name=None, owns_gil=owns) for owns in (False, True))
    assert (place_of(frames, idle).kind, place_of(frames, owner).kind) == (Kind.IDLE, Kind.CUDA)


def test_a_call_for_the_gpus_of_one_process_waits_for_no_other_rank() -> None:
    mutex, driver = native("__pthread_mutex_lock", "libpthread.so.0"), native("cudaGetDeviceCount", "libcudart.so")
    assert place_of((mutex, driver, native("ncclCommInitAll", "libnccl.so.1"), STEP)).kind is Kind.LOCK
    assert place_of((mutex, native("ncclCommInitAll", "libnccl.so.1"), STEP)).kind is Kind.LOCK
    assert place_of((mutex, driver, native("ncclCommInitRank", "libnccl.so.2"), STEP)).kind is Kind.RENDEZVOUS


def test_a_mutex_of_the_driver_is_a_lock_but_below_a_call_that_waits_for_the_gpu() -> None:
    mutex = native("__pthread_mutex_lock", "libpthread.so.0")
    assert place_of((mutex, native("cudaMalloc", "libcudart.so"), STEP)).kind is Kind.LOCK
    assert place_of((native("ioctl"), native("cudaMalloc", "libcudart.so"), STEP)).kind is Kind.CUDA
    assert place_of((mutex, native("cuStreamSynchronize", "libcuda.so.1"), STEP)).kind is Kind.CUDA
