"""vLLM's V1 engine: API server, engine cores, workers, coordinator of data-parallel ranks."""

from __future__ import annotations

from ray_rl_debug.analyze.frameworks.table import GROUP_OPS, TENSOR_OPS, EngineNames, Part, Spot

_RANKS = r"(?P<ranks>(?:_[A-Z]+\d+)*)$"
_CORE, _CLIENT, _EXECUTOR = "v1/engine/core.py", "v1/engine/core_client.py", "v1/executor/multiproc_executor.py"

NAMES = EngineNames(
    "vLLM",
    "0.32.0",
    parts=(
        # VLLM_PROCESS_NAME_PREFIX changes the word before the colons
        Part("core", "vLLM engine core", (rf"[\w.-]+::EngineCore{_RANKS}",), (Spot("run_engine_core", _CORE),), ("VLLM::EngineCor",)),
        Part(
            "worker",
            "vLLM worker",
            (rf"[\w.-]+::Worker{_RANKS}", r"ray::RayWorkerProc\b"),
            (Spot("WorkerProc.worker_main", _EXECUTOR), Spot("RayWorkerProc.run", "v1/executor/ray_executor_v2.py")),
            ("VLLM::Worker",),
        ),
        Part("coordinator", "vLLM DP coordinator", (r"[\w.-]+::DPCoordinator$",), (Spot("run_coordinator", "v1/engine/coordinator.py"),)),
        Part(
            "server",
            "vLLM server",
            (
                r"[\w.-]+::APIServer(?P<ranks>_\d+)?$",
                r"ray::vLLMHttpServer\b",
                r"\S*python\S* .*\bvllm( serve|\.entrypoints)",
                r"\S*python\S* \S*/vllm ",
            ),
            (
                Spot("run_api_server_worker_proc", "vllm/v1/utils.py"),
                Spot("ServeSubcommand.cmd", "vllm/entrypoints/cli/serve.py"),
                Spot("monitor_engine_cores", _CLIENT),
            ),
        ),
    ),
    rests=(
        Spot("EngineCoreProc._process_input_queue", _CORE),
        Spot("process_input_sockets", _CORE),
        Spot("process_output_sockets", _CORE),
        Spot("WorkerProc.worker_busy_loop", _EXECUTOR),
        Spot("DPCoordinatorProc.process_input_socket", "v1/engine/coordinator.py"),
        Spot("SignalCallback._run", "v1/engine/utils.py"),
    ),
    watches=(
        Spot("monitor_engine_liveness", "v1/engine/utils.py"),
        Spot("monitor_workers", _EXECUTOR),
        Spot("death_pipe_monitor", _EXECUTOR),
        Spot("wait_for_completion_or_failure", "vllm/v1/utils.py"),
    ),
    transport=(Spot("", "device_communicators/shm_broadcast.py"), Spot("sched_yield", "vllm/distributed/utils.py")),
    awaits_start=(Spot("wait_for_engine_startup", "v1/engine/utils.py"),),
    greets=(Spot("EngineCoreProc.startup_handshake", _CORE),),
    asks=(Spot("SyncMPClient.get_output", _CLIENT), Spot("SyncMPClient.call_utility", _CLIENT)),
    collectives=tuple(
        Spot(f"_CPUSHMDistributed.{op}", "device_communicators/cpu_communicator.py")
        for op in ("all_reduce", "gather", "all_gather_into_tensor", "send_tensor_dict", "recv_tensor_dict")
    ),
    groups_folder="vllm/distributed/",
    coordinated=(
        *(Spot(f"GroupCoordinator.{op}", "vllm/distributed/parallel_state.py") for op in GROUP_OPS),
        *(Spot(f"tensor_model_parallel_{op}", "vllm/distributed/communication_op.py") for op in TENSOR_OPS),
    ),
    requests=(Spot("RequestOutputCollector.get", "v1/engine/output_processor.py"),),
    calls=(Spot("AsyncMPClient._call_utility_async", _CLIENT),),
    housekeeping=(
        Spot("process_outputs_socket", _CLIENT),
        Spot("output_handler", "v1/engine/async_llm.py"),
        Spot("run_engine_stats_update_task", _CLIENT),
        Spot("watchdog_loop", "launcher.py"),
        Spot("handle_shutdown", "launcher.py"),
        Spot("_force_log", "server_utils.py"),
        Spot("listen_for_disconnect", "api_utils.py"),
    ),
    steps=(Spot("EngineCore.step", _CORE), Spot("EngineCore.step_with_batch_queue", _CORE)),
    work=(
        Spot("Worker.execute_model", "v1/worker/gpu_worker.py"),
        Spot("Worker.execute_model", "v1/worker/cpu_worker.py"),
        Spot("GPUModelRunner.execute_model", "v1/worker/gpu_model_runner.py"),
    ),
    ending=(Spot("MultiprocExecutor._ensure_worker_termination", _EXECUTOR),),
    leaving=(Spot("EngineCore.shutdown", _CORE), Spot("EngineCoreProc.shutdown", _CORE)),
    alive=(Spot("process_outputs_socket", _CLIENT), Spot("monitor_engine_liveness", "v1/engine/utils.py")),
    death_lines=("vllm/engine-dead", "vllm/engine-core-failed", "vllm/worker-died"),
    pause_calls=("POST /resume after a pause, POST /wake_up after a sleep (engine.resume_generation(), engine.wake_up())",),
)
