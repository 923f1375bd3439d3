"""Who is connected to the companion and what each has proven; strangers get little room and little time."""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable

from ray_rl_debug.watch.link import Connection
from ray_rl_debug.watch.seal import (
    HELLO_BYTES,
    KNOCK_BYTES,
    NONCE_BYTES,
    Invitation,
    Opener,
    Sealer,
    WireError,
    answer,
    derive,
    read_knock,
)
from ray_rl_debug.watch.wire import MAX_ANSWER_BYTES, MAX_FACTS_BYTES, Answer, Collect, Collected, Hello, Order, decode_answer, encode

STRANGERS = 128
"""Connections that have proven nothing, at most."""
HELLO_S = 5.0
"""For a stranger to prove who it is."""
MAX_WAITING_BYTES = 64 << 20
"""Of orders that a watcher has not taken."""
MAX_UNREAD = 256
"""Answers that nobody has fetched; a watcher speaks only when it is asked."""


class Peer:
    """One connection: a stranger that knocks, then proves itself by its first sealed message, and is a watcher from then on."""

    def __init__(self, link: Connection, address: str) -> None:
        self.link = link
        self.address = address
        self.came = time.monotonic()
        self.invitation: Invitation | None = None
        """Which one it named."""
        self.hello: Hello | None = None
        self.unread = 0
        self._first = b""
        self._sealer: Sealer | None = None
        self._opener: Opener | None = None
        self._lock = threading.Lock()  # orders come from another thread than answers
        self._collects: set[int] = set()

    def hear(self, data: bytes, invited: Callable[[str], Invitation | None]) -> list[Answer]:
        """Answers that are complete now; the first one is always a `Hello`. `invited` knows the open invitations by number.

        Raises:
            WireError: it is no watcher of ours, or speaks out of turn.
            OSError: it is gone.
        """
        if self._opener is None:
            self._first += data
            if len(self._first) < KNOCK_BYTES:
                return []
            data, self._first = self._first[KNOCK_BYTES:], self._first[:KNOCK_BYTES]
            self._welcome(invited)
        assert self._opener is not None
        found = [decode_answer(body) for body in self._opener.add(data)]
        for one in found:
            if self.hello is None and isinstance(one, Hello):
                self.hello = one
                self._expect()
            elif self.hello is None or isinstance(one, Hello):
                raise WireError("a watcher must say who it is, first and once")
            if isinstance(one, Collected):
                self._expect(done=one.ticket)
        return found

    def tell(self, order: Order) -> None:
        """Raises OSError when it is gone, or takes nothing any more."""
        body = encode(order)
        if self._sealer is None or self._opener is None or self.link.waiting_bytes + len(body) > MAX_WAITING_BYTES:
            raise OSError("it does not read its orders")
        if isinstance(order, Collect):
            self._expect(asked=order.ticket)
        self.link.send_sealed(self._sealer.seal, body)

    def _expect(self, *, asked: int | None = None, done: int | None = None) -> None:
        """Large answers only while a node's facts are awaited."""
        assert self._opener is not None
        with self._lock:
            self._collects |= {asked} if asked is not None else set()
            self._collects -= {done} if done is not None else set()
            self._opener.limit_bytes = MAX_FACTS_BYTES if self._collects else MAX_ANSWER_BYTES

    def _welcome(self, invited: Callable[[str], Invitation | None]) -> None:
        number, theirs = read_knock(self._first)
        invitation = invited(number)
        if invitation is None:
            raise WireError("no invitation has this number")
        ours = secrets.token_bytes(NONCE_BYTES)
        keys = derive(invitation, theirs, ours)
        self.invitation = invitation
        self._sealer, self._opener = Sealer(keys.orders), Opener(keys.answers, HELLO_BYTES)
        self.link.write(answer(invitation, theirs, ours))


def whom_to_drop(strangers: Iterable[Peer]) -> Peer:
    """The oldest stranger of the address with the most of them; one that has named an invitation only when all have."""
    crowd = list(strangers)
    candidates = [p for p in crowd if p.invitation is None] or crowd
    counts = Counter(p.address for p in candidates)
    return min(candidates, key=lambda p: (-counts[p.address], p.came))
