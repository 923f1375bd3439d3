"""What Agent-Lightning's store says of its rollouts and runners (read in version 0.3.0: ``store/client_server.py``, ``types/core.py``)."""

from __future__ import annotations

import msgspec

from ray_rl_debug.model.snapshot import Gap, Runner


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """Base: immutable; None is *not told*. Times are Unix times of the store's clock."""


class Rollout(Held, frozen=True, kw_only=True):
    """One rollout with its last attempt."""

    rollout_id: str
    status: str
    """``queuing``, ``preparing``, ``running``, ``succeeded``, ``failed``, ``cancelled`` or ``requeuing``."""
    start_time_s: float | None = None
    end_time_s: float | None = None
    timeout_s: float | None = None
    attempt_id: str | None = None
    attempt_status: str | None = None
    """As the rollout's, or ``unresponsive`` or ``timeout``."""
    attempt_start_s: float | None = None
    worker_id: str | None = None
    span_time_s: float | None = None
    """When its last span came in: the true sign of life. None: none yet."""
    spans: int | None = None
    """Spans that the store has of it,"""
    missing_spans: int | None = None
    """numbers that were given out to its spans and never came back, below the highest that did."""
    has_reward: bool | None = None
    has_calls: bool | None = None
    """Is there a span that is no reward or annotation? None without spans, or not asked."""


class Proxy(Held, frozen=True, kw_only=True):
    """An LLM endpoint that the store gives to agents."""

    url: str
    status: int | None = None
    reason: str | None = None
    """Why there is no answer."""


class Store(Held, frozen=True, kw_only=True):
    """All that was asked of one store, and again some seconds later."""

    url: str
    reason: str | None = None
    """Why it did not answer; then nothing else is known."""
    is_other: bool = False
    """Something answers there that is no store."""
    is_healthy: bool | None = None
    now_s: float | None = None
    """The newest time in its tables, at the first look: ages are at least as long."""
    between_s: float | None = None
    """Seconds between the two looks."""
    total_rollouts: int | None = None
    total_spans: int | None = None
    new_spans: int | None = None
    """Since the first look."""
    counts: dict[str, int] = {}
    """Rollouts by status, of those that were read."""
    rollouts: tuple[Rollout, ...] = ()
    """The newest, and all that are not ended."""
    runners: tuple[Runner, ...] = ()
    proxies: tuple[Proxy, ...] = ()
    gaps: tuple[Gap, ...] = ()
