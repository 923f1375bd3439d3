"""Our own Ray driver, a child process of the command: places an agent on every node, lets all collect in one window, gathers what comes.

A process of its own, because Ray writes to the driver's standard output, ends the driver when its raylet dies, and cannot be interrupted while
it connects to a stopped raylet. The command keeps its output clean, its deadline and what it has.
"""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

import ray_rl_debug
from ray_rl_debug.cluster.agent_pool import AgentPool, describe
from ray_rl_debug.cluster.ask_actors import ask_actors
from ray_rl_debug.cluster.driver_messages import (
    Ask,
    AskActors,
    Connect,
    Ended,
    Gather,
    Halt,
    Leave,
    Message,
    Order,
    Release,
    Timed,
    pack,
    read_message,
)
from ray_rl_debug.cluster.gathering import Gathering

LEAVE_S = 5.0
"""For removing our agents and disconnecting."""


class _Orders:
    """What the command wants, in turn; `stop` is set by an order to halt and cleared when the next one is taken."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._queue: queue.Queue[Order] = queue.Queue()
        self.stop = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def take(self) -> Order:
        return self._queue.get()

    def _listen(self) -> None:
        while True:
            order = read_message(self._read, Order)
            if order is None:
                os._exit(1)  # the command is gone
            if isinstance(order, Halt):
                self.stop.set()
                continue
            self._queue.put(order)
            if isinstance(order, Leave):
                self.stop.set()  # whatever is still under way has nobody who waits for it
                return  # the command may go: we leave by ourselves


def main() -> None:
    """Take orders on standard input, write messages on what was standard output; Ray's own prints go to stderr."""
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    source = os.fdopen(os.dup(0), "rb")
    lock = threading.Lock()

    def send(message: Message) -> None:
        with lock:
            data = memoryview(pack(message))
            while data:
                data = data[out.write(data) or 0 :]

    orders = _Orders(source.read)
    import ray  # while the command still reads the tables

    leaving: list[Callable[[], object]] = [ray.shutdown]
    first = orders.take()
    if isinstance(first, Connect):
        try:
            pool = _connect(ray, first, send)
            leaving.append(pool.leave)
            _serve(pool, orders, send)
        except Exception as e:  # noqa: BLE001 told to the command, which has other ways
            with contextlib.suppress(OSError):
                send(Ended(describe(e), is_gone=True))
    # Ray may wait for a raylet or a GCS that does not answer.
    end = threading.Thread(target=lambda: [step() for step in leaving[::-1]], daemon=True)
    end.start()
    end.join(LEAVE_S)
    sys.stderr.flush()
    os._exit(0)  # Ray's own exit would wait again


def _serve(pool: AgentPool, orders: _Orders, send: Callable[[Message], None]) -> None:
    while True:
        order = orders.take()
        if isinstance(order, Gather):
            Gathering(pool, order, send, orders.stop).run()
        elif isinstance(order, Ask):
            pool.ask(order, send)
        elif isinstance(order, AskActors):
            ask_actors(pool.ray, order, send)
        elif isinstance(order, Release):
            pool.release(order)
        else:
            return
        orders.stop.clear()
        send(Ended())


def _connect(ray: Any, order: Connect, send: Callable[[Message], None]) -> AgentPool:
    if order.use_token:
        from ray_rl_debug.cluster.auth import switch_to_token

        switch_to_token()
    began = time.monotonic()
    settings = {"address": order.address, "namespace": order.namespace, "log_to_driver": False, "logging_level": "ERROR"}
    try:
        ray.init(**settings, runtime_env={"py_modules": _shipped(), "excludes": ["__pycache__"]})
    except Exception as e:
        if not _is_disk(e):
            raise
        # Ray packs what is shipped on the disk for temporary files; nodes on which we are installed need none of it
        ray.shutdown()
        ray.init(**settings)
    send(Timed("connect_s", time.monotonic() - began))
    return AgentPool(ray, order.namespace)


def _is_disk(error: BaseException | None) -> bool:
    """Was it that something could not be written?"""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
            return True
        error = error.__cause__ or error.__context__
    return False


def _shipped() -> list[str]:
    """Our code and msgspec: nodes need nothing but Ray."""
    return [str(Path(package.__file__ or "").resolve().parent) for package in (ray_rl_debug, msgspec)]


if __name__ == "__main__":
    main()
