"""Stacks of engines that people collected by hand: schedulers at rest, collectives that the GPU carries out, and a worker that waits for a child."""

from __future__ import annotations

from pathlib import Path

from unit.stacks_by_hand import IDLE, dump, judge, told

from ray_rl_debug.model.report import State

TURN = "event_loop_overlap (sglang/srt/managers/scheduler.py:920)\nrun_scheduler_process (sglang/srt/managers/scheduler.py:2890)"
RECEIVES = f"recv (zmq/sugar/socket.py:989)\nrecv_pyobj (zmq/sugar/socket.py:1012)\nrecv_requests (sglang/srt/managers/scheduler.py:1110)\n{TURN}"
PASSED_ON = (
    "broadcast (torch/distributed/distributed_c10d.py:2710)\nbroadcast_pyobj (sglang/srt/utils.py:1165)\n"
    f"recv_requests (sglang/srt/managers/scheduler.py:1141)\n{TURN}"
)
BUSY_LOOP = "worker_busy_loop (vllm/v1/executor/multiproc_executor.py:631)\nworker_main (vllm/v1/executor/multiproc_executor.py:560)"
FORWARD = f"execute_model (vllm/v1/worker/gpu_model_runner.py:2100)\n{BUSY_LOOP}"
REDUCES = (
    "synchronize (torch/cuda/streams.py:231)\nall_reduce (vllm/distributed/device_communicators/pynccl.py:141)\n"
    f"all_reduce (vllm/distributed/parallel_state.py:118)\nforward (app/model.py:210)\n{FORWARD}"
)
COMPILES = f"wait (subprocess.py:2053)\ncheck_call (subprocess.py:414)\n_build (triton/runtime/build.py:48)\nforward (app/model.py:201)\n{FORWARD}"
CORE = "dequeue (vllm/distributed/device_communicators/shm_broadcast.py:507)\nget_response (vllm/v1/executor/multiproc_executor.py:253)"


def test_an_idle_scheduler_of_older_versions_is_no_straggler(tmp_path: Path) -> None:
    report = judge(tmp_path, [dump(501, RECEIVES, title="sglang::scheduler_TP0"), dump(502, PASSED_ON, title="sglang::scheduler_TP1")])
    assert report.findings == ()
    assert report.verdict.state is State.UNKNOWN


def test_the_worker_that_waits_for_a_compiler_is_named_and_not_those_who_wait_for_it(tmp_path: Path) -> None:
    dumps = [
        dump(3301, f"{CORE}\nstep (vllm/v1/engine/core.py:285)", title="VLLM::EngineCore"),
        dump(3312, REDUCES, title="VLLM::Worker_TP0", state="active"),
        dump(3313, COMPILES, title="VLLM::Worker_TP1"),
    ]
    report = judge(tmp_path, dumps)
    assert told(report) == ("hang", "blocked-io", "possible", {3313})
    assert {v.pid for v in report.findings[0].victims} == {3301, 3312}


def test_the_thread_by_which_old_ray_hears_of_imports_is_nobodys_wait(tmp_path: Path) -> None:
    hears = (
        "wait (threading.py:316)\n_wait_once (grpc/_common.py:112)\nwait (grpc/_common.py:157)\nresult (grpc/_channel.py:733)\n"
        "_poll_locked (ray/_private/gcs_pubsub.py:255)\npoll (ray/_private/gcs_pubsub.py:391)\n_run (ray/_private/import_thread.py:70)"
    )
    report = judge(tmp_path, [dump(3301, IDLE, hears, title="ray::IDLE"), dump(3302, IDLE, title="ray::IDLE")])
    assert report.findings == ()
