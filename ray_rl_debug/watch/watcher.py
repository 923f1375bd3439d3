"""The companion's process on one node: sleeps until it is asked, answers in a millisecond, ends with its companion.

An idle Ray worker wakes a hundred times a second, half a percent of a core; this process uses a twentieth of that, and it also answers when the
raylet is stopped or gone.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import socket
import sys
import threading
import time
from pathlib import Path

import msgspec

from ray_rl_debug.watch import tls
from ray_rl_debug.watch.end_driver import end_driver
from ray_rl_debug.watch.link import Connection
from ray_rl_debug.watch.node_watch import NodeWatch
from ray_rl_debug.watch.seal import ANSWER_BYTES, NONCE_BYTES, Invitation, Opener, Sealer, WireError, check_answer, derive, knock
from ray_rl_debug.watch.wire import (
    MAX_ORDER_BYTES,
    SILENT_S,
    Answer,
    Collect,
    Collected,
    DriverEnded,
    EndDriver,
    FinishEarly,
    Hello,
    Installed,
    Order,
    Ping,
    Pong,
    PySpy,
    Read,
    Reading,
    decode_order,
    encode,
)

CONNECT_S = 8.0
"""For the connection, and for the companion to prove that it is the one."""
AGAIN_S = 0.5
ROOM_S = 10.0
"""The raylet's descriptors are counted this often."""


class WatcherOrder(msgspec.Struct, frozen=True, kw_only=True):
    """How a watcher is started."""

    host: str
    port: int
    invitation: Invitation
    uses_tls: bool = False
    """Speak to nobody without it."""
    pyspy_sha256: str | None = None
    """Of the only py-spy that the watcher may be given."""
    raylet_pid: int | None = None
    folder: str | None = None
    """Its own copy of our code, removed at the end."""


