"""Calls that may never come back: into a hung file system, or about a process whose memory map somebody holds.

Such a call runs in a daemon thread. When it does not come back in time its thread is left behind and we go on; a process of ours can end all
the same, for the kernel ends such threads with it.
"""

from __future__ import annotations

import errno
import os
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

STUCK_ENOUGH = 32
"""With this many threads left behind nothing more is tried: each of them holds memory, and perhaps a lock of the file system."""
KEPT_IDLE = 4

_idle: list[_Worker] = []
_stuck: set[_Worker] = set()
_lock = threading.Lock()


class _Worker:
    """A thread that runs one call after another."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.is_busy = False
        self.todo: queue.SimpleQueue[tuple[Callable[[], Any], queue.SimpleQueue[Any]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True, name="within").start()

    def _work(self) -> None:
        while (call := self.todo.get()) is not None:
            function, answer = call
            self.is_busy = True
            try:
                answer.put((function(), None))
            except BaseException as e:  # noqa: BLE001 it is raised where somebody waits for it
                answer.put((None, e))
            del call, function, answer
            self.is_busy = False
            _stuck.discard(self)


def within(seconds: float, function: Callable[[], T]) -> T:
    """What `function` returns or raises; it keeps running when it takes longer.

    Raises:
        TimeoutError: it did not come back in time, or too many calls before it have not.
    """
    with _lock:
        worker = _idle.pop() if _idle else None
    if worker is None or worker.owner != os.getpid():  # a fork has no threads
        if len(_stuck) >= STUCK_ENOUGH:
            raise TimeoutError(errno.ETIMEDOUT, f"not tried: {len(_stuck)} earlier calls have not come back")
        worker = _Worker()
    answer: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
    is_back = False
    try:
        worker.todo.put((function, answer))
        value, error = answer.get(timeout=seconds)
        is_back = True
    except queue.Empty:
        raise TimeoutError(errno.ETIMEDOUT, f"no answer in {seconds:g} s") from None
    finally:
        _give_back(worker, is_back)
    if error is not None:
        raise error
    return value  # type: ignore[no-any-return]


def _give_back(worker: _Worker, is_back: bool) -> None:
    with _lock:
        if is_back and len(_idle) < KEPT_IDLE:
            _idle.append(worker)
            return
    if not is_back:
        _stuck.add(worker)
        if not worker.is_busy and worker.todo.empty():  # it came back just now
            _stuck.discard(worker)
    worker.todo.put(None)  # it ends when it comes back
