"""How a check says what it found; the engine adds which check it was, and of which node."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping

from ray_rl_debug.model.health import Result, Status


def ok(measured: str, threshold: str = "", *, node: str | None = None) -> Result:
    """Measured, and good."""
    return Result(status=Status.OK, node=node, measured=measured, threshold=threshold)


def warn(measured: str, threshold: str, consequence: str, remedy: str, *, node: str | None = None) -> Result:
    """May cause trouble."""
    return Result(status=Status.WARN, node=node, measured=measured, threshold=threshold, consequence=consequence, remedy=remedy)


def fail(measured: str, threshold: str, consequence: str, remedy: str, *, node: str | None = None) -> Result:
    """Will cause trouble, or does."""
    return Result(status=Status.FAIL, node=node, measured=measured, threshold=threshold, consequence=consequence, remedy=remedy)


def unknown(reason: str, *, node: str | None = None) -> Result:
    """Could not be measured."""
    return Result(status=Status.UNKNOWN, node=node, measured=reason)


def gib(count: int) -> str:
    """Bytes as people write them."""
    return f"{count / (1 << 30):.1f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.0f} MiB"


def listed(values: Mapping[str, object]) -> str:
    """What differs between nodes: ``n1: 8, n2: 4``, six at most."""
    return ", ".join(f"{name}: {value}" for name, value in sorted(values.items())[:6])


def explain_check(id_: str, name: str, check: Callable[..., object] | None) -> str:
    """What ``rayrl-debug explain`` prints of a check: its docstring under the same heads as a rule's."""
    story, *parts = re.split(r"^(Evidence|Remedy|Not this when): ", inspect.getdoc(check) or "", flags=re.MULTILINE)
    pairs = zip(["Story", *parts[::2]], [story, *parts[1::2]], strict=True)
    return f"{id_} {name}\n" + "".join(f"\n{head}\n    {' '.join(text.split())}\n" for head, text in pairs)
