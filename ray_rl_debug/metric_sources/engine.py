"""Numbers of a running engine (vLLM, SGLang), to be put beside the steps: where does the time go?"""

from __future__ import annotations

import time
from collections.abc import Callable
from urllib.parse import urlsplit

import msgspec

from ray_rl_debug.collect.engine_metrics import read_metrics
from ray_rl_debug.collect.plain_http import Answer, Get, get_all
from ray_rl_debug.model.errors import UsageError

DEADLINE_S = 2.0
FULL = 0.95
"""Use of the cache from which it counts as full."""


class EngineNumbers(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One look at ``/metrics``; what is not told is None."""

    time_s: float
    """Unix time."""
    step: int | None = None
    """Of the trainer at that time."""
    reason: str | None = None
    """Why there are no numbers."""
    silent_s: float | None = None
    """For how long there have been none, if there were any before."""
    running: int | None = None
    waiting: int | None = None
    kv_usage: float | None = None
    """0 to 1."""
    tokens_per_s: float | None = None
    """Generated since the look before."""
    preemptions: int | None = None
    """Since the look before."""

    def text(self) -> str:
        """``engine: 12 running, 3 waiting, cache 93 %, 812 tokens/s``, and what that means."""
        if self.reason is not None:
            gone = f" (it answered until {self.silent_s:.0f} s ago: it has ended, or does not serve now)" if self.silent_s is not None else ""
            return f"engine: {self.reason}{gone}"
        parts = [
            f"{self.running} running" if self.running is not None else "",
            f"{self.waiting} waiting" if self.waiting is not None else "",
            f"cache {self.kv_usage:.0%}" if self.kv_usage is not None else "",
            f"{self.tokens_per_s:,.0f} tokens/s" if self.tokens_per_s is not None else "",
            f"{self.preemptions} preemptions" if self.preemptions else "",
        ]
        said = ", ".join(p for p in parts if p) or "no numbers"
        return f"engine: {said}{self._meaning()}"

    def _meaning(self) -> str:
        if self.running is None:
            return ""
        if self.waiting and ((self.kv_usage or 0) >= FULL or self.preemptions):
            return " (its cache is full: requests wait for it)"
        if self.tokens_per_s == 0:
            if self.running or self.waiting:
                return " (requests wait, and no token comes out)"
            return " (idle: the time goes elsewhere)"
        return ""


class EngineReader:
    """Asks one engine again and again."""

    def __init__(self, url: str, *, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._get = parse(url)
        self._clock, self._wall = clock, wall
        self._before: tuple[float, dict[str, float]] | None = None

    def read(self, step: int | None = None) -> EngineNumbers:
        """The numbers now; never raises, and waits two seconds at most."""
        now = self._clock()
        answer = get_all([self._get], now + DEADLINE_S)[0]
        if not isinstance(answer, Answer) or answer.status != 200:
            reason = answer if isinstance(answer, str) else f"/metrics answers {answer.status}"
            silent_s = now - self._before[0] if self._before is not None else None
            return EngineNumbers(time_s=self._wall(), step=step, reason=reason, silent_s=silent_s)
        found = read_metrics(answer.body)
        before, self._before = self._before, (now, found)
        rate = preempted = None
        if before is not None and now > before[0]:
            rate = _risen("generated_tokens", before[1], found)
            preempted = _risen("preemptions", before[1], found)
            rate = rate / (now - before[0]) if rate is not None else None
        return EngineNumbers(
            time_s=self._wall(),
            step=step,
            running=_whole(found.get("running")),
            waiting=_whole(found.get("waiting")),
            kv_usage=found.get("kv_usage"),
            tokens_per_s=rate,
            preemptions=_whole(preempted),
            reason=None if found else "/metrics holds no numbers of vLLM or SGLang",
        )


def parse(url: str) -> Get:
    """Host and port of ``http://host:port``.

    Raises:
        UsageError: anything else.
    """
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.scheme != "http" or not host:
        raise UsageError(f"--engine {url!r} is not the address of an engine", hint="write it as http://127.0.0.1:8000")
    return Get(host, port or 80, "/metrics")


def _risen(name: str, before: dict[str, float], now: dict[str, float]) -> float | None:
    """None when it is not told, or the engine was started anew."""
    if name not in before or name not in now or now[name] < before[name]:
        return None
    return now[name] - before[name]


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
