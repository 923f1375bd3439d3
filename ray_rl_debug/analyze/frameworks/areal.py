"""AReaL: its trainer, controllers, engines and workflow executor, under the Ray, local and Slurm schedulers."""

from __future__ import annotations

from ray_rl_debug.analyze.frameworks.table import Framework, Phase, Spot

_TRAINER = "(areal/trainer/rl_trainer.py)"

_EXECUTOR = "workflow_executor.py"

TABLE = Framework(
    "AReaL",
    "1.0.4",
    roles=(),  # actors are named role/index, whatever their class
    phases=(
        Phase("prepare_batch", "rollout", "RolloutController.prepare_batch"),
        Phase("rollout_batch", "rollout", "WorkflowExecutor.rollout_batch (areal/infra/workflow_executor.py)"),
        Phase("arun_episode", "rollout", "RLVRWorkflow.arun_episode (areal/workflow/rlvr.py)"),
        Phase("compute_logp", "logprob", f"compute_logp {_TRAINER}"),
        Phase("recompute_logp", "logprob", f"recompute_logp {_TRAINER}"),
        Phase("compute_advantages", "advantage", "PPOActor.compute_advantages (areal/trainer/ppo/actor.py)"),
        Phase("ppo_update", "update", "PPOActor.ppo_update (areal/trainer/ppo/actor.py)"),
        Phase("critic_ppo_update", "update", f"critic_ppo_update {_TRAINER}"),
        Phase("load_reference_model", "init", "load_reference_model"),
        Phase("create_process_group", "init", "TrainEngine.create_process_group"),
        Phase("initialize", "init", "TrainEngine.initialize"),
    ),
    pollers=(Spot("wait_results", _EXECUTOR), Spot("active_submit_and_wait", _EXECUTOR)),
    gates=(
        Spot("_get_next_task_for_submission", _EXECUTOR),
        Spot("_rollout_loop", _EXECUTOR),
        Spot("_commit_loop", _EXECUTOR),
        Spot("active_submit_and_wait", _EXECUTOR),
        Spot("wait_results", _EXECUTOR),
        Spot("wait", _EXECUTOR),
        Spot("prepare_batch", _EXECUTOR),
        Spot("prepare_batch", "rollout_controller.py"),
        *(Spot(name, "areal/api/workflow_api.py") for name in ("prepare_batch", "wait")),  # before 1.0
        Spot("wait", "rollout_controller.py"),
        Spot("get_capacity", "staleness_manager.py"),
    ),
    calls_threads=("EngineWorker",),
)
