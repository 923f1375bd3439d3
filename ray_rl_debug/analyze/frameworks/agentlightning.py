"""Agent-Lightning: its verl daemon, runners and store."""

from __future__ import annotations

from ray_rl_debug.analyze.frameworks.table import Framework, Phase, Spot

TABLE = Framework(
    "Agent-Lightning",
    "0.3.0",
    roles=(),
    phases=(
        Phase("run_until_all_finished", "rollout", "AgentModeDaemon.run_until_all_finished (agentlightning/verl/daemon.py)"),
        Phase("set_up_data_and_server", "rollout", "AgentModeDaemon.set_up_data_and_server (agentlightning/verl/daemon.py)"),
        Phase("training_rollout", "rollout", "LitAgent.training_rollout (agentlightning/litagent/litagent.py)"),
        Phase("validation_rollout", "validation", "LitAgent.validation_rollout (agentlightning/litagent/litagent.py)"),
        Phase("get_test_metrics", "validation", "AgentModeDaemon.get_test_metrics (agentlightning/verl/daemon.py)"),
        Phase("_step_impl", "rollout", "LitAgentRunner._step_impl (agentlightning/runner/agent.py)"),
    ),
    pollers=(
        Spot("run_until_all_finished", "agentlightning/verl/daemon.py"),
        *(
            Spot("wait_for_rollouts", f"agentlightning/store/{file}.py")
            for file in ("base", "collection_based", "memory", "threading", "client_server")
        ),
    ),
    one_at_a_time=(Spot("_step_impl", "agentlightning/runner/agent.py"),),
)
