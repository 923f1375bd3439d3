"""Waits of JAX, of clients of services, of loaders that start; and device calls whose function has no name."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.native_frames import OF_DEVICE, native_wait
from ray_rl_debug.analyze.places import place_of
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.snapshot import Frame, ThreadSample

OWN = Frame(function="main", file="train.py", line=9)


@pytest.mark.parametrize(
    ("inner", "kind"),
    [
        ([("block_until_ready", "jax/_src/array.py")], Kind.CUDA),
        ([("sync_global_devices", "jax/experimental/multihost_utils.py")], Kind.COLLECTIVE),
        ([("connect", "jax/_src/distributed.py"), ("initialize", "jax/_src/distributed.py")], Kind.RENDEZVOUS),
        ([("wait", "threading.py"), ("get", "Queue.py"), ("_get_batch", "torch/utils/data/dataloader.py")], Kind.DATALOADER),
        ([("wait", "threading.py"), ("get", "Queue.py")], Kind.QUEUE),
        ([("_read_from_socket", "redis/connection.py")], Kind.SOCKET),
        ([("_read_bytes", "pymysql/connections.py")], Kind.SOCKET),
        (
            [("select", "selectors.py"), ("_launch", "multiprocessing/popen_forkserver.py"), ("__init__", "torch/utils/data/dataloader.py")],
            Kind.DATALOADER,
        ),
        ([("wait", "threading.py"), ("wait", "wandb/sdk/lib/mailbox.py"), ("init", "wandb/sdk/wandb_init.py")], Kind.SOCKET),
        (
            [("wait", "threading.py"), ("get", "queue.py"), ("_get_conn", "urllib3/connectionpool.py"), ("urlopen", "urllib3/connectionpool.py")],
            Kind.QUEUE,
        ),
        ([("readinto", "socket.py"), ("_make_request", "urllib3/connectionpool.py"), ("urlopen", "urllib3/connectionpool.py")], Kind.SOCKET),
        ([("emit", "logging/__init__.py"), ("handle", "logging/__init__.py")], Kind.FILE),
    ],
)
def test_a_library_tells_what_its_caller_waits_for(inner: list[tuple[str, str]], kind: Kind) -> None:
    frames = [*(Frame(function=n, file=f, line=5) for n, f in inner), OWN]
    assert place_of(frames, ThreadSample(stack=0, name="MainThread")).kind is kind


@pytest.mark.parametrize(
    ("inner", "kind", "op"),
    [
        ([("_verify_param_shape_across_processes", "torch/distributed/utils.py")], Kind.COLLECTIVE, "all_gather"),
        ([("poll", "libc.so.6"), ("_sync_params_and_buffers", "torch/distributed/utils.py")], Kind.COLLECTIVE, "broadcast"),
        ([("_pre_forward", "torch/nn/parallel/distributed.py")], Kind.COLLECTIVE, "broadcast"),
        ([("clone", "torch/_tensor.py"), ("_sync_params_and_buffers", "torch/distributed/utils.py")], Kind.CODE, None),
        ([("synchronize", "cupy/cuda/stream.pyx"), ("allreduce", "ray/util/collective/collective.py")], Kind.COLLECTIVE, "all_reduce"),
        ([("recv_multigpu", "ray/util/collective/collective.py")], Kind.P2P, "recv"),
        ([("meet", "ray/util/collective/collective_group/nccl_collective_group.py")], Kind.RENDEZVOUS, None),
        ([("is_group_initialized", "ray/util/collective/collective.py")], Kind.CODE, None),
    ],
)
def test_collectives_that_no_frame_of_torchs_names(inner: list[tuple[str, str]], kind: Kind, op: str | None) -> None:
    frames = [*(Frame(function=n, file=f, line=5) for n, f in inner), OWN]
    place = place_of(frames, ThreadSample(stack=0, name="MainThread"))
    assert place.kind is kind
    assert op is None or place.op == op


@pytest.mark.parametrize(
    ("function", "file"),
    [("AllGatherHandle.wait", "deepspeed/runtime/zero/partition_parameters.py"), ("synchronize", "horovod/torch/mpi_ops.py")],
)
def test_collectives_of_other_frameworks(function: str, file: str) -> None:
    frames = [Frame(function=function, file=file, line=5), OWN]
    assert place_of(frames, ThreadSample(stack=0, name="MainThread")).kind is Kind.COLLECTIVE


_DCP = ("reduce_scatter", "torch/distributed/checkpoint/utils.py")


@pytest.mark.parametrize(
    ("inner", "is_wait"),
    [
        ([("scatter_object_list", "torch/distributed/distributed_c10d.py"), _DCP], True),
        ([("wrapper", "torch/distributed/checkpoint/logger.py"), _DCP], False),
        ([("deepcopy", "copy.py"), ("local_step", "torch/distributed/checkpoint/state_dict_saver.py"), _DCP], False),
    ],
)
def test_a_step_of_a_checkpoint_is_no_wait_for_ranks(inner: list[tuple[str, str]], is_wait: bool) -> None:
    frames = [*(Frame(function=n, file=f, line=5) for n, f in inner), OWN]
    assert (place_of(frames, ThreadSample(stack=0, name="MainThread")).kind is Kind.COLLECTIVE) is is_wait


def _native(*names: str) -> list[Frame]:
    return [*(Frame(function=n, file="libx.so", line=0) for n in names), Frame(function="copy_files", file="pyarrow/fs.py", line=27), OWN]


def test_a_condition_of_cpp_is_no_lock() -> None:
    waits = ["pthread_cond_wait@@GLIBC_2.3.2", "std::condition_variable::wait", "arrow::fs::CopyFiles"]
    assert place_of(_native(*waits)).kind is Kind.EVENT
    assert place_of(_native("pthread_cond_wait@@GLIBC_2.3.2", "PyThread_acquire_lock_timed")).kind is Kind.LOCK
    assert place_of(_native("__lll_lock_wait", "pthread_mutex_lock", "std::mutex::lock")).kind is Kind.LOCK


def test_a_loader_that_has_its_workers_is_not_about_to_start_them() -> None:
    frames = [Frame(function="__init__", file="torch/utils/data/dataloader.py", line=5), OWN]
    assert place_of(frames, ThreadSample(stack=0, name="MainThread")).kind is not Kind.DATALOADER


def test_the_call_with_a_name_tells_more_than_the_driver_without() -> None:
    driver = [Frame(function="syscall", file="libc.so.6"), Frame(function="??", file="libcuda.so.1")]
    assert native_wait(driver) == (Kind.CUDA, OF_DEVICE)
    assert native_wait([*driver, Frame(function="cudaStreamQuery", file="libplugin.so")]) == (Kind.CUDA, "cudaStreamQuery")


def test_the_odd_one_of_a_jax_run_is_named_and_not_those_that_wait_for_their_devices(tmp_path: Path) -> None:
    waits = "    block_until_ready (jax/_src/array.py:642)\n    step (grug/train.py:41)\n    main (grug/train.py:7)\n"
    reads = "    recv_into (ssl.py:1314)\n    fetch (grug/store.py:93)\n    main (grug/train.py:6)\n"
    text = "".join(f'== pid {pid} ==\nThread {pid} (idle): "MainThread"\n{reads if pid == 4713 else waits}' for pid in range(4711, 4715))
    (tmp_path / "post.md").write_text(text)
    snapshot = load([tmp_path / "post.md"]).snapshot
    assert snapshot is not None
    roots = [f for f in diagnose(snapshot).findings if f.root]
    assert [w.pid for w in roots[0].who] == [4713]
    assert len(roots) == 1


def test_ranks_at_one_line_are_told_apart_by_who_called(tmp_path: Path) -> None:
    inner = "  all_gather_into_tensor (torch/distributed/distributed_c10d.py:3709)\n  gather (zero/params.py:12)\n"
    text = "".join(f"rank {r}:\n```\n{inner}  {'score' if r == 2 else 'decode'} (opsd/trainer.py:{(r == 2 and 40) or 50})\n```\n" for r in range(4))
    (tmp_path / "post.md").write_text(text)
    snapshot = load([tmp_path / "post.md"]).snapshot
    assert snapshot is not None
    first = next(f for f in diagnose(snapshot).findings if f.root)
    assert "called from score (trainer.py:40)" in first.summary
    assert "called from decode (trainer.py:50)" in first.summary


def test_the_master_of_a_servers_workers_rests() -> None:
    frames = [Frame(function="wait", file="threading.py", line=331), Frame(function="wait_for_signals", file="gunicorn/arbiter.py", line=388)]
    assert place_of(frames).kind is Kind.WATCH


def test_a_worker_of_a_test_runner_rests_until_it_is_sent_a_test() -> None:
    frames = [Frame(function="get", file="queue.py", line=180), Frame(function="_perform_spawn", file="execnet/gateway_base.py", line=381)]
    assert place_of(frames).kind is Kind.IDLE


@pytest.mark.parametrize("name", ["poll_and_all_reduce", "broadcast_pyobj", "tensor_model_parallel_all_gather", "sync_barrier"])
def test_a_name_alone_that_holds_a_collective_is_one(name: str) -> None:
    assert place_of([Frame(function=name, file="", line=0)]).kind is Kind.COLLECTIVE
    assert place_of([Frame(function=name, file="app/own.py", line=3)]).kind is Kind.CODE


def test_a_query_waits_for_its_database() -> None:
    frames = [
        Frame(function="do_execute", file="sqlalchemy/engine/default.py", line=717),
        Frame(function="execute", file="sqlalchemy/orm/session.py", line=1689),
        Frame(function="reset", file="app/jobs.py", line=14),
    ]
    assert place_of(frames).kind is Kind.SOCKET


def test_wait_of_a_class_of_cpp_waits_for_no_child() -> None:
    frames = [Frame(function="app::Latch::wait", file="libapp.so", line=0), Frame(function="step", file="app/jobs.py", line=14)]
    assert place_of(frames).kind is not Kind.CHILD
