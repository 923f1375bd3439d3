"""Starts one of the slow programs, or a part of it: ``start.py NAME [ARGUMENT ...]``."""

from __future__ import annotations

import os
import subprocess
import sys

import actors
import families
import idioms
import lulls
import parts
import programs
import ranks
import rare
import rounds
import services

OF_RANKS = "evaluate_rank0 first_compile sync_in_parts slow_disk slow_loader slow_download compile_baton microbatches monitored store_key".split()
OF_PROGRAMS = "grading rate_limited cache_lock agent_limits slow_producer reward_server checkpoint_thread leases stages permits".split()
OF_FAMILIES = "weights_by_file head pipeline jobs prefetch replaced".split()
OF_RAY = "curriculum teacher one_slow_rollout judge_timeouts batcher cold_start long_queue session many_tasks yields".split()
OF_SERVICES = "torchrun grpc_slow asked_by_actor xargs flocked managed line spawned ray_queue shell".split()
OF_RARE = "evaluates_in_c naps runs_program asks_judge in_threads writes".split()
OF_IDIOMS = "generations replay_in_threads checked_by_shells tries_counted computed_in_c three_clients scripts_of_naps saved_in_shards".split()
OF_CACHES = "tokenised collects_garbage under_cache_lock two_prefetchers started_again greedy_search shared_version tokens_streamed".split()
OF_ROUNDS = "folder_of_batches first_of_episodes engine_of_threads steps_and_evaluations packed_by_shell replay_actor".split()
OF_LULLS = "token_bucket rare_in_python heartbeat_awaited signalled batching_window tool_under_permit paused_for_weights".split()
OF_PATIENCE = "held_by_trainer backs_off long_polls timers_of_loop timer_of_thread asked_behind_play leads_by_file stages_joined".split()
OF_TURNS = "last_of_four key_after_export jobs_of_programs value_under_condition gathers_requests turns_under_lock".split()
OF_PIECES = "uploaded_in_pieces saved_under_lock made_anew_slowly".split()
ALL = (
    *OF_RANKS,
    *OF_PROGRAMS,
    *OF_FAMILIES,
    *OF_RAY,
    *OF_SERVICES,
    *OF_RARE,
    *OF_IDIOMS,
    *OF_CACHES,
    *OF_ROUNDS,
    *OF_LULLS,
    *OF_PATIENCE,
    *OF_TURNS,
    *OF_PIECES,
)


def main(name: str, *given: str) -> None:
    if name in OF_RANKS and "RANK" not in os.environ:
        if name == "slow_download":
            os.environ["P"] = str(parts.port())
            subprocess.Popen([sys.executable, __file__, "peer"])
        for one in [*parts.as_ranks(name, 3)]:
            one.wait()
    else:
        parts_of_all = (ranks, programs, families, actors, services, rare, idioms, lulls, rounds)
        next(getattr(part, name) for part in parts_of_all if hasattr(part, name))(*given)


if __name__ == "__main__":
    main(*sys.argv[1:])
