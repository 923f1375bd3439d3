"""The companion's end of the connections to its watchers: one thread, one selector."""

from __future__ import annotations

import hmac
import queue
import secrets
import selectors
import socket
import threading
import time

import msgspec

from ray_rl_debug.watch.wire import Answer, Hello, Parts, packed

HELLO_S = 10.0
SEND_S = 2.0
"""A watcher that takes no order for so long is gone."""


class _Peer:
    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.parts = Parts()
        self.came = time.monotonic()
        self.node_id: str | None = None
        self.hello: Hello | None = None


class WatcherServer:
    """Listens at one address; knows watchers by node id."""

    def __init__(self, host: str) -> None:
        self.token = secrets.token_hex(32)
        self._listener = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=1024)
        self._listener.setblocking(False)
        self.host, self.port = self._listener.getsockname()[:2]
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._peers: dict[str, _Peer] = {}
        self._lock = threading.Lock()
        self._answers: queue.Queue[tuple[str, Answer | None]] = queue.Queue()
        self._wake, other = socket.socketpair()
        self._selector.register(other, selectors.EVENT_READ)
        self._other = other
        self._is_closed = False
        self._thread = threading.Thread(target=self._listen, daemon=True, name="watchers")
        self._thread.start()

    @property
    def nodes(self) -> dict[str, Hello]:
        """Who is connected, by node id."""
        with self._lock:
            return {n: p.hello for n, p in self._peers.items() if p.hello is not None}

    def send(self, node_id: str, order: msgspec.Struct) -> bool:
        """Was the order taken?"""
        with self._lock:
            peer = self._peers.get(node_id)
        if peer is None:
            return False
        try:
            peer.connection.settimeout(SEND_S)
            peer.connection.sendall(packed(order))
            return True
        except OSError:
            self._drop(peer)
            return False

    def receive(self, timeout_s: float) -> tuple[str, Answer | None] | None:
        """The next answer and its node; an answer of None: the watcher is gone. None when nothing came in time."""
        try:
            return self._answers.get(timeout=max(0.0, timeout_s)) if timeout_s > 0 else self._answers.get_nowait()
        except queue.Empty:
            return None

    def close(self) -> None:
        """All watchers end when their connection does."""
        self._is_closed = True
        self._wake.close()
        self._thread.join(2)
        with self._lock:
            peers = list(self._peers.values())
        for peer in peers:
            self._drop(peer)
        self._listener.close()
        self._other.close()
        self._selector.close()

    def _listen(self) -> None:
        while not self._is_closed:
            for key, _ in self._selector.select():
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._other:
                    return
                else:
                    self._hear(key.data)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        connection.settimeout(SEND_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector.register(connection, selectors.EVENT_READ, _Peer(connection))

    def _hear(self, peer: _Peer) -> None:
        try:
            data = peer.connection.recv(1 << 18)
            answers = peer.parts.add(data) if data else None
        except (OSError, ValueError):
            answers = None
        if answers is None or (peer.hello is None and answers and not self._welcome(peer, answers.pop(0))):
            self._drop(peer)
            return
        for answer in answers:
            assert peer.node_id is not None
            self._answers.put((peer.node_id, answer))

    def _welcome(self, peer: _Peer, first: Answer) -> bool:
        if not isinstance(first, Hello) or not hmac.compare_digest(first.token, self.token):
            return False
        with self._lock:
            old = self._peers.pop(first.node_id, None)
            peer.hello, peer.node_id = first, first.node_id
            self._peers[first.node_id] = peer
        if old is not None:
            self._drop(old)
        self._answers.put((first.node_id, first))
        return True

    def _drop(self, peer: _Peer) -> None:
        with self._lock:
            known = peer.node_id is not None and self._peers.get(peer.node_id) is peer
            if known and peer.node_id is not None:
                del self._peers[peer.node_id]
        try:
            self._selector.unregister(peer.connection)
        except (KeyError, ValueError, RuntimeError):
            pass  # dropped before
        peer.connection.close()
        if known and peer.node_id is not None:
            self._answers.put((peer.node_id, None))
