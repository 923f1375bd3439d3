"""Asyncio tasks of one process, where the reader is there."""

from __future__ import annotations

from pathlib import Path

from ray_rl_debug.snapshot import AsyncTask, Gap


def read_tasks(pid: int, deadline_s: float, proc: Path) -> tuple[tuple[AsyncTask, ...] | None, Gap | None]:
    """Tasks of `pid`, or None and a gap."""
    try:
        from ray_rl_debug.collect.async_tasks import read_async_tasks
    except ImportError:
        return None, None
    return read_async_tasks(pid, deadline_s=min(2.0, deadline_s), proc=proc)
