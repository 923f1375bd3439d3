"""How a check says what it found; the engine adds which check it was."""

from __future__ import annotations

from ray_rl_debug.model.health import Result, Status


def ok(node: str | None, measured: str, threshold: str = "") -> Result:
    """Measured, and good."""
    return Result(status=Status.OK, node=node, measured=measured, threshold=threshold)


def warn(node: str | None, measured: str, threshold: str, consequence: str, remedy: str) -> Result:
    """May cause trouble."""
    return Result(status=Status.WARN, node=node, measured=measured, threshold=threshold, consequence=consequence, remedy=remedy)


def fail(node: str | None, measured: str, threshold: str, consequence: str, remedy: str) -> Result:
    """Will cause trouble, or does."""
    return Result(status=Status.FAIL, node=node, measured=measured, threshold=threshold, consequence=consequence, remedy=remedy)


def unknown(node: str | None, reason: str) -> Result:
    """Could not be measured."""
    return Result(status=Status.UNKNOWN, node=node, measured=reason)


def gib(count: int) -> str:
    """Bytes as people write them."""
    return f"{count / (1 << 30):.1f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.0f} MiB"
