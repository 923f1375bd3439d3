"""Scenario x (state, who, cause): what a right report says of each program in ``examples/``.

Several allowed answers are divided by ``|``. Who: one of the named must be among the first root finding's ``who`` and none of its victims;
``label:TEXT`` names what is no living process by a part of its label; ``-`` means that nobody may be accused.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One line of the table."""

    scenario: str
    state: str
    who: str
    cause: str


ALIVE = "healthy|slow|unknown"

TABLE = tuple(
    Row(*(cell.strip() for cell in line.split("  ") if cell.strip()))
    for line in f"""
    straggler_endless_normaliser       hang    trainer_1                                                   straggler
    mismatch_barrier_on_rank_zero      hang    trainer_0                                                   collective-mismatch
    mismatch_skipped_all_reduce        hang    trainer_2                                                   collective-mismatch
    mismatch_early_return              hang    trainer_3                                                   collective-mismatch
    pipeline_receive_ring              hang    trainer_0|trainer_1|trainer_2                               p2p-mismatch
    mismatch_of_overlapped_works       hang    trainer_2                                                   collective-mismatch
    pipeline_irecv_from_wrong_rank     hang    trainer_0|trainer_1|trainer_2|trainer_3                     p2p-mismatch
    backward_waits_for_a_reader        hang    trainer_1                                                   blocked-io
    trains_in_a_thread_and_polls       hang    trainer_1                                                   blocked-io
    init_one_rank_waits_outside        hang|unknown    trainer_2                                                   init-deadlock
    init_rank_never_started            hang    label:3                                                     init-deadlock
    rank_killed_while_loading          hang    trainer_1|label:policy_trainer_1|label:/1                   rank-died
    cleanup_pool_never_empty           hang    trainer_2                                                   cleanup-deadlock
    rank_stopped_by_operator           hang    trainer_3                                                   process-stopped
    weight_sync_forgotten_shard        hang    shard_1                                                     weight-sync-mismatch
    network_drops_packets              hang    -                                                           collective-stalled
    prompts_on_hung_mount              hang    trainer_1                                                   blocked-io
    cache_lock_never_released          hang    trainer_0|cache_warmer                                      blocked-io
    breakpoint_left_in_reward          hang    trainer_1                                                   blocked-io
    generated_program_never_ends       hang    trainer_2|unit_tests                                        blocked-io
    locks_in_opposite_order            hang    scorer                                                      lock-deadlock
    lock_inherited_by_fork             hang    scorer|scorer_child                                         lock-deadlock
    loader_child_reads_for_ever        hang    trainer_0|loader                                            dataloader-stuck
    native_call_holds_gil              hang    trainer_1                                                   gil-held
    ray_get_ring_of_three              hang    scorer|rollout_server|policy_store                          ray-get-cycle
    actor_calls_itself                 hang    self_critic                                                 ray-get-cycle
    placement_group_is_waited_for      hang    label:policy_pool                                           ray-pending
    placement_group_wants_three_nodes  hang    label:policy_pool                                           ray-pending
    actor_wants_missing_gpus           hang    label:critic_0|label:CriticTrainer                          ray-pending
    actor_waits_for_taken_cpus         hang    label:reward_model_1|label:RewardModel                      ray-pending
    call_behind_endless_call           hang    rollout_loop                                                ray-queued-call
    producer_dead_trainer_polls        hang    rollout_worker|label:rollout_worker|label:RolloutWorker     producer-died
    engine_dead_router_awaits          hang    engine_server_0|label:engine_server_0|label:EngineServer    engine-died|producer-died
    semaphore_slots_lost               hang    episode_runner                                              asyncio-stuck
    event_loop_waits_for_itself        hang    rollout                                                     event-loop-blocked
    tool_server_never_answers          hang    trainer_2|tool_server                                       blocked-io
    async_tool_calls_unanswered        hang    agent_loop|tool_server                                      asyncio-stuck|blocked-io
    batch_that_never_comes             hang    batch_maker                                                 blocked-io
    staleness_capacity_used_up         hang    async_trainer                                               staleness-gate
    trains_briskly                     healthy              -  -
    one_rank_is_slow                   {ALIVE}              -  -
    long_generation                    {ALIVE}              -  -
    long_checkpoint                    {ALIVE}              -  -
    first_step_compiles                {ALIVE}              -  -
    idle_notebook                      healthy|finished     -  -
    viewer_at_a_breakpoint             {ALIVE}              -  -
    """.strip().splitlines()
)

EVERY_RUN = frozenset(
    """
    mismatch_of_overlapped_works pipeline_receive_ring prompts_on_hung_mount ray_get_ring_of_three semaphore_slots_lost
    staleness_capacity_used_up trains_briskly idle_notebook
    """.split()
)
"""A few in every run of the tests; all of them with ``pytest -m slow tests/integration/test_examples.py``, and by ``python -m examples.score``."""
