"""The rules: one file each, in the order in which they are preferred when several explain the same process."""

from __future__ import annotations

from types import ModuleType

from ray_rl_debug.detectors import (
    asyncio_stuck,
    blocked_io,
    cleanup_deadlock,
    collective_mismatch,
    collective_stalled,
    dataloader_stuck,
    engine_paused,
    event_loop_blocked,
    gil_held,
    init_deadlock,
    lock_deadlock,
    object_store,
    p2p_mismatch,
    process_stopped,
    producer_died,
    rank_died,
    ray_get_cycle,
    ray_pending,
    ray_queued_call,
    raylet_start,
    staleness_gate,
    straggler,
    weight_sync_mismatch,
    zero_steps,
)

DETECTORS: tuple[ModuleType, ...] = (
    process_stopped,
    rank_died,
    producer_died,
    ray_pending,
    raylet_start,
    object_store,
    gil_held,
    dataloader_stuck,
    event_loop_blocked,
    staleness_gate,
    cleanup_deadlock,
    p2p_mismatch,
    blocked_io,
    ray_get_cycle,
    weight_sync_mismatch,
    engine_paused,
    asyncio_stuck,
    lock_deadlock,
    ray_queued_call,
    init_deadlock,
    collective_mismatch,
    collective_stalled,
    straggler,
    zero_steps,
)
