"""Many processes asked at once, each by one gRPC call, within one deadline for all of them: the silent cost the others nothing."""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ray_rl_debug.ray_state.channel import open_channel

CONCURRENCY = 128
"""Connections at the same time: each is a descriptor, and most programs may have 1,024."""
LEAST_S = 0.1
"""Who answers at all does so in some milliseconds."""


class NotAskedError(TimeoutError):
    """No time was left to ask: this says nothing about whoever was to be asked."""


def call_all(addresses: Sequence[str], call: Callable[[Any, int, float], Any], deadline_s: float) -> list[Any]:
    """What each address answered, or the error it did not answer with, in their order.

    Args:
        addresses: ``host:port``, those that matter most first: a thousand take a second or two of one core, and who is not asked in time has
            `NotAskedError`.
        call: Begins the call on a channel, given the number of the address and seconds; gives a gRPC future.
        deadline_s: For all. Where there are more addresses than connections, each gets its part of the time.
    """
    until = time.monotonic() + deadline_s
    answers: list[Any] = [NotAskedError("not asked: no time was left")] * len(addresses)
    waiting = deque(range(len(addresses)))
    channels: dict[int, Any] = {}
    done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
    while waiting or channels:
        left = until - time.monotonic()
        while waiting and len(channels) < CONCURRENCY and left > 0:
            number = waiting.popleft()
            turns = 1 + len(waiting) // CONCURRENCY
            try:
                channels[number] = open_channel(addresses[number])
                future = call(channels[number], number, max(LEAST_S, left / turns))
                future.add_done_callback(lambda f, n=number: done.put((n, f)))
            except Exception as e:  # noqa: BLE001 one address that cannot be asked is a fact about it
                answers[number] = e
                _close(channels.pop(number, None))
        if not channels:
            break
        try:
            number, future = done.get(timeout=max(0.0, left) + LEAST_S)
        except queue.Empty:
            break
        try:
            answers[number] = future.result()
        except Exception as e:  # noqa: BLE001 as above
            answers[number] = e
        _close(channels.pop(number))
    for number, channel in channels.items():
        answers[number] = TimeoutError(f"no answer in {deadline_s:g} s")
        _close(channel)
    return answers


def _close(channel: Any) -> None:
    if channel is not None:
        channel.close()
