"""How a companion and a watcher know each other: an invitation that came by way of Ray, a challenge to each side, and a seal on every message.

The watcher speaks first (`knock`), the companion answers with a proof (`answer`), and the watcher's first sealed message is its own proof. The key
itself never travels on the connection. What was recorded on one connection opens no other: both sides put in a random number of their own.
"""

from __future__ import annotations

import hmac
import secrets
import struct

import msgspec

MAGIC = b"rrdw1"
NUMBER_BYTES = 16
NONCE_BYTES = 32
MAC_BYTES = 32
KNOCK_BYTES = len(MAGIC) + NUMBER_BYTES + NONCE_BYTES
ANSWER_BYTES = NONCE_BYTES + MAC_BYTES
HELLO_BYTES = 4096
"""At most, of the message that proves who the watcher is."""


class WireError(ValueError):
    """What came over a connection is not what the other side would send."""


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    """For one watcher, once. Hexadecimal; who knows `key` is believed."""

    session: str
    """The companion that invites."""
    node_id: str
    number: str
    """Names the invitation, in clear."""
    key: str


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    """Of one connection."""

    orders: bytes
    answers: bytes


def invite(session: str, node_id: str) -> Invitation:
    return Invitation(session=session, node_id=node_id, number=secrets.token_hex(NUMBER_BYTES), key=secrets.token_hex(32))


def knock(invitation: Invitation, nonce: bytes) -> bytes:
    """The watcher's first words."""
    return MAGIC + bytes.fromhex(invitation.number) + nonce


def read_knock(data: bytes) -> tuple[str, bytes]:
    """Number of the invitation, and the watcher's random number.

    Raises:
        WireError: no watcher says that.
    """
    if len(data) != KNOCK_BYTES or not data.startswith(MAGIC):
        raise WireError("this is not how a watcher connects")
    start = len(MAGIC)
    return data[start : start + NUMBER_BYTES].hex(), data[start + NUMBER_BYTES :]


def answer(invitation: Invitation, theirs: bytes, ours: bytes) -> bytes:
    """The companion's answer to a knock."""
    return ours + _mac(invitation, b"companion", theirs, ours)


def check_answer(invitation: Invitation, ours: bytes, data: bytes) -> bytes:
    """The companion's random number.

    Raises:
        WireError: it does not know the invitation's key.
    """
    theirs, proof = data[:NONCE_BYTES], data[NONCE_BYTES:]
    if len(data) != ANSWER_BYTES or not hmac.compare_digest(proof, _mac(invitation, b"companion", ours, theirs)):
        raise WireError("who answers at the companion's port is not the companion")
    return theirs


def derive(invitation: Invitation, watchers: bytes, companions: bytes) -> Keys:
    """The keys of the connection on which these two random numbers were exchanged."""
    return Keys(orders=_mac(invitation, b"orders", watchers, companions), answers=_mac(invitation, b"answers", watchers, companions))


class Sealer:
    """Seals the messages of one direction of one connection, in turn."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._count = 0

    def seal(self, body: bytes) -> bytes:
        """Length, body, and a code over both and the message's place in the row."""
        head = struct.pack("<I", len(body))
        sealed = head + body + _code(self._key, self._count, head, body)
        self._count += 1
        return sealed


class Opener:
    """Puts the bytes of one direction together to messages; each must be sealed, and the next in the row."""

    def __init__(self, key: bytes, limit_bytes: int) -> None:
        self._key = key
        self._count = 0
        self._buffer = bytearray()
        self.limit_bytes = limit_bytes
        """Of one message."""

    def add(self, data: bytes) -> list[bytes]:
        """The messages that are complete now.

        Raises:
            WireError: too long, or not sealed by the other side for this place.
        """
        self._buffer += data
        found, start = [], 0
        while len(self._buffer) - start >= 4:
            (length,) = struct.unpack_from("<I", self._buffer, start)
            if length > self.limit_bytes:
                raise WireError(f"a message of {length} bytes is longer than {self.limit_bytes}")
            end = start + 4 + length
            if len(self._buffer) < end + MAC_BYTES:
                break
            head, body = bytes(self._buffer[start : start + 4]), bytes(self._buffer[start + 4 : end])
            if not hmac.compare_digest(bytes(self._buffer[end : end + MAC_BYTES]), _code(self._key, self._count, head, body)):
                raise WireError("a message without the right seal")
            self._count += 1
            start = end + MAC_BYTES
            found.append(body)
        del self._buffer[:start]
        return found


def _code(key: bytes, count: int, head: bytes, body: bytes) -> bytes:
    code = hmac.new(key, struct.pack("<Q", count) + head, "sha256")
    code.update(body)
    return code.digest()


def _mac(invitation: Invitation, purpose: bytes, watchers: bytes, companions: bytes) -> bytes:
    parts = (purpose, invitation.session.encode(), invitation.node_id.encode(), invitation.number.encode(), watchers, companions)
    said = b"".join(struct.pack("<I", len(part)) + part for part in parts)
    return hmac.digest(bytes.fromhex(invitation.key), said, "sha256")
