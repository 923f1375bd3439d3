"""The published address of `in_job.prepare`: jobs name ``ray_rl_debug.prepare.open_doors``."""

from __future__ import annotations

from ray_rl_debug.in_job.prepare import open_doors

__all__ = ["open_doors"]
