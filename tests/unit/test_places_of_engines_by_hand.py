"""Places of engines and their neighbours in pasted stacks: past torch to NCCL, at the two ends of a start, below a rest that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Cause, Certainty, Report


def reported(folder: Path, text: str) -> Report:
    (folder / "post.md").write_text(text)
    snapshot = load([folder / "post.md"]).snapshot
    assert snapshot is not None
    return diagnose(snapshot)


def first(folder: Path, text: str) -> tuple[Cause, Certainty, set[str]] | None:
    roots = [f for f in reported(folder, text).findings if f.root]
    return (roots[0].cause, roots[0].certainty, {w.label for w in roots[0].who}) if roots else None


def stack(head: str, *frames: str) -> str:
    return f"{head}:\n```\n" + "".join(f"    {frame}\n" for frame in frames) + "```\n"


BUSY_LOOP = "worker_busy_loop (vllm/v1/executor/multiproc_executor.py:600)"
CORE = stack(
    "EngineCore (pid 900)",
    "dequeue (vllm/distributed/device_communicators/shm_broadcast.py:560)",
    "get_response (vllm/v1/executor/multiproc_executor.py:250)",
    "execute_model (vllm/v1/executor/multiproc_executor.py:180)",
)
WORKERS = (
    stack(
        "Worker_TP0 (pid 901)", "all_reduce (vllm/distributed/device_communicators/pynccl.py:120)", "forward (vllm/layers/linear.py:12)", BUSY_LOOP
    ),
    stack(
        "Worker_TP1 (pid 902)",
        "_wait_result (torch/_inductor/async_compile.py:310)",
        "compile_fx (torch/_inductor/compile_fx.py:900)",
        BUSY_LOOP,
    ),
)


def test_a_worker_that_compiles_is_at_no_rest(tmp_path: Path) -> None:
    """The innermost function of the engine is its loop, and what that called is torch: no message is waited for there."""
    assert first(tmp_path, CORE + "".join(WORKERS)) == (Cause.STRAGGLER, Certainty.POSSIBLE, {"vLLM TP worker 1 (pid 902)"})


def test_the_creation_of_a_communicator_is_a_rendezvous(tmp_path: Path) -> None:
    client = stack(
        "trainer",
        "ncclCommInitRank (vllm/distributed/device_communicators/pynccl_wrapper.py:277)",
        "__init__ (vllm/distributed/device_communicators/pynccl.py:99)",
        "init_communicator (trl/extras/vllm_client.py:291)",
    )
    found = first(tmp_path, client)
    assert found is not None
    assert found[:2] == (Cause.INIT_DEADLOCK, Certainty.POSSIBLE)


FRONT = stack(
    "API server",
    "poll (zmq/sugar/poll.py:106)",
    "wait_for_engine_startup (vllm/v1/engine/utils.py:910)",
    "launch_core_engines (vllm/v1/engine/utils.py:860)",
)


def test_the_two_ends_of_a_start_are_both_named(tmp_path: Path) -> None:
    core = stack("EngineCore_DP1", "poll (zmq/sugar/poll.py:106)", "startup_handshake (vllm/v1/engine/core.py:740)")
    assert first(tmp_path, FRONT + core) == (Cause.INIT_DEADLOCK, Certainty.POSSIBLE, {"api server", "vLLM engine core DP1"})


def test_a_core_that_loads_is_what_its_front_end_waits_for(tmp_path: Path) -> None:
    core = stack("EngineCore_DP1", "get_tensor (safetensors/torch.py:8)", "load_model (vllm/model_executor/model_loader/default_loader.py:290)")
    found = first(tmp_path, FRONT + core)
    assert found is not None
    assert found[2] == {"vLLM engine core DP1"}


def test_a_restore_that_compiles_for_all_waits_for_all(tmp_path: Path) -> None:
    reads = stack(
        "process 0", "result (concurrent/futures/_base.py:451)", "_deserialize_arrays (orbax/checkpoint/type_handlers.py:910)", "main (t.py:2)"
    )
    compiles = stack(
        "process 2",
        "backend_compile (jax/_src/compiler.py:360)",
        "_merge_globalized_replicas (orbax/checkpoint/multihost/multislice.py:369)",
        "main (t.py:2)",
    )
    found = first(tmp_path, reads + compiles)
    assert found is not None
    assert found[2] == {"process 0"}


def test_a_worker_waits_for_the_function_that_it_shall_run(tmp_path: Path) -> None:
    text = stack(
        "ray::IDLE (pid 71)",
        "fetch_registered_method (ray/_private/function_manager.py:248)",
        "_wait_for_function (ray/_private/function_manager.py:428)",
        "main_loop (ray/_private/worker.py:887)",
    )
    found = first(tmp_path, text)
    assert found is not None
    assert found[:2] == (Cause.BLOCKED_IO, Certainty.POSSIBLE)


def test_a_loop_of_libraries_that_runs_with_the_interpreter_is_at_work(tmp_path: Path) -> None:
    text = """Process 37932: ray::HTTPProxyActor
Thread 0x7F452D190740 (idle): "MainThread"
    main_loop (ray/worker.py:409)
Thread 0x7F42AD6BD700 (active+gil): "AsyncIO Thread"
    add (_weakrefset.py:84)
    create_task (asyncio/base_events.py:404)
    assign_replica (ray/serve/router.py:189)
    _run_once (asyncio/base_events.py:1786)
    run_forever (asyncio/base_events.py:541)
"""
    found = first(tmp_path, text)
    assert found is not None
    assert found[:2] == (Cause.EVENT_LOOP_BLOCKED, Certainty.POSSIBLE) or found[0] is Cause.STRAGGLER


@pytest.mark.parametrize("function", ["_lock_file", "flock", "acquire_file_lock"])
def test_a_function_named_after_a_lock_file_waits_for_one(tmp_path: Path, function: str) -> None:
    text = f"""Current thread 0x00007f9b3b4dc740 (most recent call first):
  File "/opt/env/lib/python3.9/site-packages/zc/lockfile/__init__.py", line 58 in {function}
  File "/srv/train/prepare.py", line 31 in claim_shard
  File "/srv/train/prepare.py", line 104 in <module>
"""
    found = first(tmp_path, text)
    assert found is not None
    assert found[:2] == (Cause.BLOCKED_IO, Certainty.POSSIBLE)
