"""The one door to numpy and scipy: they are loaded when a test runs, so that ``explain`` stays instant."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ray_rl_debug.bounded.one_core import one_core
from ray_rl_debug.model.errors import MissingExtraError


@functools.cache
def load() -> tuple[Any, Any]:
    """numpy, and scipy.stats.

    Raises:
        MissingExtraError: one of them is not installed, or does not load.
    """
    try:
        with one_core():
            import numpy
            from scipy import stats
    except ImportError as e:
        raise MissingExtraError(f"trends need scipy, which cannot be loaded ({e})", hint="pip install 'ray-rl-debug[metrics]'") from e
    return numpy, stats


def recursion(above: Sequence[float], below: Sequence[float], rows: Any) -> Any:
    """Rows through the recursion ``below(L) out = above(L) in`` of a lag operator L, from rest (`scipy.signal.lfilter`)."""
    load()
    from scipy import signal

    return signal.lfilter(above, below, rows, axis=-1)
