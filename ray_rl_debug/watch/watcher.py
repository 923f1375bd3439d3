"""The companion's process on one node: sleeps until it is asked, answers in a millisecond, ends with its companion.

An idle Ray worker wakes a hundred times a second, half a percent of a core; this process uses a twentieth of that, and it also answers when the
raylet is stopped or gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import msgspec

from ray_rl_debug.watch.node_watch import NodeWatch
from ray_rl_debug.watch.wire import (
    SILENT_S,
    Collect,
    Collected,
    EndDriver,
    Ended,
    FinishEarly,
    Hello,
    Ping,
    Pong,
    PySpy,
    Read,
    Reading,
    receive_order,
)
from ray_rl_debug.watch.wire import packed as as_bytes

CONNECT_S = 5.0


class WatcherOrder(msgspec.Struct, frozen=True, kw_only=True):
    """How a watcher is started."""

    host: str
    port: int
    token: str
    only: tuple[str, ...] = ()
    """Nodes that want a watcher; the others have one."""
    node_id: str = ""
    node_ip: str | None = None
    raylet_pid: int | None = None
    folder: str | None = None
    """Its own copy of our code, removed at the end."""


class Watcher:
    """Serves one companion over one connection."""

    def __init__(self, order: WatcherOrder, connection: socket.socket) -> None:
        self._order = order
        self._connection = connection
        self._send_lock = threading.Lock()
        self._watch = NodeWatch(order.raylet_pid)
        self._pyspy: str | None = None
        self._stops: dict[int, threading.Event] = {}

    def serve(self) -> None:
        """Until the companion is gone."""
        from ray_rl_debug.collect.pyspy import find_pyspy

        order = self._order
        self._send(Hello(token=order.token, node_id=order.node_id, pid=os.getpid(), has_pyspy=find_pyspy(None) is not None))
        while (said := receive_order(self._connection)) is not None:
            if isinstance(said, Read):
                self._send(Reading(reading=self._watch.read(said.order)))
            elif isinstance(said, Ping):
                self._send(Pong(number=said.number, time_s=time.time()))
            elif isinstance(said, Collect):
                self._stops[said.ticket] = threading.Event()
                threading.Thread(target=self._collect, args=(said,), daemon=True).start()
            elif isinstance(said, FinishEarly):
                self._stops.get(said.ticket, threading.Event()).set()
            elif isinstance(said, PySpy):
                self._install(said.packed)
            elif isinstance(said, EndDriver):
                self._send(Ended(done=said.ip in (None, order.node_ip) and end_driver(said.pid)))
        self._watch.close()

    def close(self) -> None:
        """Leave nothing behind."""
        if self._pyspy is not None:
            shutil.rmtree(Path(self._pyspy).parent, ignore_errors=True)
        if self._order.folder is not None:
            shutil.rmtree(self._order.folder, ignore_errors=True)

    def _collect(self, asked: Collect) -> None:
        data, reason = None, None
        try:
            from ray_rl_debug import codec
            from ray_rl_debug.collect.node import collect_node

            options = msgspec.structs.replace(asked.options, raylet_pid=self._order.raylet_pid, pyspy=asked.options.pyspy or self._pyspy)
            data = codec.encode_compressed(collect_node(options, stop=self._stops[asked.ticket]))
        except Exception as e:  # noqa: BLE001 told to the companion
            reason = f"{type(e).__name__}: {str(e)[:200]}"
        self._stops.pop(asked.ticket, None)
        with contextlib.suppress(OSError):
            self._send(Collected(ticket=asked.ticket, data=data, reason=reason))

    def _install(self, packed: bytes) -> None:
        from ray_rl_debug.cluster.node_agent import _install_pyspy

        self._pyspy = _install_pyspy(packed)

    def _send(self, answer: msgspec.Struct) -> None:
        with self._send_lock:
            self._connection.sendall(as_bytes(answer))


def end_driver(pid: int) -> bool:
    """SIGTERM to a process that has Ray's core worker loaded; was it sent?"""
    from ray_rl_debug.collect.procfs import PROC, read_text

    if "/_raylet" not in (read_text(PROC / str(pid) / "maps", 8 << 20) or ""):
        return False
    try:
        os.kill(pid, signal.SIGTERM)
    except OSError:
        return False
    return True


def main() -> None:
    """A line of JSON on standard input says whom to serve. Leaves the process that started us at once."""
    order = msgspec.convert(json.loads(sys.stdin.readline()), WatcherOrder)
    if os.fork() > 0:
        os._exit(0)
    os.setsid()
    for number in range(3):
        os.dup2(os.open(os.devnull, os.O_RDWR), number)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # when memory runs out, rather us than the run
    watcher = None
    try:
        with socket.create_connection((order.host, order.port), timeout=CONNECT_S) as connection:
            connection.settimeout(SILENT_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            watcher = Watcher(order, connection)
            watcher.serve()
    except OSError:
        pass  # the companion is gone, or not to be reached from here: it has other ways
    finally:
        if watcher is not None:
            watcher.close()
        elif order.folder is not None:
            shutil.rmtree(order.folder, ignore_errors=True)
        os._exit(0)


if __name__ == "__main__":
    main()