class Watcher:
    """Serves one companion over one connection."""

    def __init__(self, order: WatcherOrder, *, silent_s: float = SILENT_S, connect_s: float = CONNECT_S) -> None:
        self._order = order
        self._silent_s = silent_s
        self._connect_s = connect_s
        self._watch = NodeWatch(order.raylet_pid)
        self._pyspy: str | None = None
        self._stops: dict[int, threading.Event] = {}
        self._wake, self._woken = socket.socketpair()
        self._woken.setblocking(False)
        self._wake.setblocking(False)
        self._asked_room_at = float("-inf")
        self._room: str | None = None
        self._link: Connection | None = None
        self._sealer: Sealer | None = None

    def serve(self) -> None:
        """Until the companion is gone.

        Raises:
            OSError: it is not to be reached, or gone.
            WireError: who answers at its port is somebody else.
        """
        from ray_rl_debug.collect.pyspy import find_pyspy

        self._link, opener = self._connect()
        try:
            self._send(Hello(pid=os.getpid(), has_pyspy=find_pyspy(None) is not None))
            heard_at = time.monotonic()
            while (left := heard_at + self._silent_s - time.monotonic()) > 0:
                self._link.wait(self._woken, left)
                with contextlib.suppress(OSError):
                    self._woken.recv(4096)
                data = self._link.read()
                if data is None:
                    return
                for body in opener.add(data):
                    heard_at = time.monotonic()
                    self._obey(decode_order(body))
        finally:
            self._watch.close()
            self._link.close()

    def _connect(self) -> tuple[Connection, Opener]:
        """A connection on which the companion has proven itself; a port that is too busy to answer is tried again."""
        until = time.monotonic() + self._connect_s
        while True:
            try:
                return self._try_to_connect(until)
            except (OSError, WireError):
                if time.monotonic() + AGAIN_S > until:
                    raise
                time.sleep(AGAIN_S)

    def _try_to_connect(self, until: float) -> tuple[Connection, Opener]:
        order, nonce = self._order, secrets.token_bytes(NONCE_BYTES)
        context = tls.context(os.environ, is_server=False)
        if order.uses_tls and context is None:
            raise OSError("the companion uses TLS, and Ray's certificates are not known here")
        connection = socket.create_connection((order.host, order.port), timeout=max(0.1, until - time.monotonic()))
        link = Connection(connection, context if order.uses_tls else None, is_server=False)
        try:
            link.write(knock(order.invitation, nonce))
            answer = b""
            while len(answer) < ANSWER_BYTES:
                if (left := until - time.monotonic()) <= 0:
                    raise OSError("the companion does not answer")
                link.wait(self._woken, left)
                data = link.read()
                if data is None:
                    raise OSError("the companion closed the connection")
                answer += data
            keys = derive(order.invitation, nonce, check_answer(order.invitation, nonce, answer[:ANSWER_BYTES]))
            opener = Opener(keys.orders, MAX_ORDER_BYTES)
            if len(answer) > ANSWER_BYTES:
                raise WireError("the companion sent an order before it knew this watcher")
        except BaseException:
            link.close()
            raise
        self._sealer = Sealer(keys.answers)
        return link, opener

    def _obey(self, said: Order) -> None:
        if isinstance(said, Read):
            self._send(Reading(reading=self._watch.read(said.order), no_room=self._no_room()))
        elif isinstance(said, Ping):
            self._send(Pong(number=said.number, time_s=time.time()))
        elif isinstance(said, Collect):
            self._stops[said.ticket] = threading.Event()
            threading.Thread(target=self._collect, args=(said,), daemon=True).start()
        elif isinstance(said, FinishEarly):
            self._stops.get(said.ticket, threading.Event()).set()
        elif isinstance(said, PySpy):
            self._install(said.packed)
            self._send(Installed(done=self._pyspy is not None))
        elif isinstance(said, EndDriver):
            self._send(DriverEnded(done=end_driver(said.pid, said.start_ticks)))

    def close(self) -> None:
        """Leave nothing behind."""
        if self._pyspy is not None:
            shutil.rmtree(Path(self._pyspy).parent, ignore_errors=True)
        if self._order.folder is not None:
            shutil.rmtree(self._order.folder, ignore_errors=True)

    def _collect(self, asked: Collect) -> None:
        data, reason = None, None
        try:
            from ray_rl_debug.collect.node import collect_node
            from ray_rl_debug.model.packed_node import pack_node

            options = msgspec.structs.replace(asked.options, raylet_pid=self._order.raylet_pid, pyspy=self._pyspy)  # no path of elsewhere is run here
            data = pack_node(collect_node(options, stop=self._stops[asked.ticket]))
        except Exception as e:  # noqa: BLE001 told to the companion
            reason = f"{type(e).__name__}: {str(e)[:200]}"
        self._stops.pop(asked.ticket, None)
        with contextlib.suppress(OSError):
            self._send(Collected(ticket=asked.ticket, data=data, reason=reason))

    def _install(self, packed: bytes) -> None:
        """Only the one that was announced where the watcher was started."""
        from ray_rl_debug.cluster.node_agent import install_pyspy, unpack_pyspy

        binary = unpack_pyspy(packed) if self._order.pyspy_sha256 is not None else None
        if binary is not None and hashlib.sha256(binary).hexdigest() == self._order.pyspy_sha256 and self._pyspy is None:
            self._pyspy = install_pyspy(binary)

    def _no_room(self) -> str | None:
        from ray_rl_debug.cluster.local_looks import has_room

        now = time.monotonic()
        if now - self._asked_room_at >= ROOM_S:
            self._asked_room_at, self._room = now, has_room(self._order.raylet_pid)
        return self._room

    def _send(self, answer: Answer) -> None:
        assert self._link is not None
        assert self._sealer is not None
        self._link.send_sealed(self._sealer.seal, encode(answer))
        if self._link.waiting_bytes:
            with contextlib.suppress(OSError):
                self._wake.send(b".")


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
        watcher = Watcher(order)
        watcher.serve()
    except (OSError, WireError):
        pass  # the companion is gone, or not to be reached from here: it has other ways
    finally:
        if watcher is not None:
            watcher.close()
        elif order.folder is not None:
            shutil.rmtree(order.folder, ignore_errors=True)
        os._exit(0)


if __name__ == "__main__":
    main()
