"""Frames that Ray and torch wrap around every call: true, and of no use to a reader who looks for the place of a hang."""

from __future__ import annotations

from collections.abc import Iterable

_FILES = (
    "ray/util/tracing/tracing_helper.py",
    "ray/_private/function_manager.py",
    "ray/_private/client_mode_hook.py",
    "ray/_private/auto_init_hook.py",
    "ray/_private/workers/default_worker.py",
    "torch/distributed/c10d_logger.py",
)


def without_wrappers(lines: Iterable[str]) -> tuple[str, ...]:
    """Lines of a stack, ``function (file:line)``, without the wrappers; all of them where there would be nothing left."""
    lines = tuple(lines)
    kept = tuple(line for line in lines if not _is_wrapper(line))
    return kept or lines


def _is_wrapper(line: str) -> bool:
    return any(f"({file}:" in line for file in _FILES) or line.startswith("Worker.main_loop (ray/_private/worker.py:")
