"""verl: V1 and legacy trainers, one-step-off and fully-async recipes, workers, servers."""

from __future__ import annotations

from ray_rl_debug.analyze.frameworks.table import Framework, Phase, Role, Spot

_V1 = "(verl/trainer/ppo/v1/trainer_base.py)"
_SEPARATE = "(verl/experimental/separation/ray_trainer.py)"

TABLE = Framework(
    "verl",
    "0.9.1",
    roles=(
        Role("TaskRunner", "driver", "ray::TaskRunner.run"),
        Role("TaskRunnerV1", "driver", "ray::TaskRunnerV1.run"),
        Role("OneStepTaskRunner", "driver", "ray::OneStepTaskRunner.run"),
        Role("FullyAsyncTaskRunner", "driver", "ray::FullyAsyncTaskRunner.run"),
        Role("FullyAsyncRollouter", "rollouter", "ray::FullyAsyncRollouter.fit"),
        Role("FullyAsyncTrainer", "trainer", "ray::FullyAsyncTrainer.fit"),
        Role("MessageQueue", "queue", "ray::MessageQueue.get_sample"),
        Role("AgentLoopWorker", "agent_loop", "agent_loop_worker_0_14fb7bf4"),
        Role("AgentLoopWorkerTQ", "agent_loop", "agent_loop_worker_0_14fb7bf4"),
        Role("RewardLoopWorker", "reward", "reward_loop_worker_0"),
        Role("RewardComputeWorker", "reward", "ray::RewardComputeWorker.compute_score"),
        Role("vLLMHttpServer", "engine", "vllm_server_0_0"),
        Role("SGLangHttpServer", "engine", "sglang_server_0_0"),
        Role("CheckpointEngineWorker", "engine", "rollout_standalone_0CheckpointEngineWorker_0:1"),
        Role("GlobalRequestLoadBalancer", "router", "ray::GlobalRequestLoadBalancer"),
        Role("TransferQueueController", "transfer_queue", "ray::TransferQueueController"),
        Role("SimpleStorageUnit", "transfer_queue", "TransferQueueStorageUnit#0"),
    ),
    phases=(
        Phase("_wait_for_next_poll", "rollout", "ReplayBuffer._wait_for_next_poll (verl/trainer/ppo/v1/replay_buffer.py)"),
        Phase("_compute_reward_colocate", "reward", f"PPOTrainer._compute_reward_colocate {_V1}"),
        Phase("_compute_old_log_prob", "logprob", f"PPOTrainer._compute_old_log_prob {_V1}"),
        Phase("_compute_ref_log_prob", "logprob", f"PPOTrainer._compute_ref_log_prob {_V1}"),
        Phase("_compute_values", "values", f"PPOTrainer._compute_values {_V1}"),
        Phase("_compute_advantage", "advantage", f"PPOTrainer._compute_advantage {_V1}"),
        Phase("_update_actor", "update", f"PPOTrainer._update_actor {_V1}"),
        Phase("_update_critic", "update", f"PPOTrainer._update_critic {_V1}"),
        Phase("_save_checkpoint", "checkpoint", f"PPOTrainer._save_checkpoint {_V1}"),
        Phase("_validate", "validation", f"PPOTrainer._validate {_V1}"),
        Phase("on_step_end", "weight_sync", "on_step_end (verl/trainer/ppo/v1/trainer_sync.py)"),
        Phase("_fit_generate", "rollout", f"_fit_generate {_SEPARATE}"),
        Phase("_fit_compute_reward", "reward", f"_fit_compute_reward {_SEPARATE}"),
        Phase("_fit_compute_log_prob", "logprob", f"_fit_compute_log_prob {_SEPARATE}"),
        Phase("_fit_compute_ref_log_prob", "logprob", f"_fit_compute_ref_log_prob {_SEPARATE}"),
        Phase("_fit_compute_critic", "values", f"_fit_compute_critic {_SEPARATE}"),
        Phase("_fit_compute_advantage", "advantage", f"_fit_compute_advantage {_SEPARATE}"),
        Phase("_fit_update_critic", "update", f"_fit_update_critic {_SEPARATE}"),
        Phase("_fit_update_actor", "update", f"_fit_update_actor {_SEPARATE}"),
        Phase("_fit_update_weights", "weight_sync", f"_fit_update_weights {_SEPARATE}"),
        Phase("_fit_validate", "validation", f"_fit_validate {_SEPARATE}"),
        Phase("_fit_save_checkpoint", "checkpoint", f"_fit_save_checkpoint {_SEPARATE}"),
        Phase("_get_samples_from_queue", "rollout", "FullyAsyncTrainer._get_samples_from_queue (verl/experimental/fully_async_policy)"),
        Phase("wait_for_enough_samples", "rollout", "ray::FullyAsyncRollouter.wait_for_enough_samples"),
        Phase("_streaming_generation_main", "rollout", "FullyAsyncRollouter._streaming_generation_main"),
        Phase("generate_sequences", "rollout", "ray::AgentLoopWorkerTQ.generate_sequences"),
        Phase("compute_score", "reward", "ray::RewardLoopWorker.compute_score"),
        Phase("compute_score_batch", "reward", "ray::RewardLoopWorker.compute_score_batch"),
        Phase("compute_rm_score", "reward", "ray::WorkerDict.rm_compute_rm_score"),
        Phase("compute_log_prob", "logprob", "ray::WorkerDict.actor_rollout_ref_compute_log_prob"),
        Phase("compute_ref_log_prob", "logprob", "ray::WorkerDict.actor_rollout_ref_compute_ref_log_prob"),
        Phase("compute_values", "values", "ray::WorkerDict.critic_compute_values"),
        Phase("update_actor", "update", "ray::WorkerDict.actor_rollout_ref_update_actor"),
        Phase("update_critic", "update", "ray::WorkerDict.critic_update_critic"),
        Phase("update_policy", "update", "DataParallelPPOActor.update_policy (verl/workers/actor/dp_actor.py)"),
        Phase("update_weights", "weight_sync", "ray::WorkerDict.actor_rollout_ref_update_weights"),
        Phase("save_checkpoint", "checkpoint", "ray::WorkerDict.actor_rollout_ref_save_checkpoint"),
        Phase("load_checkpoint", "checkpoint", "ray::WorkerDict.actor_rollout_ref_load_checkpoint"),
        Phase("init_model", "init", "ray::WorkerDict.actor_rollout_ref_init_model"),
        Phase("train_mini_batch", "update", "ray::WorkerDict.actor_rollout_ref_train_mini_batch"),
        Phase("train_batch", "update", "ray::WorkerDict.critic_train_batch"),
    ),
    pollers=(Spot("_wait_for_next_poll", "replay_buffer.py"),),  # verl 0.9: trainer/ppo/v1
    rests=(
        # TransferQueue 0.1: servers of zmq sockets, and event loops in threads
        Spot("TransferQueueController._wait_connection", "transfer_queue/controller.py"),
        Spot("TransferQueueController._process_request_loop", "transfer_queue/controller.py"),
        Spot("SimpleStorageUnit._worker_routine", "transfer_queue/storage/simple_storage.py"),
        Spot("SimpleStorageUnit._proxy_routine", "transfer_queue/storage/simple_storage.py"),
    ),
)
