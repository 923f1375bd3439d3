"""What the user wants of the companion."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ray_rl_debug.watch.learn import Limits
from ray_rl_debug.watch.trackers import Tracker


class WatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of ``watch``."""

    job_id: str | None = None
    output: Path
    interval_s: float = 2.0
    limits: Limits = Limits()
    exit_once_hung: bool = False
    stop_job: bool = False
    on_hang: str | None = None
    webhooks: tuple[str, ...] = ()
    slack: tuple[str, ...] = ()
    trackers: tuple[Tracker, ...] = ()
