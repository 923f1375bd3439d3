"""SGLang: server with tokenizer manager, a scheduler per rank, detokenizer."""

from __future__ import annotations

from ray_rl_debug.analyze.frameworks.table import GROUP_OPS, TENSOR_OPS, EngineNames, Part, Spot

_RANKS = r"(?P<ranks>(?:_[A-Z_]*?[A-Z]+\d+)*)$"
_SCHEDULER, _TOKENIZER = "managers/scheduler.py", "managers/tokenizer_manager.py"

NAMES = EngineNames(
    "SGLang",
    "0.5.23",
    parts=(
        Part("core", "SGLang scheduler", (rf"sglang::scheduler{_RANKS}",), (Spot("run_scheduler_process", _SCHEDULER),), ("sglang::schedul",)),
        Part(
            "detokenizer",
            "SGLang detokenizer",
            (r"sglang::detokenizer(_router)?$",),
            (Spot("run_detokenizer_process", "managers/detokenizer_manager.py"),),
            ("sglang::detoken",),
        ),
        Part(
            "coordinator",
            "SGLang data-parallel controller",
            (r"sglang::data_parallel_controller",),
            (Spot("run_data_parallel_controller_process", "managers/data_parallel_controller.py"),),
            ("sglang::data_pa",),
        ),
        Part(
            "server",
            "SGLang server",
            (r"ray::SGLangHttpServer\b", r"\S*python\S* .*\bsglang\.launch_server", r"sglang::tokenizer_worker"),
            (Spot("_setup_and_run_http_server", "entrypoints/http_server.py"),),
        ),
    ),
    rests=(
        Spot("DetokenizerManager.event_loop", "managers/detokenizer_manager.py"),
        Spot("IdleSleeper.maybe_sleep", "idle_sleeper.py"),
        Spot("DataParallelController.event_loop", "managers/data_parallel_controller.py"),
        Spot("Scheduler.recv_requests", _SCHEDULER),  # before 0.5.10
        Spot("pyspy_dump_schedulers", "utils/common.py"),  # the watchdog's thread, while the tool looks at this process
        Spot("pyspy_dump_schedulers", "sglang/srt/utils.py"),
    ),
    watches=(Spot("SubprocessWatchdog._monitor_loop", "utils/watchdog.py"), Spot("_watchdog_once", "utils/watchdog.py")),
    groups_folder="sglang/srt/distributed/",
    coordinated=(
        *(Spot(f"GroupCoordinator.{op}", "sglang/srt/distributed/parallel_state.py") for op in GROUP_OPS),
        *(Spot(f"tensor_model_parallel_{op}", "sglang/srt/distributed/communication_op.py") for op in TENSOR_OPS),
    ),
    transport=(Spot("sock_recv", "managers/io_struct.py"), Spot("async_sock_recv", "managers/io_struct.py")),
    requests=(Spot("TokenizerManager._stream_one_response", _TOKENIZER), Spot("TokenizerManager._wait_one_response", _TOKENIZER)),
    calls=(Spot("FanOutCommunicator.queueing_call", "managers/communicator.py"), Spot("_Communicator.__call__", _TOKENIZER)),
    housekeeping=(
        Spot("TokenizerManager.handle_loop", _TOKENIZER),
        Spot("TokenizerManager.sigterm_watchdog", _TOKENIZER),
        Spot("MultiTokenizerRouter.router_worker_obj", "managers/multi_tokenizer_mixin.py"),
    ),
    gates=(Spot("TokenizerManager.generate_request", _TOKENIZER),),
    steps=(
        Spot("Scheduler.run_batch", _SCHEDULER),
        Spot("Scheduler.process_batch_result", _SCHEDULER),
        Spot("Scheduler.get_next_batch_to_run", _SCHEDULER),
        Spot("Scheduler.on_idle", _SCHEDULER),
    ),
    work=(Spot("Scheduler.run_batch", _SCHEDULER), Spot("Scheduler.process_batch_result", _SCHEDULER)),
    pulses=(Spot("SchedulerRequestReceiver.recv_requests", "request_receiver.py"), Spot("Scheduler.recv_requests", _SCHEDULER)),
    loops=tuple(
        Spot(f"Scheduler.event_loop_{kind}", _SCHEDULER)
        for kind in ("overlap", "normal", "pp", "pdmux", "normal_disagg_prefill", "overlap_disagg_decode")
    ),
    paused=(Spot("Scheduler._record_scheduler_state_for_paused_engine", _SCHEDULER),),
    dying=(Spot("TokenizerManager.dump_requests_before_crash", _TOKENIZER),),
    death_lines=("sglang/part-crashed",),
    pause_calls=("POST /continue_generation",),
)
