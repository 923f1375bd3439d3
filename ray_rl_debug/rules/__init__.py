"""The rules: one file each, in the order in which they are preferred when several explain the same process."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ray_rl_debug.model.report import Cause
from ray_rl_debug.rules import (
    asks_person,
    asyncio_stuck,
    blocked_io,
    cleanup_deadlock,
    collective_mismatch,
    collective_stalled,
    dataloader_stuck,
    engine_died,
    engine_paused,
    event_loop_blocked,
    first_failure,
    gil_held,
    init_deadlock,
    known_error,
    left_breakpoint,
    lock_deadlock,
    lock_file_left,
    no_descriptors,
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
    terminal_full,
    weight_sync_mismatch,
    zero_steps,
)
from ray_rl_debug.rules.scene import Found, Scene


class Rule(Protocol):
    """What the module of a rule holds, besides the docstring that ``explain`` prints."""

    __name__: str
    ID: str
    NAME: str
    CAUSE: Cause

    def detect(self, scene: Scene) -> Iterable[Found]:
        """What the rule finds. Whether it may be claimed, and how surely, is decided for all rules together."""


RULES: tuple[Rule, ...] = (
    # the special before the general: a straggler is any process that others wait for
    process_stopped,
    rank_died,
    engine_died,
    producer_died,
    ray_pending,
    raylet_start,
    object_store,
    left_breakpoint,
    asks_person,
    terminal_full,
    lock_file_left,
    no_descriptors,
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
    known_error,
    first_failure,
)
