"""A real companion's server and real watchers on this machine, and whoever else may come to their ports."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator

import msgspec

from ray_rl_debug.watch.server import WatcherServer
from ray_rl_debug.watch.spawn import own_code, start
from ray_rl_debug.watch.watcher import WatcherOrder
from ray_rl_debug.watch.wire import Answer, Ping, Pong

HOST = "127.0.0.1"


def wait_for(condition: Callable[[], object], seconds: float = 15.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it never came to that"
        time.sleep(0.01)


@contextlib.contextmanager
def server() -> Iterator[WatcherServer]:
    one = WatcherServer(HOST)
    try:
        yield one
    finally:
        one.close()


@contextlib.contextmanager
def impostor(talk: Callable[[socket.socket], object]) -> Iterator[int]:
    """The port of somebody who talks to all that come to it, one after another."""
    with socket.create_server((HOST, 0)) as ears:
        ears.settimeout(20.0)

        def listen() -> None:
            while True:
                try:
                    connection, _ = ears.accept()
                except OSError:
                    return
                with connection, contextlib.suppress(ConnectionError):  # who hangs up on it may do so at any word
                    talk(connection)

        threading.Thread(target=listen, daemon=True).start()
        yield ears.getsockname()[1]


def order_for(one: WatcherServer, node: str, **more: object) -> WatcherOrder:
    order = WatcherOrder(host=one.host, port=one.port, invitation=one.invite(node), uses_tls=one.uses_tls, raylet_pid=os.getpid())
    return msgspec.structs.replace(order, **more)


def watcher(one: WatcherServer, node: str, **more: object) -> int:
    """A watcher as a process of its own, as the companion starts it; its pid."""
    start(order_for(one, node, **more), own_code()[1])
    wait_for(lambda: node in one.nodes)
    return one.nodes[node].pid


def answer_to(one: WatcherServer, order: msgspec.Struct, node: str, kind: type, seconds: float = 10.0) -> Answer | None:
    """What a watcher answers, passing over what others say."""
    assert one.send(node, order)  # type: ignore[arg-type]
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        said = one.receive(left)
        if said is not None and said[0] == node and isinstance(said[1], kind):
            return said[1]
        if said is not None and said[0] == node and said[1] is None:
            return None
    raise AssertionError(f"{node} did not answer")


def is_served(one: WatcherServer, node: str) -> bool:
    """Does its watcher still answer?"""
    return isinstance(answer_to(one, Ping(number=7), node, Pong), Pong)


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def is_closed(connection: socket.socket, seconds: float = 10.0) -> bool:
    """Does the other end close it in time?"""
    connection.settimeout(seconds)
    try:
        while connection.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


class Proxy:
    """A man in the middle: passes bytes on, keeps them, and may change them."""

    def __init__(self, port: int, change: Callable[[str, bytes], bytes] = lambda _, data: data) -> None:
        self.recorded = {"watcher": bytearray(), "companion": bytearray()}
        """By who said it."""
        self._port = port
        self._change = change
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._run, daemon=True).start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        for one in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _run(self) -> None:
        while True:
            try:
                inner, _ = self._listener.accept()
                outer = socket.create_connection((HOST, self._port))
            except OSError:
                return
            self._open += (inner, outer)
            for who, source, target in (("watcher", inner, outer), ("companion", outer, inner)):
                threading.Thread(target=self._pass_on, args=(who, source, target), daemon=True).start()

    def _pass_on(self, who: str, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self.recorded[who] += data
                target.sendall(self._change(who, data))
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
