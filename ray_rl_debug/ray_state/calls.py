"""Many processes asked at once, each by one gRPC call, within one deadline for all of them: the silent cost the others nothing."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ray_rl_debug.ray_state.channel import open_channel

CONCURRENCY = 128
"""Connections at the same time: each is a descriptor, and most programs may have 1,024."""
FIRST = 8
"""Of them at the start. More are opened while those who are asked keep us waiting; where our own core is the limit, each would only wait longer."""
TICK_S = 0.02
BUSY = 0.5
"""Part of a tick for which we had a core: then it is not the others that keep us waiting."""
LEAST_S = 0.25
"""Who answers at all does so in some milliseconds, if our own core is free."""


class NotAskedError(TimeoutError):
    """No time was left to ask: this says nothing about whoever was to be asked."""


class Method(msgspec.Struct, frozen=True):
    """One method of one of Ray's services. Ray's own stubs make all methods of a service for each channel, half of the time of a call."""

    path: str
    request: Any
    reply: Any

    @staticmethod
    def of(module: Any, service: str, name: str) -> Method:
        """By Ray's generated module, such as ``node_manager_pb2``. Raises KeyError for what this version of Ray has not."""
        found = module.DESCRIPTOR.services_by_name[service]
        method = found.methods_by_name[name]
        return Method(f"/{found.full_name}/{name}", getattr(module, method.input_type.name), getattr(module, method.output_type.name))

    def ask(self, channel: Any, request: Any, seconds: float) -> Any:
        """The reply. Raises gRPC's errors."""
        call = channel.unary_unary(self.path, request_serializer=self.request.SerializeToString, response_deserializer=self.reply.FromString)
        return call(request, timeout=seconds)


def call_all(addresses: Sequence[str], call: Callable[[Any, int, float], Any], deadline_s: float) -> list[Any]:
    """What each address answered, or the error it did not answer with, in their order.

    Args:
        addresses: ``host:port``, those that matter most first: a thousand take a second of one core, and who is not asked in time has
            `NotAskedError`.
        call: Asks on a channel, given the number of the address and seconds, and waits for the reply.
        deadline_s: For all. Where there are more addresses than connections, each gets its part of the time.
    """
    return _Round(addresses, call, time.monotonic() + deadline_s).answers()


class _Round:
    """Threads that ask one address after the other: a call that its thread waits for costs half of one that tells when it is done."""

    def __init__(self, addresses: Sequence[str], call: Callable[[Any, int, float], Any], until: float) -> None:
        self._addresses, self._call, self._until = addresses, call, until
        self._waiting = deque(range(len(addresses)))
        self._channels: dict[int, Any] = {}
        self._done: queue.SimpleQueue[tuple[int, Any] | None] = queue.SimpleQueue()
        """Numbers and answers; None from a thread that ends."""

    def answers(self) -> list[Any]:
        found: list[Any] = [NotAskedError("not asked: no time was left")] * len(self._addresses)
        threads = self._start(FIRST)
        tick, spent, came = time.monotonic() + TICK_S, time.process_time(), 0
        while threads and (now := time.monotonic()) < self._until + LEAST_S:
            if now >= tick:
                used, passed = time.process_time() - spent, now - tick + TICK_S
                if not came or (came < threads and used < BUSY * passed):
                    threads += self._start(min(threads, CONCURRENCY - threads))
                tick, spent, came = now + TICK_S, spent + used, 0
            with contextlib.suppress(queue.Empty):
                done = self._done.get(timeout=TICK_S if self._waiting else max(TICK_S, self._until + LEAST_S - now))
                if done is None:
                    threads -= 1
                else:
                    found[done[0]] = done[1]
                    came += 1
        self._waiting.clear()
        for number, channel in list(self._channels.items()):
            found[number] = TimeoutError("no answer in time")
            channel.close()  # its thread ends with this
        return found

    def _start(self, most: int) -> int:
        """How many threads were started."""
        more = min(most, len(self._waiting))
        for _ in range(more):
            threading.Thread(target=self._ask, daemon=True, name="asks Ray").start()
        return more

    def _ask(self) -> None:
        while (left := self._until - time.monotonic()) > 0 and self._waiting:
            try:
                number = self._waiting.popleft()
            except IndexError:
                break
            turns = 1 + len(self._waiting) // CONCURRENCY
            try:
                channel = self._channels[number] = open_channel(self._addresses[number])
                answer = self._call(channel, number, max(LEAST_S, left / turns))
            except Exception as e:  # noqa: BLE001 one address that cannot be asked is a fact about it
                answer = e
            if number in self._channels:
                self._channels.pop(number).close()
            self._done.put((number, answer))
        self._done.put(None)
