"""A client of an engine's HTTP server: single calls, and requests that go on in the background and are counted token by token."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from typing import Any

from engines.processes import until

CALL_S = 30.0


class Refused(Exception):
    """The server answered with something else than 200, or not at all."""


def call(port: int, method: str, path: str, body: Any = None, seconds: float = CALL_S) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        raise Refused(f"{method} {path}: {type(error).__name__} {error}") from None
    finally:
        connection.close()
    if answer.status != 200:
        raise Refused(f"{method} {path}: {answer.status} {text[:300]}")
    return text


class Stream:
    """One completion that is read as it comes, in a thread of its own."""

    def __init__(self, port: int, path: str, body: Any) -> None:
        self.pieces, self.ended, self.trouble = 0, False, ""
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self._asked = (path, json.dumps(body), {"Content-Type": "application/json"})
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            self._connection.request("POST", *self._asked)
            for line in self._connection.getresponse():
                self.pieces += line.startswith(b"data: {")
        except (OSError, ValueError, AttributeError, http.client.HTTPException) as error:
            self.trouble = f"{type(error).__name__} {error}"
        self.ended = True

    def close(self) -> None:
        # The reading thread holds the socket's file: only a shutdown wakes it.
        with contextlib.suppress(OSError, AttributeError):
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._connection.close()


class Load:
    """So many requests at once; a context whose end takes them back."""

    def __init__(self, port: int, path: str, body: dict[str, Any], count: int) -> None:
        self.streams = [Stream(port, path, {**body, "stream": True}) for _ in range(count)]

    def pieces(self) -> int:
        return sum(stream.pieces for stream in self.streams)

    def running(self) -> int:
        return sum(not stream.ended for stream in self.streams)

    def await_tokens(self, more: int = 5, seconds: float = 120.0) -> None:
        """Until every request has got so many pieces more."""
        first = [stream.pieces for stream in self.streams]
        until(lambda: all(s.pieces >= f + more or s.ended for s, f in zip(self.streams, first, strict=True)), seconds, "tokens")
        assert self.running() == len(self.streams), [s.trouble or "ended" for s in self.streams if s.ended]

    def await_silence(self, quiet_s: float = 1.5, seconds: float = 30.0) -> None:
        """Until no piece has come for a while."""
        seen = [-1]

        def is_silent() -> bool:
            before, seen[0] = seen[0], self.pieces()
            return before == seen[0]

        until(is_silent, seconds, "silence", every=quiet_s)

    def __enter__(self) -> Load:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in self.streams:
            stream.close()


class Unread:
    """A client that asks for a stream and never reads it."""

    def __init__(self, port: int, path: str, body: dict[str, Any]) -> None:
        text = json.dumps({**body, "stream": True}).encode()
        self.socket = socket.socket()
        # Little room here, so that the server's side fills.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(("127.0.0.1", port))
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
        self.socket.sendall(head.encode() + text)

    def close(self) -> None:
        self.socket.close()
