"""Plain GET requests to servers of this machine, all at once, before one moment: no redirects, no cookies, no credentials, bounded answers.

A server that is silent, floods, drips or speaks something else costs no more than the time that is given for all.
"""

from __future__ import annotations

import errno
import os
import re
import selectors
import socket
import time
from collections.abc import Sequence

import msgspec

MAX_BYTES = 1 << 20
MAX_HEAD = 1 << 16
MAX_REQUEST = 71
"""ZeroMQ takes the first letter of "GET" for the length of a frame of its first protocol: a shorter request never makes a whole one."""
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})[ \r\n]")
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,12})[ \t]*\r\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n", re.IGNORECASE)
_SIZE = re.compile(rb"([0-9a-fA-F]{1,6})[^\r\n]{0,64}\r\n")
_LAST = b"0\r\n\r\n"


class Get(msgspec.Struct, frozen=True):
    """What is asked of whom."""

    host: str
    port: int
    path: str


class Answer(msgspec.Struct, frozen=True):
    """A whole answer."""

    status: int
    body: bytes


class _Exchange(msgspec.Struct):
    """One request under way."""

    number: int
    request: bytes
    data: bytearray
    head: int = 0
    """Bytes of the head with its empty line; 0 until it is there."""
    length: int | None = None
    is_chunked: bool = False


def get_all(asked: Sequence[Get], until: float, *, max_request: int | None = MAX_REQUEST) -> list[Answer | str]:
    """The answers in the order of `asked`, or why there is none; returns at `until` (monotonic) at the latest.

    Without `max_request` only servers may be asked that are known to speak HTTP.
    """
    found: list[Answer | str] = ["no answer in time"] * len(asked)
    with selectors.DefaultSelector() as ready:
        try:
            for number, get in enumerate(asked):
                begun = _connect(get)
                if isinstance(begun, str):
                    found[number] = begun
                    continue
                ready.register(begun, selectors.EVENT_WRITE, _Exchange(number, _request(get, max_request), bytearray()))
            while ready.get_map() and (left := until - time.monotonic()) > 0:
                for key, _ in ready.select(left):
                    end = _step(key, ready)
                    if end is not None:
                        found[key.data.number] = end
                        ready.unregister(key.fileobj)
                        key.fileobj.close()  # type: ignore[union-attr]
        finally:
            for key in list(ready.get_map().values()):
                key.fileobj.close()  # type: ignore[union-attr]
    return found


def _request(get: Get, max_request: int | None) -> bytes:
    # HTTP/1.0: the answer ends with the connection; uvicorn cuts it into chunks all the same
    request = f"GET {get.path} HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode("ascii")
    assert max_request is None or len(request) < max_request, get.path
    return request


def _connect(get: Get) -> socket.socket | str:
    connection = socket.socket(socket.AF_INET6 if ":" in get.host else socket.AF_INET)
    connection.setblocking(False)
    try:
        code = connection.connect_ex((get.host, get.port))
    except OSError as e:  # a name that no server of names knows
        connection.close()
        return (e.strerror or str(e)).lower()
    if code in (0, errno.EINPROGRESS):
        return connection
    connection.close()
    return os.strerror(code).lower()


def _step(key: selectors.SelectorKey, ready: selectors.BaseSelector) -> Answer | str | None:
    """Do what can be done without waiting; what came of the request once it is over."""
    connection, exchange = key.fileobj, key.data
    assert isinstance(connection, socket.socket)
    try:
        if key.events & selectors.EVENT_WRITE:
            code = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                return os.strerror(code).lower()
            connection.send(exchange.request)  # less than any socket's buffer
            ready.modify(connection, selectors.EVENT_READ, exchange)
            return None
        block = connection.recv(1 << 16)
    except BlockingIOError:
        return None
    except OSError as e:
        return (e.strerror or type(e).__name__).lower()
    exchange.data += block
    return _take(exchange, ended=not block)


def _take(exchange: _Exchange, *, ended: bool) -> Answer | str | None:
    data = exchange.data
    if not exchange.head:
        end = data.find(b"\r\n\r\n", 0, MAX_HEAD)
        if end < 0:
            return "it does not speak HTTP" if ended or len(data) > MAX_HEAD else None
        exchange.head = end + 4
        head = bytes(data[: exchange.head])
        if _STATUS.match(head) is None:
            return "it does not speak HTTP"
        exchange.is_chunked = _CHUNKED.search(head) is not None
        length = _LENGTH.search(head)
        exchange.length = int(length[1]) if length else None
    size = len(data) - exchange.head
    if size > MAX_BYTES or (exchange.length or 0) > MAX_BYTES:
        return f"more than {MAX_BYTES >> 20} MiB"
    body: bytes | None = None
    if exchange.is_chunked:
        body = _join_chunks(bytes(data[exchange.head :])) if ended or data.endswith(_LAST) else None
    elif exchange.length is not None:
        body = bytes(data[exchange.head : exchange.head + exchange.length]) if size >= exchange.length else None
    elif ended:
        body = bytes(data[exchange.head :])
    if body is None:
        return "cut off" if ended else None
    status = _STATUS.match(data)
    return Answer(int(status[1]), body) if status else "it does not speak HTTP"


def _join_chunks(data: bytes) -> bytes | None:
    """The chunks without their sizes; None when they do not come to an end."""
    pieces: list[bytes] = []
    at = 0
    while size := _SIZE.match(data, at):
        length = int(size[1], 16)
        if length == 0:
            return b"".join(pieces)
        pieces.append(data[size.end() : size.end() + length])
        at = size.end() + length + 2
    return None
