"""The companion's end of the connections to its watchers: one thread, one selector, and no way for anybody to stop it or to fill it up."""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import secrets
import selectors
import socket
import threading
import time

from ray_rl_debug.watch import tls
from ray_rl_debug.watch.link import Connection
from ray_rl_debug.watch.peers import HELLO_S, MAX_UNREAD, STRANGERS, Peer, whom_to_drop
from ray_rl_debug.watch.seal import Invitation, WireError, invite
from ray_rl_debug.watch.wire import Answer, Hello, Order

STALLED_S = 10.0
"""A watcher that takes nothing of an order for so long is gone."""
OPEN_INVITATIONS = 3
"""Of one node: a watcher that was started late may still come."""
REST_S = 0.5
"""Without taking connections, when there are no descriptors for them,"""
SHORT_REST_S = 0.1
"""or when more than a cluster's nodes come at once."""
BURST, PER_S, TLS_PER_S = 2000.0, 500.0, 50.0
"""Connections taken at once, and per second: with TLS each costs a millisecond or two."""
_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class WatcherServer:
    """Listens at one address; knows watchers by node id. Raises as `tls.context`."""

    def __init__(self, host: str) -> None:
        self.session = secrets.token_hex(16)
        self._tls = tls.context(os.environ, is_server=True)
        self._listener = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=1024)
        self._listener.setblocking(False)
        self.host, self.port = self._listener.getsockname()[:2]
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._invitations: dict[str, Invitation] = {}
        self._peers: dict[str, Peer] = {}
        self._strangers: set[Peer] = set()
        self._slow: set[Peer] = set()
        """They have not taken all of their orders yet."""
        self._doomed: list[Peer] = []
        """To be closed by the thread that listens, as all are."""
        self._lock = threading.Lock()
        self._answers: queue.Queue[tuple[str, Answer | None, Peer]] = queue.Queue()
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)
        self._woken.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._is_closed = False
        self._rest_until: float | None = None
        self._allowance, self._allowed_at = BURST, time.monotonic()
        self._thread = threading.Thread(target=self._listen, daemon=True, name="watchers")
        self._thread.start()

    @property
    def uses_tls(self) -> bool:
        return self._tls is not None

    @property
    def nodes(self) -> dict[str, Hello]:
        """Who is connected, by node id."""
        with self._lock:
            return {n: p.hello for n, p in self._peers.items() if p.hello is not None}

    @property
    def waiting_strangers(self) -> int:
        """Connections that have proven nothing yet."""
        return len(self._strangers)

    def invite(self, node_id: str) -> Invitation:
        """For one watcher of this node, once; the latest ones hold."""
        made = invite(self.session, node_id)
        with self._lock:
            older = [i.number for i in self._invitations.values() if i.node_id == node_id]
            for number in older[: len(older) + 1 - OPEN_INVITATIONS]:
                del self._invitations[number]
            self._invitations[made.number] = made
        return made

    def send(self, node_id: str, order: Order) -> bool:
        """Is it on its way? Never waits."""
        with self._lock:
            peer = self._peers.get(node_id)
        if peer is None:
            return False
        try:
            peer.tell(order)
        except OSError:
            self._forget(peer)
            with self._lock:
                self._doomed.append(peer)
            self._stir()
            return False
        if peer.link.waiting_bytes:
            with self._lock:
                self._slow.add(peer)
            self._stir()
        return True

    def receive(self, timeout_s: float) -> tuple[str, Answer | None] | None:
        """The next answer and its node; an answer of None: the watcher is gone. None when nothing came in time."""
        try:
            node_id, answer, peer = self._answers.get(timeout=timeout_s) if timeout_s > 0 else self._answers.get_nowait()
        except queue.Empty:
            return None
        with self._lock:
            peer.unread -= 1
        return node_id, answer

    def close(self) -> None:
        """All watchers end when their connection does."""
        self._is_closed = True
        self._stir()
        self._thread.join(2)
        for peer in (*self._peers.values(), *self._strangers, *self._doomed):
            peer.link.close()
        self._peers.clear()
        for one in (self._listener, self._wake, self._woken, self._selector):
            one.close()

    def _stir(self) -> None:
        with contextlib.suppress(OSError):  # it is full of reasons to wake up
            self._wake.send(b".")

    def _listen(self) -> None:
        while not self._is_closed:
            for key, events in self._selector.select(self._patience_s()):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._woken:
                    with contextlib.suppress(OSError):
                        self._woken.recv(4096)
                else:
                    self._serve(key.data, events)
            self._sweep()

    def _patience_s(self) -> float | None:
        """Until something is to be done though nobody speaks."""
        with self._lock:
            ends = [p.came + HELLO_S for p in self._strangers] + [p.link.moved_at + STALLED_S for p in self._slow]
        if self._rest_until is not None:
            ends.append(self._rest_until)
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def _sweep(self) -> None:
        now = time.monotonic()
        with self._lock:
            late = [p for p in self._strangers if now >= p.came + HELLO_S]
            slow, doomed = list(self._slow), list(self._doomed)
            self._doomed.clear()
        for peer in (*late, *doomed):
            self._drop(peer)
        for peer in slow:
            if peer.link.waiting_bytes and now >= peer.link.moved_at + STALLED_S:
                self._drop(peer)
            else:
                self._mind(peer)
        if self._rest_until is not None and now >= self._rest_until:
            self._rest_until = None
            self._selector.register(self._listener, selectors.EVENT_READ)

    def _rest(self, seconds: float) -> None:
        """Take no connections for a while: asking again at once would cost a core."""
        self._rest_until = time.monotonic() + seconds
        self._selector.unregister(self._listener)

    def _accept(self) -> None:
        now = time.monotonic()
        self._allowance = min(BURST, self._allowance + (now - self._allowed_at) * (TLS_PER_S if self.uses_tls else PER_S)) - 1
        self._allowed_at = now
        if self._allowance < 0:
            self._rest(SHORT_REST_S)
            return
        try:
            connection, address = self._listener.accept()
        except OSError as e:
            if e.errno in _NO_ROOM:
                for stranger in [p for p in self._strangers if p.invitation is None]:
                    self._drop(stranger)
                self._rest(REST_S)
            return
        try:
            peer = Peer(Connection(connection, self._tls, is_server=True), str(address[0]))
            self._selector.register(peer.link.socket, selectors.EVENT_READ, peer)
        except (OSError, ValueError):  # it is gone again
            connection.close()
            return
        self._strangers.add(peer)
        if len(self._strangers) > STRANGERS:
            self._drop(whom_to_drop(self._strangers))

    def _serve(self, peer: Peer, events: int) -> None:
        try:
            if events & selectors.EVENT_WRITE:
                peer.link.flush()
            data = peer.link.read()
            if data is None:
                raise OSError("it is gone")
            for answer in peer.hear(data, self._invited) if data else ():
                self._take(peer, answer)
        except (OSError, WireError):
            self._drop(peer)
        except Exception:  # noqa: BLE001 nothing that one peer says may end the thread that hears all others
            self._drop(peer)
        else:
            self._mind(peer)

    def _invited(self, number: str) -> Invitation | None:
        with self._lock:
            return self._invitations.get(number)

    def _take(self, peer: Peer, answer: Answer) -> None:
        assert peer.invitation is not None
        node_id = peer.invitation.node_id
        if isinstance(answer, Hello):
            with self._lock:
                if self._invitations.pop(peer.invitation.number, None) is None:
                    raise WireError("this invitation was used before")
                old = self._peers.get(node_id)
                self._peers[node_id] = peer
                self._strangers.discard(peer)
            if old is not None:
                self._drop(old)
        with self._lock:
            peer.unread += 1
        if peer.unread > MAX_UNREAD:
            raise WireError("it sends answers that were not asked for")
        self._answers.put((node_id, answer, peer))

    def _mind(self, peer: Peer) -> None:
        """Wait for room to write as long as something is to be written."""
        with self._lock:
            wants = bool(peer.link.waiting_bytes)
            (self._slow.add if wants else self._slow.discard)(peer)
        with contextlib.suppress(KeyError, ValueError, OSError):  # it was dropped meanwhile
            self._selector.modify(peer.link.socket, selectors.EVENT_READ | (selectors.EVENT_WRITE if wants else 0), peer)

    def _forget(self, peer: Peer) -> None:
        """Whoever asks for this node is told that its watcher is gone."""
        node_id = peer.invitation.node_id if peer.invitation is not None else ""
        with self._lock:
            known = self._peers.get(node_id) is peer
            if known:
                del self._peers[node_id]
                peer.unread += 1
            self._strangers.discard(peer)
            self._slow.discard(peer)
        if known:
            self._answers.put((node_id, None, peer))

    def _drop(self, peer: Peer) -> None:
        self._forget(peer)
        with contextlib.suppress(KeyError, ValueError, OSError):  # dropped before
            self._selector.unregister(peer.link.socket)
        peer.link.close()
