"""What an inference engine says of itself at its own endpoints."""

from __future__ import annotations

from ray_rl_debug.model.snapshot.fact import Fact


class EngineState(Fact, frozen=True, kw_only=True):
    """One HTTP server of an engine, asked at the start and at the end of the window.

    Never the only evidence: vLLM's and SGLang's numbers of requests come with the output of a step, so those of an engine that does not step are old.
    Sums over the engines behind the server (data parallel), `kv_usage` is the fullest.
    """

    kind: str
    """``vllm`` or ``sglang``."""
    port: int | None = None
    answered: bool = False
    """Was ``/metrics`` read at the end of the window?"""
    reason: str | None = None
    """Why something is missing, in words."""
    is_paused: bool | None = None
    """vLLM tells in its development mode only. SGLang: False when it is ready; None when it is not, which has other reasons too."""
    is_sleeping: bool | None = None
    """vLLM in its development mode; it counts a pause as sleep."""
    is_ready: bool | None = None
    """SGLang: False while it is paused, starts, or after a health check failed."""
    sleep_level: int | None = None
    """vLLM: 0 awake, 1 weights offloaded, 2 all discarded."""
    running: int | None = None
    """Requests in the batch,"""
    waiting: int | None = None
    """and queued for it, as of the engine's last step."""
    kv_usage: float | None = None
    """Part of the cache in use, 0 to 1."""
    generated_tokens_before: int | None = None
    """All tokens generated until the first look,"""
    generated_tokens: int | None = None
    """and until the last one: equal when none came out between them."""
    between_s: float | None = None
    """Seconds between the two looks."""
